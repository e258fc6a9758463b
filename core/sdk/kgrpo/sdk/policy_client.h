// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/policy_client.h - kgrpo.policy/1 as trainers call it, in C++: log-probabilities, their backward,
// parameters.
#ifndef KGRPO_SDK_POLICY_CLIENT_H
#define KGRPO_SDK_POLICY_CLIENT_H
#include <kgrpo/policy.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/tensor.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// Log-probabilities of all completion tokens, sequence after sequence. Entropies (nats) are computed only with a
// gradient, because they cost time and those of a fixed policy are not used.
struct TokenScores {
  std::vector<float> logprobs;
  std::vector<float> entropies;
};

// A trainable parameter on the CPU: `size` float32 numbers and their gradients, the policy's.
struct FloatParameter {
  std::string name;
  float* values;
  const float* gradients;
  size_t size;
  bool decay;  // weight decay applies
};

// Borrows the policy. One thread. Every function throws the policy's error. `Sequences` is a contiguous container of
// kgrpo_sequence: a std::vector, a std::array.
class PolicyClient {
 public:
  PolicyClient(const kgrpo_policy_interface& api, kgrpo_policy* policy) : api_(&api), policy_(policy) {}

  // Scores under one copy of the parameters; nothing to differentiate.
  template <typename Sequences>
  TokenScores Score(const Sequences& sequences, kgrpo_policy_copy copy, double temperature) {
    return Forward(std::data(sequences), std::size(sequences), copy, temperature, nullptr);
  }

  // Scores under the current parameters, calls loss_gradient(scores) for the derivative of the loss by each
  // log-probability, and lets the policy add the parameters' gradients. Nothing is added if loss_gradient returns an
  // empty vector. `final`, if given, receives final pieces of the gradients, if the policy has backward_in_pieces: pass
  // it only with the last call before the gradients are used.
  template <typename Sequences, typename LossGradient>
  void Differentiate(const Sequences& sequences, double temperature, LossGradient&& loss_gradient,
                     const kgrpo_gradient_sink* final = nullptr) {
    Pass pass{this};
    const TokenScores scores =
        Forward(std::data(sequences), std::size(sequences), KGRPO_POLICY_CURRENT, temperature, &pass.context);
    const std::vector<float> gradient = loss_gradient(scores);
    if (!gradient.empty()) pass.Backward(gradient, final);
  }

  void ZeroGradients() { Check(api_->zero_gradients(policy_)); }
  void FreezeReference() { Check(api_->freeze_reference(policy_)); }

  // Returns the trainable parameters, valid as long as the policy, for an optimiser that loops over them. Throws
  // KGRPO_ERROR_UNSUPPORTED if one is not contiguous float32 on the CPU. Hold the policy's device (info().device) while
  // you write.
  std::vector<FloatParameter> TrainableFloats() const {
    const kgrpo_parameter_group* const* groups = nullptr;
    size_t count = 0;
    Check(api_->parameters(policy_, &groups, &count));
    std::vector<FloatParameter> found;
    for (size_t g = 0; g < count; ++g) {
      for (size_t p = 0; groups[g]->trainable != 0 && p < groups[g]->parameter_count; ++p) {
        const kgrpo_parameter& parameter = *groups[g]->parameters[p];
        const std::string name = Copy(parameter.name);
        size_t size = 1;
        for (int32_t d = 0; d < parameter.value->ndim; ++d) size *= static_cast<size_t>(parameter.value->shape[d]);
        found.push_back(
            {name, Floats(*parameter.value, name), Floats(*parameter.gradient, name), size, groups[g]->decay != 0});
      }
    }
    return found;
  }

  const kgrpo_policy_info& info() const { return *api_->info(policy_); }
  const kgrpo_policy_interface& api() const { return *api_; }
  kgrpo_policy* policy() const { return policy_; }

 private:
  // A forward pass; the destructor releases a context that backward has not ended.
  struct Pass {
    PolicyClient* client;
    kgrpo_forward_context* context = nullptr;

    explicit Pass(PolicyClient* its_client) : client(its_client) {}
    ~Pass() {
      if (context != nullptr) client->api_->release_context(client->policy_, context);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    void Backward(const std::vector<float>& gradient, const kgrpo_gradient_sink* final) {
      const FloatTensor dlogprobs(gradient.data(), gradient.size());
      const kgrpo_policy_interface& api = *client->api_;
      const bool tells = final != nullptr && api.backward_in_pieces != nullptr;
      // backward ends the context even when it fails.
      kgrpo_forward_context* const ended = std::exchange(context, nullptr);
      Check(tells ? api.backward_in_pieces(client->policy_, ended, dlogprobs.c(), *final)
                  : api.backward(client->policy_, ended, dlogprobs.c()));
    }
  };

  TokenScores Forward(const kgrpo_sequence* sequences, size_t count, kgrpo_policy_copy copy, double temperature,
                      kgrpo_forward_context** context) {
    size_t tokens = 0;
    for (size_t i = 0; i < count; ++i) tokens += sequences[i].completion_size;
    TokenScores scores;
    scores.logprobs.resize(tokens);
    if (context != nullptr) scores.entropies.resize(tokens);
    kgrpo_forward_request request = {};
    request.struct_size = sizeof(request);
    request.sequences = sequences;
    request.sequence_count = count;
    request.copy = static_cast<uint32_t>(copy);
    request.temperature = temperature;
    request.need_gradient = context != nullptr ? 1 : 0;
    const FloatTensor logprobs(scores.logprobs.data(), tokens), entropies(scores.entropies.data(), tokens);
    Check(api_->forward(policy_, &request, logprobs.c(), context != nullptr ? entropies.c() : nullptr, context));
    return scores;
  }

  static float* Floats(const kgrpo_tensor& tensor, const std::string& name) {
    int64_t compact = 1;
    bool fits =
        tensor.device.type == KGRPO_DEVICE_CPU && tensor.dtype.code == KGRPO_DTYPE_FLOAT && tensor.dtype.bits == 32;
    for (int32_t d = tensor.ndim; d-- > 0; compact *= tensor.shape[d])
      fits = fits && (tensor.strides == nullptr || tensor.shape[d] <= 1 || tensor.strides[d] == compact);
    if (!fits) {
      throw Error(KGRPO_ERROR_UNSUPPORTED,
                  "parameter " + name + " is not float32 on the CPU; choose a policy that runs there in float32");
    }
    return reinterpret_cast<float*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
  }

  const kgrpo_policy_interface* api_;
  kgrpo_policy* policy_;
};

}  // namespace kgrpo
#endif
