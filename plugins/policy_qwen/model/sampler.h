// Draws tokens from logits. The drawn token depends only on the logits and one uniform number a row, which the caller
// takes from a keyed stream. Used by generation/cpu_model.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAMPLER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAMPLER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace kgrpo::policy {

// Applied in the order of transformers: temperature, top_k, top_p, min_p.
struct SamplingOptions {
  int64_t max_new_tokens = 1;
  double temperature = 1.0;  // 0: the likeliest token always
  int64_t top_k = 0;         // only the k likeliest; 0: off
  double top_p = 1.0;        // only the fewest tokens that together reach this probability; 1: off
  double min_p = 0.0;        // only tokens at least this fraction as likely as the likeliest; 0: off
};

// Throws kgrpo::Error when an option is out of its range.
void CheckSamplingOptions(const SamplingOptions& options);

struct SampledTokens {
  std::vector<int64_t> ids;
  std::vector<float> logprobs;  // under softmax(logits) over the full vocabulary, whatever the filters
};

// `logits`: float32 [rows, vocabulary] on the CPU, compact, already divided by the temperature (by 1 if that is 0).
// `uniforms`: a number in [0, 1) for each row. A row's result depends, bit for bit, on that row only.
SampledTokens SampleTokens(const at::Tensor& logits, const SamplingOptions& options,
                           const std::vector<double>& uniforms);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAMPLER_H_
