// bigram_policy.h - a kgrpo.policy/1 whose every number can be checked: logits of the next token are
// table[previous token] + bias, gradients are exact. tests/golden/trainer/make_updates.py has the same model.
#ifndef KGRPO_TESTS_TRAINER_BIGRAM_POLICY_H
#define KGRPO_TESTS_TRAINER_BIGRAM_POLICY_H
#include <kgrpo/policy.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace kgrpo::testing {

// Its text is bytes: encode gives a byte's value modulo the vocabulary less 3, plus 3; ids 0, 1 and 2 are padding, the
// opening of a message and its end. encode_chat writes 1, the content, 2 for each message, and 1 to open an answer.
class BigramPolicy {
 public:
  explicit BigramPolicy(size_t vocabulary, bool bfloat16 = false);
  BigramPolicy(const BigramPolicy&) = delete;
  BigramPolicy& operator=(const BigramPolicy&) = delete;

  static const kgrpo_policy_interface& Api();
  kgrpo_policy* get() { return reinterpret_cast<kgrpo_policy*>(this); }

  // Parameters as numbers; setting rounds to the stored type. Parameter 0 is the table, with weight decay; parameter 1
  // is the bias, without.
  std::vector<double> Values(size_t parameter) const;
  void SetValues(size_t parameter, const std::vector<double>& values);
  void FillRandomly(uint64_t seed);
  std::vector<float>& gradient(size_t parameter) { return parameters_[parameter].gradient; }
  kgrpo_tensor& gradient_tensor(size_t parameter) { return parameters_[parameter].gradient_tensor; }
  void FreezeReference();
  void ReadChatArguments() { info_.reads_chat_arguments = 1; }
  // `ids` live as long as the policy does.
  void SetEnds(const std::vector<int32_t>& ids) { info_.end_ids = ids.data(), info_.end_id_count = ids.size(); }
  int32_t generation_prompt = 1;  // what encode_chat writes to open an answer

  // Log-probabilities and entropies of a completion's tokens.
  void Score(const kgrpo_sequence& sequence, kgrpo_policy_copy copy, double temperature, float* logprobs,
             float* entropies) const;

  // Fault injection and observation.
  int forwards = 0;                         // forward calls so far
  int live_contexts = 0;                    // contexts not ended yet
  std::set<int> poison_forwards;            // these calls return NaN log-probabilities
  int poison_gradient = -1;                 // the backward of this forward adds an infinity
  bool always_poison = false;               // all calls return NaN
  int fail_forward = -1;                    // this call fails
  bool fail_between_pieces = false;         // backward_in_pieces fails after it has reported the first piece
  std::vector<std::string> chat_arguments;  // of each encode_chat, once ReadChatArguments was called
  std::vector<std::string>* log = nullptr;  // of backward_in_pieces: "piece", "backward ends"
  std::vector<size_t> forward_sizes;        // sequences of each call
  std::vector<const int32_t*> scored;       // the prompt of each sequence of each call

 private:
  friend struct BigramApi;
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> wide;       // the values, when float32
    std::vector<uint16_t> narrow;  // the values, when bfloat16
    std::vector<float> gradient;
    kgrpo_tensor value_tensor, gradient_tensor;
    kgrpo_parameter view;
    const kgrpo_parameter* pointer;  // to view: a group's array of one
  };
  double Value(size_t parameter, size_t index) const;
  std::vector<double> Distribution(int32_t previous, kgrpo_policy_copy copy, double temperature) const;

  size_t vocabulary_;
  bool bfloat16_;
  Tensor parameters_[2];
  kgrpo_parameter frozen_ = {};
  const kgrpo_parameter* frozen_pointer_ = &frozen_;
  kgrpo_parameter_group groups_[3] = {};
  const kgrpo_parameter_group* group_pointers_[3] = {};
  std::vector<double> reference_[2];
  kgrpo_policy_info info_ = {};
  int32_t end_id_ = 2;
};

}  // namespace kgrpo::testing
#endif
