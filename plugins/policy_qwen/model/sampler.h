// Draws a token from logits and one uniform number, which the caller takes from a keyed stream. Used by
// generation/cpu_model.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAMPLER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAMPLER_H_

#include <cstdint>
#include <span>
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

struct SampledToken {
  int32_t id;
  float logprob;  // under softmax(logits) over the full vocabulary, whatever the filters
};

// `logits`: of the vocabulary, already divided by the temperature (by 1 if that is 0). `uniform`: in [0, 1). The result
// depends, bit for bit, on the arguments only. Any thread.
SampledToken SampleToken(std::span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_SAMPLER_H_
