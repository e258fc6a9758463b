// What is known of a problem's correctness cases from earlier evaluations with the same key: expected outputs and their
// scales, which take an oracle or the reference kernel a call each. Kept by OpenProblem; used by both evaluators.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "judge/problem/cases.h"       // CorrectnessCase
#include "judge/verdict/comparison.h"  // Expected

namespace kgrpo::evaluator {

// [any thread]
class KnownCases {
 public:
  // What `compute` returned for this case before, or returns now. It is called without a lock; what it throws passes.
  std::vector<Expected> Outputs(const CorrectnessCase& one, const std::function<std::vector<Expected>()>& compute);
  std::vector<double> Scales(const CorrectnessCase& one, const std::function<std::vector<double>()>& compute);

 private:
  static constexpr size_t kMostBytes = size_t{8} << 20, kMostOfCase = size_t{512} << 10, kMostCases = 1024;
  struct Known {
    std::optional<std::vector<Expected>> outputs;
    std::optional<std::vector<double>> scales;
  };
  template <typename Value>
  Value Get(const CorrectnessCase& one, std::optional<Value> Known::*member, const std::function<Value()>& compute);

  std::mutex mutex_;
  std::map<std::string, Known> known_;
  size_t bytes_ = 0;
};

}  // namespace kgrpo::evaluator
