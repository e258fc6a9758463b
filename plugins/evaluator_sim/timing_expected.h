// What a problem's outputs must be at its timing size: computed once, kept in an unnamed file, and compared with what
// some or all blocks of a candidate have written. Made by OpenProblem, asked by the judge.
#ifndef KGRPO_EVALUATOR_SIM_TIMING_EXPECTED_H
#define KGRPO_EVALUATOR_SIM_TIMING_EXPECTED_H

#include <cstdint>
#include <string>
#include <vector>

#include "evaluator_shared/comparison.h"  // Expected, ErrorBound
#include "evaluator_shared/judgement.h"   // Trouble
#include "evaluator_shared/problem.h"     // Problem
#include "evaluator_shared/subprocess.h"  // Descriptor
#include "interpreter/simt/memory.h"      // Allocation

namespace kgrpo::evaluator_sim {

// [any thread]
class TimingExpected {
 public:
  // The files lie in `directory`, which must exist, and have no name there. `problem` outlives this.
  TimingExpected(const evaluator::Problem& problem, const std::vector<evaluator::Expected>& expected,
                 const std::string& directory);

  // Compares what `memory` holds of output `parameter`. `all`: every element must be there; else only those that were
  // written, which for an inout means changed from what `before` (an open file) holds.
  evaluator::Trouble Compare(size_t parameter, const simt::Allocation& memory, int before, bool all) const;

 private:
  class Tally;

  const evaluator::Problem& problem_;
  std::vector<evaluator::Descriptor> files_;  // by parameter; of outputs and inouts
  std::vector<evaluator::ErrorBound> bounds_;
};

// The bytes of an open file, mapped while this lives.
class MappedFile {
 public:
  MappedFile(int file, uint64_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const uint8_t* data() const { return data_; }

 private:
  const uint8_t* data_ = nullptr;
  uint64_t bytes_;
};

}  // namespace kgrpo::evaluator_sim

#endif
