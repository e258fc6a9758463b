// A problem's `needs` beside what a kernel was counted to do: kgrpo_evaluator_tools.explain_bound, which
// `kgrpo-host eval --dispute-bound` prints. Used by judge/front/front.cc.
#pragma once

#include <kgrpo/support/evaluation.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace kgrpo::evaluator {

// Of one kernel at the problem's timing size.
struct Bound {
  double needed_bytes = 0, tensor_bytes = 0, dram_bytes = 0;  // problem.yaml; every tensor once; counted
  double needed_operations = 0, counted_operations = 0;       // floating-point; at most
  double roofline_seconds = 0, seconds = 0;                   // of the needs; of the kernel

  // True if the kernel is faster than the device's rates and the needs allow.
  bool IsBeaten() const;
  // Conclusions for kernel and problem, in sentences.
  std::string Conclusion() const;
  // All of it, as lines for a terminal.
  std::string ToText() const;
  nlohmann::ordered_json ToJson() const;
};

// Nothing where the evaluator counts no traffic, or the kernel did not get as far as its time.
std::optional<Bound> BoundOf(const Evaluation& evaluation);

}  // namespace kgrpo::evaluator
