// A problem's expected outputs at its timing size: computed once on a machine, kept in a file, and compared with the
// outputs of some or all blocks of a candidate. Made by OpenProblem, used by the evaluator.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "judge/cache/kept_files.h"           // KeptFiles, MappedFile
#include "judge/problem/problem.h"            // Problem
#include "judge/verdict/comparison.h"         // Expected, ErrorBound, WorstErrors
#include "judge/verdict/kernel_evaluation.h"  // Trouble
#include "simt/state/memory.h"                // Allocation

namespace kgrpo::evaluator_sim {

// The trouble of an output of `elements` elements, `missing` of which were never written.
evaluator::Trouble NeverWritten(const evaluator::Parameter& parameter, uint64_t missing, uint64_t elements);

// [any thread]
class TimingExpected {
 public:
  // Reads a file that Write made for the same problem, which must outlive the result. Null if the file has another
  // layout.
  static std::shared_ptr<const TimingExpected> Read(const evaluator::Problem& problem,
                                                    std::shared_ptr<const evaluator::MappedFile> file);
  // Appends the format that Read reads. `bounds`: by parameter.
  static void Write(const evaluator::Problem& problem, const std::vector<evaluator::Expected>& expected,
                    const std::vector<evaluator::ErrorBound>& bounds, const evaluator::KeptFiles::Append& append);

  // True if an output has a bound without an absolute part.
  bool IsExact() const;

  // Compares the contents of output `parameter` in `memory`. `all`: every element must be there; else only written
  // elements are compared, which for an inout means changed from `before` (an open file). `worst`, unless null,
  // receives the largest error.
  evaluator::Trouble Compare(size_t parameter, const simt::Allocation& memory, int before, bool all,
                             evaluator::WorstErrors* worst) const;

 private:
  class Tally;
  struct Output {
    evaluator::ErrorBound bound;
    uint64_t begin = 0, bytes = 0;  // in the file
  };

  TimingExpected(const evaluator::Problem& problem, std::shared_ptr<const evaluator::MappedFile> file)
      : problem_(problem), file_(std::move(file)) {}

  const evaluator::Problem& problem_;
  const std::shared_ptr<const evaluator::MappedFile> file_;
  std::vector<Output> outputs_;  // by parameter; empty for inputs and scalars
};

}  // namespace kgrpo::evaluator_sim
