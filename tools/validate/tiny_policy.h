// A language model of 32 tokens on the CPU, in this process: what `plugins validate` gives a trainer to train. The
// likelihood of a token depends on the one before it alone, through a matrix, and on a bias.
#ifndef KGRPO_VALIDATE_TINY_POLICY_H
#define KGRPO_VALIDATE_TINY_POLICY_H

#include <kgrpo/policy.h>

#include <vector>

namespace kgrpo::validate {

class TinyPolicy {
 public:
  static constexpr int32_t kVocabulary = 32;

  TinyPolicy();
  TinyPolicy(const TinyPolicy&) = delete;
  TinyPolicy& operator=(const TinyPolicy&) = delete;

  // The table; generate, the chat and the files are refused. `raw` is this object.
  static const kgrpo_policy_interface* api();
  kgrpo_policy* raw() { return reinterpret_cast<kgrpo_policy*>(this); }

  // All parameters, one after the other.
  std::vector<float> Values() const;
  // Log-probabilities under the current parameters, as rollouts record them.
  std::vector<float> LogProbabilities(const kgrpo_sequence& sequence, double temperature) const;

 private:
  friend struct TinyPolicyTable;

  struct Parameters {
    std::vector<float> matrix, bias;
  };
  // Log-probabilities of every token after `previous`.
  static std::vector<double> Row(const Parameters& parameters, int32_t previous, double temperature);

  Parameters value_, gradient_, reference_;
  int64_t matrix_shape_[2] = {kVocabulary, kVocabulary}, bias_shape_[1] = {kVocabulary};
  kgrpo_tensor tensors_[4]{};
  kgrpo_parameter parameters_[2]{};
  const kgrpo_parameter* pointers_[2] = {&parameters_[0], &parameters_[1]};
  kgrpo_parameter_group groups_[2]{};
  const kgrpo_parameter_group* group_pointers_[2] = {&groups_[0], &groups_[1]};
  int32_t end_id_ = 0;
  kgrpo_policy_info info_{};
};

}  // namespace kgrpo::validate
#endif
