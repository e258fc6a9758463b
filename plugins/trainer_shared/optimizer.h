// optimizer.h - an optimiser step: gradients accumulated and summed over the ranks, norm, clipping, learning rate,
// AdamW. If loss or gradient is not finite, the step is only counted. Used by trainer_grpo and trainer_sft; its options
// are shared by both.
#pragma once
#include <kgrpo/host.h>
#include <kgrpo/policy.h>
#include <kgrpo/sdk/host.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer_shared/adamw.h"
#include "trainer_shared/gradient_reduction.h"
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

  // Accumulates this rank's part of a step's gradients, and sums them over the ranks. Calls piece(i, final) for each of
  // `count` pieces of work until it returns false. `final` is null except for the last piece, which may pass it to
  // PolicyClient::Differentiate. Every rank calls this, even with a `count` of 0; `piece` must not call a collective.
  // If a piece throws, its error is rethrown once no reduction is in flight, so that no other rank waits in one. After
  // an error of the device itself, the host ends the ranks that wait (loop/hang.h).
  void Accumulate(size_t count, const std::function<bool(size_t, const kgrpo_gradient_sink* final)>& piece);

  // Takes a step with the gradients of the last Accumulate; `loss` is the same on every rank. Throws
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
  void FinishReduction();

  OptimizerOptions options_;
  const kgrpo_host* host_;
  AdamW adamw_;
  std::unique_ptr<GradientReduction> reduction_;  // null where this process is alone
  uint64_t skipped_steps_ = 0;
  uint64_t skipped_in_a_row_ = 0;
};

}  // namespace kgrpo::trainer
