// A problem opened for the interpreter: with its inputs and expected outputs at the timing size. Made and used by
// KernelEvaluator.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "evaluator_sim/timing_expected.h"
#include "interpreter/tensors.h"         // MappedArguments
#include "judge/cache/kept_files.h"      // KeptFiles
#include "judge/front/open_problem.h"    // OpenProblem
#include "judge/inputs/inputs.h"         // Argument
#include "judge/verdict/conditioning.h"  // Compute

namespace kgrpo::evaluator_sim {

// The SHA-256, in hexadecimal, of the sources of evaluator_sim and judge and of the device files (version.cc).
const char* SourceDigest();

using TimingInputs = interpreter::MappedArguments;

// The two sets of inputs at the timing size: those that are timed, and whole numbers (evaluator::InputValues::kWhole)
// with other scalars, whose results must be exact if the problem's arithmetic is.
enum class TimingSet { kTimed, kWhole };

// A problem with the data that every judgement of it needs. [any thread]
class OpenProblem : public evaluator::OpenProblem {
 public:
  // Throws Error for a malformed problem or an oracle that does not compile. `keep`: the expected outputs at the timing
  // size stay in the cache directory for later processes, up to 4 GiB for all problems. `rules`: the rules that the
  // problem is changed to follow (evaluator::UnderRules).
  OpenProblem(const std::string& directory, const std::string& cache_directory, bool keep = true,
              evaluator::Rules rules = evaluator::Rules::kOurs);
  // Likewise, of a problem that has been read.
  OpenProblem(const evaluator::Problem& problem, const std::string& cache_directory, bool keep, evaluator::Rules rules);
  ~OpenProblem() override;

  // The inputs at the timing size: the same for every candidate, so kept as long as those of all problems together stay
  // within a gigabyte.
  std::shared_ptr<const TimingInputs> Timing(TimingSet set = TimingSet::kTimed) const;
  // Likewise, drawn again: tensors with their bytes.
  std::vector<evaluator::Argument> TimingArguments(TimingSet set = TimingSet::kTimed) const;

  // Returns the expected outputs at the timing size. They are read from the cache directory, or else computed by the
  // first caller, with the oracle or, without one, with `reference`, which runs the reference kernel on these inputs.
  // Null if that throws; of whole numbers also if no output must be exact.
  std::shared_ptr<const TimingExpected> ExpectedAtTiming(const evaluator::Compute& reference,
                                                         TimingSet set = TimingSet::kTimed) const;

 private:
  struct Kept {
    std::shared_ptr<const TimingInputs> inputs;
    std::once_flag expected_once;
    std::shared_ptr<const TimingExpected> expected;
  };

  uint64_t TimingKey() const;
  std::string ExpectedKey(TimingSet set) const;
  std::vector<evaluator::ErrorBound> Bounds(TimingSet set, const std::vector<evaluator::Argument>& arguments,
                                            const std::vector<evaluator::Expected>& expected,
                                            const evaluator::Compute& reference) const;

  mutable std::mutex mutex_;
  mutable Kept sets_[2];  // by TimingSet
  mutable uint64_t kept_bytes_ = 0;
  const evaluator::KeptFiles kept_;
};

}  // namespace kgrpo::evaluator_sim
