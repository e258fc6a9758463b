// Batched generation with a cache of keys and values: reads the prompts, then writes a token of every sequence a step,
// until each has ended. Used by the policy.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_GENERATOR_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "policy_qwen/model/sampler.h"
#include "policy_qwen/model/transformer.h"

namespace kgrpo::policy {

struct GenerationRequest {
  std::vector<int32_t> prompt;  // valid ids, at least one, fewer than the context holds
  uint64_t seed = 0;            // of the sequence: the draw at position i of the completion depends on (seed, i)
};

struct Completion {
  size_t request = 0;  // index into the requests
  std::vector<int32_t> ids;
  std::vector<float> logprobs;  // of ids, under logits / temperature over the full vocabulary
  bool ended = false;           // by an end token, which is the last of ids; else by length
};

struct GenerationLimits {
  int64_t max_sequences = 256;          // generated at a time
  int64_t max_tokens_per_chunk = 8192;  // of prompts, read at a time
};

// Writes a completion of every request and hands it to `sink` as soon as it is finished, in any order. Identical
// prompts are read once. Calls `cancelled` before every step, and throws KGRPO_ERROR_CANCELLED if it returns true.
void Generate(const ModelConfig& config, const Weights& weights, RotaryTable& rotary, const GenerationLimits& limits,
              const std::vector<GenerationRequest>& requests, const SamplingOptions& options,
              const std::function<void(const Completion&)>& sink, const std::function<bool()>& cancelled);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_GENERATOR_H_
