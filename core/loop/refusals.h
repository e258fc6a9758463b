// Counts the coder's answers without a kernel, and the commonest reason for them. Used by the evaluation of policies
// (loop/evaluate_policy.h) and by `kgrpo-host optimize`.
#ifndef KGRPO_LOOP_REFUSALS_H
#define KGRPO_LOOP_REFUSALS_H

#include <cstdint>
#include <map>
#include <string>

namespace kgrpo {

class Refusals {
 public:
  void AddKernel() { ++answers_; }
  // Adds an answer without a kernel. `message`: the coder's.
  void Add(const std::string& message);

  uint64_t answers() const { return answers_; }
  uint64_t without_kernel() const { return without_kernel_; }
  const std::string& commonest() const { return commonest_; }  // empty where every answer was a kernel

  // "56 of 128 answers; the commonest reason, 40 times: it has no loop"; empty where every answer was a kernel.
  std::string Text() const;

 private:
  uint64_t answers_ = 0, without_kernel_ = 0, commonest_times_ = 0;
  std::map<std::string, uint64_t> times_;  // by message
  std::string commonest_;
};

}  // namespace kgrpo
#endif
