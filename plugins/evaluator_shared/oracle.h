// The float64 oracle of a problem: oracle.cc, compiled once by the host's g++ and kept in the cache directory. Trusted
// code, as the problem's author is: it runs in this process. Called by the evaluator for each (size, seed).
#ifndef KGRPO_EVALUATOR_SHARED_ORACLE_H
#define KGRPO_EVALUATOR_SHARED_ORACLE_H

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evaluator_shared/comparison.h"  // Expected
#include "evaluator_shared/inputs.h"      // Argument
#include "evaluator_shared/problem.h"     // Problem

namespace kgrpo::evaluator {

class Oracle {
 public:
  // Compiles `problem.oracle_source` (which must be there), or loads what an earlier call left in `cache_directory`.
  // Throws Error(KGRPO_ERROR_INVALID) with the compiler's words where it does not compile,
  // Error(KGRPO_ERROR_UNAVAILABLE) where there is no g++ (or the compiler that CXX names).
  static std::shared_ptr<const Oracle> Load(const Problem& problem, const std::string& cache_directory);
  ~Oracle();
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  // The digest of what it was compiled from, how and by which compiler.
  const std::string& build() const { return build_; }

  // What each output and inout must hold after the call; by parameter, empty for inputs and scalars. [any thread, if
  // oracle.cc keeps no state]
  std::vector<Expected> Run(const Problem& problem, const std::vector<Argument>& arguments) const;

 private:
  using Call = void (*)(void** tensors, const double* reals, const int64_t* wholes);
  Oracle(void* library, Call call, std::string build) : library_(library), call_(call), build_(std::move(build)) {}

  void* library_;
  Call call_;
  const std::string build_;
};

}  // namespace kgrpo::evaluator

#endif
