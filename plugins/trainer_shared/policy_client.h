// policy_client.h - kgrpo.policy/1 as the trainers call it: log-probabilities with or without a backward to come, in
// C++.
#ifndef KGRPO_TRAINER_SHARED_POLICY_CLIENT_H
#define KGRPO_TRAINER_SHARED_POLICY_CLIENT_H
#include <kgrpo/policy.h>

#include <cstddef>
#include <span>
#include <vector>

namespace kgrpo::trainer {

// Log-probabilities of all completion tokens, sequence after sequence; entropies (nats) where a gradient is wanted:
// nobody asks for those of a fixed policy, and they are not free.
struct TokenScores {
  std::vector<float> logprobs;
  std::vector<float> entropies;
};

// Borrows the policy. One thread. Every function throws what the policy failed with.
class PolicyClient {
 public:
  PolicyClient(const kgrpo_policy_interface& api, kgrpo_policy* policy) : api_(&api), policy_(policy) {}

  // Scores under one copy of the parameters; nothing to differentiate.
  TokenScores Score(std::span<const kgrpo_sequence> sequences, kgrpo_policy_copy copy, double temperature);

  // Scores under the current parameters, calls loss_gradient(scores) for the derivative of the loss by each
  // log-probability, and has the policy add the parameters' gradients. When loss_gradient returns an empty vector,
  // nothing is added.
  template <typename LossGradient>
  void Differentiate(std::span<const kgrpo_sequence> sequences, double temperature, LossGradient&& loss_gradient) {
    Pass pass(*this);
    const TokenScores scores = pass.Forward(sequences, temperature);
    const std::vector<float> gradient = loss_gradient(scores);
    if (!gradient.empty()) pass.Backward(gradient);
  }

  void ZeroGradients();
  void FreezeReference();

  const kgrpo_policy_interface& api() const { return *api_; }
  kgrpo_policy* policy() const { return policy_; }

 private:
  // A forward pass whose context is ended whatever happens.
  class Pass {
   public:
    explicit Pass(PolicyClient& client) : client_(client) {}
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    TokenScores Forward(std::span<const kgrpo_sequence> sequences, double temperature);
    void Backward(const std::vector<float>& gradient);

   private:
    PolicyClient& client_;
    kgrpo_forward_context* context_ = nullptr;
  };

  TokenScores Forward(std::span<const kgrpo_sequence> sequences, kgrpo_policy_copy copy, double temperature,
                      kgrpo_forward_context** context);

  const kgrpo_policy_interface* api_;
  kgrpo_policy* policy_;
};

}  // namespace kgrpo::trainer
#endif
