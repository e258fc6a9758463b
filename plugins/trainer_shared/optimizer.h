// optimizer.h - the optimiser step after gradients are accumulated: norm, clipping, learning rate, AdamW. If loss or
// gradient is not finite, the step is only counted. Used by trainer_grpo and trainer_sft; its options are shared by
// both.
#ifndef KGRPO_TRAINER_SHARED_OPTIMIZER_H
#define KGRPO_TRAINER_SHARED_OPTIMIZER_H
#include <kgrpo/host.h>
#include <kgrpo/policy.h>
#include <kgrpo/sdk/host.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer_shared/adamw.h"
#include "trainer_shared/schedule.h"
#include "trainer_shared/state_stream.h"

namespace kgrpo::trainer {

struct OptimizerOptions {
  AdamWOptions adamw;
  ScheduleOptions schedule;
  double max_grad_norm = 1.0;          // 0: no clipping
  uint32_t max_non_finite_steps = 10;  // this many in a row end the run
};

// The properties of a trainer's JSON Schema that describe OptimizerOptions, without the braces around them, and the
// options read from JSON that satisfies them.
std::string OptimizerSchemaProperties(double default_learning_rate, const char* default_schedule);
OptimizerOptions ReadOptimizerOptions(const nlohmann::json& options);

// Result of one optimiser step.
struct StepOutcome {
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
  bool skipped = false;  // loss or gradient was not finite: parameters and moments are as they were
};

// One thread. Holds the optimiser of one stage.
class Optimizer {
 public:
  // Views the policy's parameters; see ViewParameters and AdamW for what is refused.
  Optimizer(const OptimizerOptions& options, const kgrpo_host* host, const kgrpo_policy_interface& api,
            kgrpo_policy* policy, CudaTensorMathFactory cuda);

  // Takes a step with the gradients that the policies of all ranks have accumulated; `loss` is the same on each. Throws
  // KGRPO_ERROR_NOT_FINITE at the last of max_non_finite_steps skipped steps in a row. Like Save and Load it locks the
  // device meanwhile.
  StepOutcome Step(double loss, const SchedulePosition& position);

  uint64_t skipped_steps() const { return skipped_steps_; }  // since the stage began

  // As AdamW's: Load changes nothing, Commit cannot fail.
  void Save(StateWriter& writer);
  struct Loaded;
  std::shared_ptr<Loaded> Load(StateReader& reader);
  void Commit(const std::shared_ptr<Loaded>& loaded);

 private:
  DeviceTurn TakeDevice();

  OptimizerOptions options_;
  const kgrpo_host* host_;
  AdamW adamw_;
  uint64_t skipped_steps_ = 0;
  uint64_t skipped_in_a_row_ = 0;
};

}  // namespace kgrpo::trainer
#endif
