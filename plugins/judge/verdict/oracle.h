// A problem's expected outputs, in float64: by oracle.cc, compiled once by the host's g++ and kept in the cache
// directory, called in a process of its own (source_oracle.cc); or by TorchScript files, likewise (torch_oracle.cc).
// Trusted code, as the problem's author is. Called by the evaluators for each (size, seed).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "judge/inputs/inputs.h"       // Argument
#include "judge/problem/problem.h"     // Problem
#include "judge/verdict/comparison.h"  // Expected

namespace kgrpo::evaluator {

// [any thread]
class Oracle {
 public:
  // Null where the reference kernel is the oracle, and where there is a checker. Of oracle.cc it compiles the source,
  // or loads what an earlier call left in `cache_directory`. Throws Error(KGRPO_ERROR_INVALID) with the compiler's
  // words where it does not compile, Error(KGRPO_ERROR_UNAVAILABLE) where there is no g++ (or the compiler that CXX
  // names).
  static std::shared_ptr<const Oracle> Load(const Problem& problem, const std::string& cache_directory);
  virtual ~Oracle() = default;
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  // The digest of what it was made from and how.
  const std::string& build() const { return build_; }

  // Expected values of each output and inout after the call at one of the problem's sizes; by parameter, empty for
  // inputs and scalars. Throws Error where it cannot be computed.
  virtual std::vector<Expected> Run(const Problem& problem, const Bindings& size,
                                    const std::vector<Argument>& arguments) const = 0;

 protected:
  explicit Oracle(std::string build) : build_(std::move(build)) {}

 private:
  const std::string build_;
};

class TrustedLibrary;

// checker.cc, in place of an oracle: decides whether outputs are right, where several are (order, random numbers).
// Trusted code, but it reads what a candidate computed: it runs in a process of its own, whose end by a signal is a
// result. [any thread]
class Checker {
 public:
  struct Result {
    bool right = false;
    bool failed = false;   // the checker crashed, threw or did not finish
    std::string sentence;  // why the outputs are not right
  };

  // Null without checker.cc. Throws as Oracle::Load does.
  static std::shared_ptr<const Checker> Load(const Problem& problem, const std::string& cache_directory);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // `outputs`: the bytes of each output, by parameter. Throws Error if no process can be made.
  Result Check(const Problem& problem, const std::vector<Argument>& arguments,
               const std::vector<std::vector<uint8_t>>& outputs) const;

 private:
  explicit Checker(std::unique_ptr<const TrustedLibrary> library);

  const std::unique_ptr<const TrustedLibrary> library_;
};

// The oracle of a problem with oracle.cc, of one with `oracle: torchscript`. Used by Load.
std::shared_ptr<const Oracle> LoadSourceOracle(const Problem& problem, const std::string& cache_directory);
std::shared_ptr<const Oracle> LoadTorchOracle(const Problem& problem);

}  // namespace kgrpo::evaluator
