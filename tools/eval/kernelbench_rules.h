// The column "as KernelBench counts" of eval suite: which verdicts of an evaluator under `rules: kernelbench` count
// as correct in KernelBench's own evaluation, and its files of PyTorch's times. Used by suite.cc.
#ifndef KGRPO_EVAL_KERNELBENCH_RULES_H
#define KGRPO_EVAL_KERNELBENCH_RULES_H

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace kgrpo::cli {

// True if KernelBench counts a kernel of this verdict as correct: it only compares outputs.
bool CountsAsCorrect(const std::string& verdict);

// A file in the form of KernelBench's results/timing/*/baseline_time_torch.json: the mean milliseconds of PyTorch for
// each problem, on one device.
class PytorchTimes {
 public:
  PytorchTimes() = default;
  // Throws Error(KGRPO_ERROR_NOT_FOUND) where the file cannot be read, Error(KGRPO_ERROR_INVALID) where it has another
  // form or no times.
  explicit PytorchTimes(const std::string& file);

  // Time for the problem with this name, as imported ("kb_l1_019_relu"), in seconds.
  std::optional<double> SecondsOf(const std::string& problem) const;

  // The device's name; empty where the file names none.
  const std::string& hardware() const { return hardware_; }

 private:
  std::map<std::pair<int, int>, double> seconds_;  // by level and number
  std::string hardware_;
};

}  // namespace kgrpo::cli
#endif
