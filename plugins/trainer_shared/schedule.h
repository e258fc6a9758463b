// schedule.h - the learning rate over a stage. Used by optimizer.cc.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo::trainer {

enum class ScheduleType { kConstant, kLinear, kCosine, kCosineWithRestarts, kWarmupStableDecay };

struct ScheduleOptions {
  ScheduleType type = ScheduleType::kConstant;
  double learning_rate = 0;  // the peak
  double warmup_steps = 0;   // updates during which it rises from 0
  double min_lr_ratio = 0;   // of the peak: what the rate falls to
  uint32_t num_cycles = 1;   // of cosine_with_restarts
  double decay_steps = 0;  // of warmup_stable_decay: updates at the end during which it falls; 0: a fifth of the stage
};

// Position of an optimiser step in its stage. Time is counted in updates of the pipeline, not in optimiser steps: an
// update may have fewer of those than another (dropped groups), and the schedule must still end with the stage.
struct SchedulePosition {
  uint64_t update = 0;   // from 0
  uint64_t updates = 1;  // of the stage
  uint64_t step = 0;     // optimiser step within the update, from 0
  uint64_t steps = 1;    // optimiser steps of this update
};

// The learning rate of that step, by transformers' formulas. Warm-up is linear and reaches the peak at its last step.
// Then the rate is constant, or falls to min_lr_ratio of the peak at the end of the stage: along a line, half a cosine,
// num_cycles halves one after the other (cosine_with_restarts), or half a cosine over the last decay_steps
// (warmup_stable_decay).
double LearningRate(const ScheduleOptions& options, const SchedulePosition& position);

// Returns warnings: of options that the schedule ignores, and of a warm-up that outlasts the stage's updates.
std::vector<std::string> ScheduleWarnings(const ScheduleOptions& options, uint64_t updates);

}  // namespace kgrpo::trainer
