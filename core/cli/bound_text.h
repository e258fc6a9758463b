// The output of `kgrpo-host eval --kernel --dispute-bound`: a problem's `needs` beside the counted work. Used by
// eval_command.cc.
#ifndef KGRPO_CLI_BOUND_TEXT_H
#define KGRPO_CLI_BOUND_TEXT_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "plugin/records.h"  // Evaluation

namespace kgrpo::cli {

// Of one kernel at the problem's timing size.
struct Bound {
  double needed_bytes = 0, tensor_bytes = 0, dram_bytes = 0;  // problem.yaml; every tensor once; counted
  double needed_operations = 0, counted_operations = 0;       // floating-point; at most
  double roofline_seconds = 0, seconds = 0;                   // of the needs; of the kernel

  // True if the kernel is faster than the device's rates and the needs allow.
  bool IsBeaten() const;
  // Conclusions for kernel and problem, in sentences.
  std::string Conclusion() const;
  nlohmann::ordered_json ToJson() const;
};

// Nothing where the evaluator counts no traffic, or the kernel did not get as far as its time.
std::optional<Bound> BoundOf(const Evaluation& evaluation);

void PrintBound(const Bound& bound);

}  // namespace kgrpo::cli
#endif
