#include "judge/report/bound.h"

#include <utility>
#include <vector>

#include <kgrpo/support/metrics.h>  // ValueOf
#include <kgrpo/support/number_text.h>

namespace kgrpo::evaluator {
namespace {

constexpr double kLess = 0.98;  // what is counted is extrapolated from some blocks

}  // namespace

bool Bound::IsBeaten() const { return seconds < roofline_seconds; }

std::string Bound::Conclusion() const {
  std::string text;
  if (dram_bytes < kLess * needed_bytes) {
    text += "The kernel moves " + Scaled(dram_bytes, "B") + " of the " + Scaled(needed_bytes, "B") +
            " that needs.bytes asks for. ";
    if (needed_bytes > tensor_bytes) {
      text += "Every tensor once is " + Scaled(tensor_bytes, "B") +
              ", so needs.bytes asks for more than any kernel has to move: lower it. ";
    } else if (dram_bytes < kLess * tensor_bytes) {
      text += "That is less than every tensor once (" + Scaled(tensor_bytes, "B") +
              "): it skips a part, or that part stays in the L2. If the results do not depend on all of it, lower "
              "needs.bytes to what they depend on; else the kernel leaves work out. ";
    }
  }
  if (counted_operations < kLess * needed_operations) {
    text += "It does at most " + Scaled(counted_operations, "") + " of the " + Scaled(needed_operations, "") +
            " operations that needs.flops asks for. If fewer give the same results (by another algorithm, or since "
            "some are known "
            "beforehand), lower needs.flops to that; else the kernel leaves work out. ";
  }
  if (text.empty()) {
    text = seconds < roofline_seconds
               ? "It moves and does all that is needed, and is faster than the device's rates allow: the time is in "
                 "doubt, not the bound. "
               : "The kernel moves and does at least what the problem needs: the bound holds. ";
  }
  text.pop_back();
  return text;
}

std::string Bound::ToText() const {
  return "The bound (needs of problem.yaml, at the timing size)\n"
         "  bytes       needed " +
         Scaled(needed_bytes, "B") + ", counted " + Scaled(dram_bytes, "B") + ", every tensor once " +
         Scaled(tensor_bytes, "B") + "\n  operations  needed " + Scaled(needed_operations, "") + ", counted at most " +
         Scaled(counted_operations, "") + "\n  time        needed " + FormatSeconds(roofline_seconds) +
         ", this kernel " + FormatSeconds(seconds) + "\n  " + Conclusion() + "\n";
}

nlohmann::ordered_json Bound::ToJson() const {
  return {{"needed_bytes", needed_bytes},
          {"tensor_bytes", tensor_bytes},
          {"counted_bytes", dram_bytes},
          {"needed_operations", needed_operations},
          {"counted_operations", counted_operations},
          {"roofline_seconds", roofline_seconds},
          {"seconds", seconds},
          {"beaten", IsBeaten()},
          {"conclusion", Conclusion()}};
}

std::optional<Bound> BoundOf(const Evaluation& evaluation) {
  Bound bound;
  const std::vector<std::pair<const char*, double*>> wanted = {{"needed_bytes", &bound.needed_bytes},
                                                               {"tensor_bytes", &bound.tensor_bytes},
                                                               {"dram_bytes", &bound.dram_bytes},
                                                               {"needed_operations", &bound.needed_operations},
                                                               {"counted_operations", &bound.counted_operations},
                                                               {"roofline_seconds", &bound.roofline_seconds},
                                                               {"modelled_seconds", &bound.seconds}};
  for (const auto& [name, value] : wanted) {
    const std::optional<double> found = ValueOf(evaluation.metrics, name);
    if (!found) return std::nullopt;
    *value = *found;
  }
  return bound;
}

}  // namespace kgrpo::evaluator
