// A problem opened for the interpreter: with its inputs and expected outputs at the timing size. Made and used by
// KernelEvaluator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "evaluator_sim/timing_expected.h"
#include "interpreter/tensors.h"       // MappedArguments
#include "judge/cache/kept_files.h"    // KeptFiles
#include "judge/front/open_problem.h"  // OpenProblem
#include "judge/inputs/inputs.h"       // Argument

namespace kgrpo::evaluator_sim {

// The SHA-256, in hexadecimal, of the sources of evaluator_sim and judge and of the device files (version.cc).
const char* SourceDigest();

using TimingInputs = interpreter::MappedArguments;

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
  std::shared_ptr<const TimingInputs> Timing() const;
  // Likewise, drawn again: tensors with their bytes.
  std::vector<evaluator::Argument> TimingArguments() const;

  // Returns the expected outputs at the timing size. They are read from the cache directory, or else computed by the
  // first caller, with the oracle or, without one, with `reference`. Null if that throws.
  using Reference = std::function<std::vector<evaluator::Expected>(const std::vector<evaluator::Argument>&)>;
  std::shared_ptr<const TimingExpected> ExpectedAtTiming(const Reference& reference) const;

 private:
  uint64_t TimingKey() const;
  std::string ExpectedKey() const;

  const double slack_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const TimingInputs> timing_;
  mutable uint64_t kept_bytes_ = 0;
  const evaluator::KeptFiles kept_;
  mutable std::once_flag expected_once_;
  mutable std::shared_ptr<const TimingExpected> expected_;
};

}  // namespace kgrpo::evaluator_sim
