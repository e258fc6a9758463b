#include "trainer_shared/optimizer.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/host.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trainer_shared/choice.h"

namespace kgrpo::trainer {

std::string OptimizerSchemaProperties(double default_learning_rate, const char* default_schedule) {
  std::ostringstream text;
  text << R"("learning_rate": {"title": "Learning rate", "type": "number", "exclusiveMinimum": 0, "default": )"
       << default_learning_rate << R"(,
      "x-resume": true, "description": "AdamW's learning rate at its peak. Large policies want 1e-6 to 1e-5, tiny ones 1e-4 to 1e-3."},
    "lr_scheduler_type": {"title": "Learning-rate schedule", "enum": ["constant", "linear", "cosine", "cosine_with_restarts", "warmup_stable_decay"], "default": ")"
       << default_schedule << R"(",
      "x-resume": true, "description": "What the learning rate does after the warm-up: stay, or fall to min_lr_ratio of the peak at the end of the stage, along a line or half a cosine, num_cycles times (cosine_with_restarts), or only in the last decay_steps updates (warmup_stable_decay)."},
    "min_lr_ratio": {"title": "Least learning rate", "type": "number", "minimum": 0, "maximum": 1, "default": 0,
      "x-resume": true, "description": "What a schedule falls to, as a share of learning_rate."},
    "num_cycles": {"title": "Restarts", "type": "integer", "minimum": 1, "default": 1,
      "x-resume": true, "description": "Only with cosine_with_restarts: how often the rate falls from its peak."},
    "decay_steps": {"title": "Decay", "type": "number", "minimum": 0, "default": 0,
      "x-resume": true, "description": "Only with warmup_stable_decay: updates at the end during which the rate falls; 0 takes a fifth of the stage."},
    "warmup_steps": {"title": "Warm-up", "type": "number", "minimum": 0, "default": 0,
      "x-resume": true, "description": "How many updates the learning rate takes to rise linearly from 0 to its peak."},
    "adam_beta1": {"title": "AdamW beta 1", "type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.9,
      "x-resume": true, "description": "Decay of the running mean of gradients."},
    "adam_beta2": {"title": "AdamW beta 2", "type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.999,
      "x-resume": true, "description": "Decay of the running mean of squared gradients."},
    "adam_epsilon": {"title": "AdamW epsilon", "type": "number", "exclusiveMinimum": 0, "default": 1e-8,
      "x-resume": true, "description": "Added to the root of the second moment before dividing by it."},
    "weight_decay": {"title": "Weight decay", "type": "number", "minimum": 0, "default": 0.0,
      "x-resume": true, "description": "Decoupled weight decay of matrices; norms and biases never decay."},
    "max_grad_norm": {"title": "Gradient clipping", "type": "number", "minimum": 0, "default": 1.0,
      "x-resume": true, "description": "Gradients whose norm over all parameters is larger are scaled down to it; 0 turns clipping off."},
    "max_non_finite_steps": {"title": "Tolerated non-finite steps", "type": "integer", "minimum": 1, "default": 10,
      "x-resume": true, "description": "An optimiser step whose loss or gradient is not finite is skipped and counted; this many in a row stop the run with a checkpoint."})";
  return text.str();
}

OptimizerOptions ReadOptimizerOptions(const nlohmann::json& json) {
  OptimizerOptions options;
  options.schedule.learning_rate = json.at("learning_rate").get<double>();
  options.schedule.warmup_steps = json.at("warmup_steps").get<double>();
  options.schedule.type = Choice<ScheduleType>(json, "lr_scheduler_type",
                                               {{"constant", ScheduleType::kConstant},
                                                {"linear", ScheduleType::kLinear},
                                                {"cosine", ScheduleType::kCosine},
                                                {"cosine_with_restarts", ScheduleType::kCosineWithRestarts},
                                                {"warmup_stable_decay", ScheduleType::kWarmupStableDecay}});
  options.schedule.min_lr_ratio = json.at("min_lr_ratio").get<double>();
  options.schedule.num_cycles = json.at("num_cycles").get<uint32_t>();
  options.schedule.decay_steps = json.at("decay_steps").get<double>();
  options.adamw.beta1 = json.at("adam_beta1").get<double>();
  options.adamw.beta2 = json.at("adam_beta2").get<double>();
  options.adamw.epsilon = json.at("adam_epsilon").get<double>();
  options.adamw.weight_decay = json.at("weight_decay").get<double>();
  options.max_grad_norm = json.at("max_grad_norm").get<double>();
  options.max_non_finite_steps = json.at("max_non_finite_steps").get<uint32_t>();
  return options;
}

Optimizer::Optimizer(const OptimizerOptions& options, const kgrpo_host* host, const kgrpo_policy_interface& api,
                     kgrpo_policy* policy, CudaTensorMathFactory cuda)
    : options_(options), host_(host), adamw_(ViewParameters(api, policy), options.adamw, cuda, Collective(host)) {
  const Collective ranks(host);
  if (ranks.alone()) return;
  reduction_ = std::make_unique<GradientReduction>(adamw_.parameters(), ranks, api.info(policy)->stream);
}

DeviceTurn Optimizer::TakeDevice() {
  return {Host(host_), adamw_.device(), [this] { adamw_.Wait(); }};
}

void Optimizer::Accumulate(size_t count, const std::function<bool(size_t, const kgrpo_gradient_sink* final)>& piece) {
  if (reduction_ != nullptr) reduction_->Start();
  try {
    for (size_t i = 0; i < count; ++i) {
      const bool last = i + 1 == count;
      if (!piece(i, last && reduction_ != nullptr ? reduction_->sink() : nullptr)) break;
    }
  } catch (...) {
    try {
      FinishReduction();
    } catch (const std::exception&) {
      // The reduction failed as well, for example by the loss of another rank. The first failure is rethrown.
    }
    throw;
  }
  FinishReduction();
}

void Optimizer::FinishReduction() {
  if (reduction_ == nullptr) return;
  const DeviceTurn turn = TakeDevice();
  adamw_.Wait();  // until the policy's gradients are there
  reduction_->Finish();
}

StepOutcome Optimizer::Step(double loss, const SchedulePosition& position) {
  DeviceTurn turn = TakeDevice();
  StepOutcome outcome;
  outcome.learning_rate = LearningRate(options_.schedule, position);
  outcome.gradient_norm = adamw_.GradientNorm();
  if (!std::isfinite(loss) || !std::isfinite(outcome.gradient_norm)) {
    outcome.skipped = true;
    ++skipped_steps_;
    ++skipped_in_a_row_;
    const std::string what = std::isfinite(loss) ? "a gradient" : "a loss";
    Host(host_).Warn("optimiser step skipped: " + what + " that is not finite (" + std::to_string(skipped_in_a_row_) +
                     " in a row)");
    if (skipped_in_a_row_ >= options_.max_non_finite_steps) {
      throw Error(
          KGRPO_ERROR_NOT_FINITE,
          std::to_string(skipped_in_a_row_) + " optimiser steps in a row had " + what +
              " that is not finite; none of them was taken. Lower learning_rate or max_grad_norm, or look at the "
              "last rollout for what the policy wrote (option max_non_finite_steps sets the limit)");
    }
    return outcome;
  }
  skipped_in_a_row_ = 0;
  // As torch.nn.utils.clip_grad_norm_, with its 1e-6, so that runs can be compared with PyTorch's.
  const double scale =
      options_.max_grad_norm == 0 ? 1.0 : std::min(1.0, options_.max_grad_norm / (outcome.gradient_norm + 1e-6));
  adamw_.Step(outcome.learning_rate, scale);
  turn.Pause();  // waits for the device, and throws its errors
  return outcome;
}

struct Optimizer::Loaded {
  uint64_t skipped_steps = 0;
  uint64_t skipped_in_a_row = 0;
  std::shared_ptr<AdamW::Loaded> adamw;
};

void Optimizer::Save(StateWriter& writer) {
  const DeviceTurn turn = TakeDevice();
  writer.U64(skipped_steps_);
  writer.U64(skipped_in_a_row_);
  adamw_.Save(writer);
}

std::shared_ptr<Optimizer::Loaded> Optimizer::Load(StateReader& reader) {
  const DeviceTurn turn = TakeDevice();
  auto loaded = std::make_shared<Loaded>();
  loaded->skipped_steps = reader.U64();
  loaded->skipped_in_a_row = reader.U64();
  loaded->adamw = adamw_.Load(reader);
  return loaded;
}

void Optimizer::Commit(const std::shared_ptr<Loaded>& loaded) {
  skipped_steps_ = loaded->skipped_steps;
  skipped_in_a_row_ = loaded->skipped_in_a_row;
  adamw_.Commit(loaded->adamw);
}

}  // namespace kgrpo::trainer
