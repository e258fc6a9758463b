// The head of the model: log-probabilities of given tokens from final hidden states, and the derivative. Works on a few
// rows at a time and computes logits again in the backward, so that [all rows, vocabulary] never exists.
// Used by the policy.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_TOKEN_LOGPROBS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_TOKEN_LOGPROBS_H_

#include <ATen/core/Tensor.h>

namespace kgrpo::policy {

// logits / temperature of final hidden states, float32 [rows, vocabulary].
at::Tensor Logits(const at::Tensor& hidden, const at::Tensor& head, double temperature);

// Results for each row's target under softmax(logits / temperature) over the full vocabulary.
struct TokenLogprobs {
  at::Tensor logprobs;   // float32 [rows]
  at::Tensor entropies;  // float32 [rows], nats; undefined unless wanted
};
TokenLogprobs ComputeTokenLogprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                   double temperature, bool want_entropies);

// Given d_logprobs (float32 [rows]), adds to head_gradient and returns the derivative by hidden.
at::Tensor TokenLogprobsBackward(const at::Tensor& d_logprobs, const at::Tensor& hidden, const at::Tensor& head,
                                 const at::Tensor& head_gradient, const at::Tensor& targets, double temperature);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_TOKEN_LOGPROBS_H_
