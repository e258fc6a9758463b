// Estimates the device memory of a policy and its training, by part, and whether it fits. hosted_policy.cc logs it
// before the first step; policy_scoring.cc fills in the parts.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MEMORY_NEEDS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MEMORY_NEEDS_H_

#include <cstdint>
#include <string>

namespace kgrpo::policy {

// All in bytes unless a name says otherwise.
struct MemoryNeeds {
  std::string part = "policy";           // of the pipeline
  bool trains = true;                    // false: weights and cache are all
  uint64_t parameters = 0, trained = 0;  // counts
  uint64_t weights = 0;                  // allocated already
  bool has_adapter = false;              // then a reference needs no second copy of the weights
  uint64_t adapter = 0, merged = 0;      // the adapter's factors; the merged weights for generation
  bool masters = false;                  // AdamW keeps float32 copies of the trained parameters
  uint32_t ranks = 1;                    // AdamW's state is divided among them
  uint64_t chunk_tokens = 0;             // tokens that go through the model at a time
  uint64_t activations = 0;              // of a chunk, kept for its backward pass
  uint64_t least_activations = 0;        // kept if the backward pass computes layers again
  uint64_t activation_limit = 0;         // above it, layers are computed again
  uint64_t cache = 0;                    // of generation; 0: grows with the sequences
  uint64_t cache_token = 0;              // of a token in the cache
  uint64_t free = 0, total = 0;          // of the device, after the weights are loaded; 0: unknown

  uint64_t gradients() const { return trained * 4; }
  uint64_t reference() const { return has_adapter || !trains ? 0 : weights; }
  uint64_t optimizer() const;  // this rank's share
  // Activations kept of a chunk: within the limit if computing layers again achieves that.
  uint64_t kept_activations() const;
  // Memory still to be allocated, without a reference.
  uint64_t further() const;
};

// "494 of 494 parameters train; memory: weights 2 MiB, ..., and GPU 81000 of 81559 MiB free".
std::string MemoryText(const MemoryNeeds& needs);
// Names the part that will not fit and the option that lowers it; empty if all fits or the free memory is unknown.
std::string MemoryWarning(const MemoryNeeds& needs);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MEMORY_NEEDS_H_
