#include "trainer_shared/policy_client.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/tensor.h>

#include <utility>

namespace kgrpo::trainer {

TokenScores PolicyClient::Forward(std::span<const kgrpo_sequence> sequences, kgrpo_policy_copy copy, double temperature,
                                  kgrpo_forward_context** context) {
  size_t tokens = 0;
  for (const kgrpo_sequence& sequence : sequences) tokens += sequence.completion_size;
  TokenScores scores;
  scores.logprobs.resize(tokens);
  if (context != nullptr) scores.entropies.resize(tokens);
  kgrpo_forward_request request = {};
  request.struct_size = sizeof(request);
  request.sequences = sequences.data();
  request.sequence_count = sequences.size();
  request.copy = copy;
  request.temperature = temperature;
  request.need_gradient = context != nullptr;
  const FloatTensor logprobs(scores.logprobs.data(), tokens), entropies(scores.entropies.data(), tokens);
  Check(api_->forward(policy_, &request, logprobs.c(), context != nullptr ? entropies.c() : nullptr, context));
  return scores;
}

TokenScores PolicyClient::Score(std::span<const kgrpo_sequence> sequences, kgrpo_policy_copy copy, double temperature) {
  return Forward(sequences, copy, temperature, nullptr);
}

void PolicyClient::ZeroGradients() {
  Check(api_->zero_gradients(policy_));
}

void PolicyClient::FreezeReference() {
  Check(api_->freeze_reference(policy_));
}

PolicyClient::Pass::~Pass() {
  if (context_ != nullptr) client_.api_->release_context(client_.policy_, context_);
}

TokenScores PolicyClient::Pass::Forward(std::span<const kgrpo_sequence> sequences, double temperature) {
  return client_.Forward(sequences, KGRPO_POLICY_CURRENT, temperature, &context_);
}

void PolicyClient::Pass::Backward(const std::vector<float>& gradient) {
  const FloatTensor dlogprobs(gradient.data(), gradient.size());
  // backward ends the context even when it fails.
  Check(client_.api_->backward(client_.policy_, std::exchange(context_, nullptr), dlogprobs.c()));
}

}  // namespace kgrpo::trainer
