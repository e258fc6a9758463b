// inputs.cc of a problem's folder: draws the tensors that have `distribution: source`, which no distribution describes
// (symmetric, triangular, normalised). Made when an evaluator opens a problem; called by inputs.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "judge/problem/problem.h"
#include "judge/process/trusted_source.h"

namespace kgrpo::evaluator {

// One tensor's function. [any thread]
class SourceInputs {
 public:
  SourceInputs(std::shared_ptr<const TrustedLibrary> library, std::string file, std::string parameter);

  // `values`: `bytes` for the tensor's elements, all zero; double for floating dtypes, int64_t for the others. Throws
  // Error(KGRPO_ERROR_INVALID) that names the file where the function crashes or writes beyond them.
  void Fill(const Bindings& size, uint64_t key, void* values, size_t bytes) const;

 private:
  std::shared_ptr<const TrustedLibrary> library_;
  const std::string file_, parameter_;
};

// Returns the problem, ready to draw from: compiles inputs.cc, or loads what an earlier call left in `cache_directory`.
// Returns other problems as they are. Throws what TrustedLibrary does.
Problem WithSourceInputs(Problem problem, const std::string& cache_directory);

}  // namespace kgrpo::evaluator
