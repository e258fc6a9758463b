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
  if (options.type == ScheduleType::kConstant) return options.learning_rate;
  const double span = std::max(static_cast<double>(position.updates) - options.warmup_steps, 1e-12);
  const double progress = std::clamp((begin - options.warmup_steps) / span, 0.0, 1.0);
  if (options.type == ScheduleType::kLinear) return options.learning_rate * (1.0 - progress);
  return options.learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

std::string ScheduleWarning(const ScheduleOptions& options, uint64_t updates) {
  if (options.warmup_steps <= static_cast<double>(updates)) return "";
  std::ostringstream text;
  text << "warmup_steps (" << options.warmup_steps << ") is more than the stage's " << updates
       << " updates: the learning rate ends at "
       << options.learning_rate * static_cast<double>(updates) / options.warmup_steps << " and never reaches "
       << options.learning_rate;
  return text.str();
}

}  // namespace kgrpo::trainer
