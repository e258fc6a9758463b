#include "trainer_shared/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>

namespace kgrpo::trainer {

double LearningRate(const ScheduleOptions& options, const SchedulePosition& position) {
  const double steps = static_cast<double>(std::max<uint64_t>(position.steps, 1));
  const double begin = static_cast<double>(position.update) + static_cast<double>(position.step) / steps;
  const double end = begin + 1.0 / steps;
  // The step that ends the warm-up has the peak; rounding must not leave it just below.
  if (end < options.warmup_steps * (1.0 - 1e-12)) return options.learning_rate * end / options.warmup_steps;
  const double updates = static_cast<double>(position.updates);
  const double span = std::max(updates - options.warmup_steps, 1e-12);
  const double progress = std::clamp((begin - options.warmup_steps) / span, 0.0, 1.0);
  const auto half_cosine = [](double part) { return 0.5 * (1.0 + std::cos(std::numbers::pi * part)); };
  double height = 1;
  switch (options.type) {
    case ScheduleType::kConstant: return options.learning_rate;
    case ScheduleType::kLinear: height = 1.0 - progress; break;
    case ScheduleType::kCosine: height = half_cosine(progress); break;
    case ScheduleType::kCosineWithRestarts:
      height = progress >= 1 ? 0.0 : half_cosine(std::fmod(progress * options.num_cycles, 1.0));
      break;
    case ScheduleType::kWarmupStableDecay: {
      const double decay = std::min(options.decay_steps > 0 ? options.decay_steps : updates / 5, span);
      height = half_cosine(std::clamp((begin - (updates - decay)) / decay, 0.0, 1.0));
      break;
    }
  }
  return options.learning_rate * (options.min_lr_ratio + (1.0 - options.min_lr_ratio) * height);
}

std::vector<std::string> ScheduleWarnings(const ScheduleOptions& options, uint64_t updates) {
  const ScheduleOptions defaults;
  std::vector<std::string> warnings;
  if (options.type == ScheduleType::kConstant && options.min_lr_ratio != defaults.min_lr_ratio)
    warnings.emplace_back("min_lr_ratio has no effect: lr_scheduler_type is constant");
  if (options.type != ScheduleType::kCosineWithRestarts && options.num_cycles != defaults.num_cycles)
    warnings.emplace_back("num_cycles has no effect: lr_scheduler_type is not cosine_with_restarts");
  if (options.type != ScheduleType::kWarmupStableDecay && options.decay_steps != defaults.decay_steps)
    warnings.emplace_back("decay_steps has no effect: lr_scheduler_type is not warmup_stable_decay");
  if (options.warmup_steps <= static_cast<double>(updates)) return warnings;
  std::ostringstream text;
  text << "warmup_steps (" << options.warmup_steps << ") is more than the stage's " << updates
       << " updates: the learning rate ends at "
       << options.learning_rate * static_cast<double>(updates) / options.warmup_steps << " and never reaches "
       << options.learning_rate;
  warnings.push_back(text.str());
  return warnings;
}

}  // namespace kgrpo::trainer
