// Runs a kernel's correctness cases on the interpreter: the first seed's with every check, the others with bounds
// checks only and blocks in another order. Used by both evaluators: without a GPU it decides whether a kernel is
// correct; beside a GPU only the checks' findings count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interpreter/loaded_kernel.h"
#include "interpreter/tensors.h"
#include "judge/front/open_problem.h"
#include "judge/verdict/case_verdict.h"
#include "judge/verdict/comparison.h"  // WorstErrors
#include "judge/verdict/oracle.h"      // Checker

namespace kgrpo::interpreter {

// One run of all cases, by one thread.
class InterpretedCases {
 public:
  struct Options {
    // Returns the expected outputs of case `i`, by parameter. Called after the case has run, on the same thread. Null:
    // no expected outputs exist.
    std::function<std::vector<evaluator::Expected>(size_t i, const std::vector<evaluator::Argument>&)> expected;
    // CaseRule's, of case `i`. Null as there. If values do not decide, `reference` only tells which troubles of further
    // cases count.
    std::function<std::vector<evaluator::Expected>(size_t i, const std::vector<evaluator::Argument>&)> oracle = {};
    std::function<std::vector<evaluator::Expected>(size_t i, const std::vector<evaluator::Argument>&)> reference = {};
    bool is_reference = false;
    evaluator::KnownCases* known = nullptr;  // CaseRule's
    // In place of `expected`, for outputs that are not unique: decides on their bytes, by parameter.
    std::function<evaluator::Checker::Result(const std::vector<evaluator::Argument>&,
                                             const std::vector<std::vector<uint8_t>>& outputs)>
        check = {};
    // Called before each run of a case; may throw to end it all.
    std::function<void()> before_each;
    // True if unexpected values, values that differ from a first call's, or changed inputs are a trouble. Else they
    // only choose what is looked at, and the next case runs: approximations and the order of float atomics are the
    // interpreter's own.
    bool values_decide = true;
    // Limit over all calls. Beyond it no further call is made, and the trouble is `unavailable`.
    uint64_t most_warp_instructions = UINT64_MAX;
  };

  // `loaded` must be started. All references outlive this.
  InterpretedCases(LoadedKernel& loaded, const evaluator::Problem& problem,
                   const std::vector<evaluator::CorrectnessCase>& cases, Options options);

  // The first trouble of any case, or none. Without one, the kernel's process has made a first call of each case and is
  // ready for more. Throws what `expected` and `before_each` throw, and Error where a problem's tensors do not fit.
  Trouble Run();

  // Of all calls so far.
  uint64_t warp_instructions() const { return warp_instructions_; }
  // Wall-clock time spent in `expected` and `check`.
  double oracle_seconds() const { return oracle_seconds_; }
  // Worst errors over all correct outputs.
  const evaluator::WorstErrors& worst() const { return worst_; }
  // The notes of all calls (CallRecord::notes), without duplicates.
  const std::vector<std::string>& notes() const { return notes_; }
  // KernelEvaluation's, if this is the reference.
  const std::vector<std::string>& undecided() const { return undecided_; }
  // True if no block of these calls can represent others, or if outputs are final only when all blocks have run.
  bool runs_whole() const { return runs_whole_; }
  // True if the host code exceeded its time limit, perhaps because the machine is busy.
  bool host_timed_out() const { return host_timed_out_; }

 private:
  bool DecidesValues() const { return options_.expected || options_.check; }
  // The reason for a run of a case. Blocks may run in any order. The first data set runs with every check; the others
  // run with the last block first. If that gives wrong values, the case runs again with the checks, whose findings say
  // more.
  enum class Pass { kChecked, kOtherOrder, kOtherOrderChecked, kRepeat };
  Trouble RunCase(size_t i, Pass pass);
  Trouble CallCase(size_t i, Pass pass, CallRecord* record);
  Trouble JudgeOutputs(size_t i, const std::vector<std::vector<uint8_t>>& outputs);
  evaluator::CaseRule RuleOf(size_t i, const std::vector<evaluator::Argument>& arguments,
                             const std::vector<evaluator::Expected>& expected) const;
  bool DecidesNothing(size_t i);
  Trouble Chosen(size_t i, Pass pass, const Trouble& trouble, const CallRecord& record);
  Trouble StartAgain();
  void NoteUndecided(size_t i, std::string why);
  Trouble RunAll();
  Trouble RunOverOthers(const Trouble& found);

  // The tensors of the call before, whose memory the next one may take over.
  struct Placed {
    size_t i;
    std::vector<evaluator::Argument> arguments;
    std::unique_ptr<Tensors> tensors;
  };

  LoadedKernel& loaded_;
  const evaluator::Problem& problem_;
  const std::vector<evaluator::CorrectnessCase>& cases_;
  const Options options_;
  bool values_decide_;
  std::unique_ptr<Placed> placed_;
  std::optional<uint8_t> unwritten_shared_;          // simt::LaunchConfig's
  bool may_be_unused_ = false;                       // simt::Finding's, of the last case's trouble
  std::vector<simt::RacingReads> racing_reads_;      // by launch of the case's call
  bool first_chose_ = false;                         // an open choice of the first case may change rounding
  bool chooses_other_ = false;                       // simt::LaunchConfig::other_choices, against the pass's own
  std::vector<std::vector<uint8_t>> first_outputs_;  // of the first case, for the repetition
  evaluator::WorstErrors worst_;
  std::vector<std::string> notes_, undecided_;
  bool runs_whole_ = false;
  uint64_t warp_instructions_ = 0;
  double oracle_seconds_ = 0;
  bool host_timed_out_ = false;
};

// What decides on the outputs of `cases`: the problem's checker, or its oracle, or else the outputs of its reference.
// `reference` gives these for any case; null: there are none. The arguments outlive the result.
using ReferenceOutputsOf = std::function<std::vector<evaluator::Expected>(const evaluator::CorrectnessCase&,
                                                                          const std::vector<evaluator::Argument>&)>;
InterpretedCases::Options RulesOf(const evaluator::OpenProblem& open,
                                  const std::vector<evaluator::CorrectnessCase>& cases, ReferenceOutputsOf reference);

}  // namespace kgrpo::interpreter
