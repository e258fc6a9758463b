// The model on a GPU for the scheduler: weights as they lie there, the paged cache, buffers, and one CUDA graph of a
// decode step for each of a few numbers of rows and of positions. Used by generation_engine.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GPU_MODEL_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GPU_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy_qwen/gpu_generation/generation_scheduler.h"
#include "policy_qwen/gpu_generation/gpu_runtime.h"
#include "policy_qwen/gpu_generation/kernels.h"
#include "policy_qwen/model/config.h"

namespace kgrpo::policy {

// Device pointers to the tensors of parameters.h; null where the architecture has none.
struct GpuLayerWeights {
  const void *attention_norm, *query_key_value, *query_key_value_bias, *query_norm, *key_norm, *output, *output_bias,
      *mlp_norm, *gate_up, *gate_up_bias, *down, *down_bias;
};
struct GpuWeights {
  const void *embedding, *final_norm, *head;
  const void *cos, *sin;  // of all positions: [context, head size], [context, head size / 2]
  std::vector<GpuLayerWeights> layers;
};

// Device memory, released with the object.
class GpuMemory {
 public:
  GpuMemory() = default;
  // `what` names the use in the message if there is too little.
  GpuMemory(const GpuRuntime& runtime, int32_t device, uint64_t bytes, const std::string& what);
  template <typename T>
  T* As() const {
    return static_cast<T*>(data_.get());
  }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Release {
    const GpuRuntime* runtime;
    int32_t device;
    void operator()(void* data) const { runtime->release(device, data); }
  };
  std::unique_ptr<void, Release> data_;
  uint64_t bytes_ = 0;
};

// One thread at a time. Errors are kgrpo::Error.
class GpuModel final : public GenerationDevice {
 public:
  // Throws KGRPO_ERROR_UNSUPPORTED, naming the key of config.json, for shapes that the kernels do not cover.
  static void CheckShape(const ModelConfig& config);
  // Bytes of one page of the cache, over all layers.
  static uint64_t PageBytes(const ModelConfig& config, Element type);
  // Bytes of everything but the cache.
  static uint64_t BufferBytes(const ModelConfig& config, Element type, const SchedulerLimits& limits);

  // `config`, tables and weights outlive the model; the weights are on `device`. Takes limits.pages pages of the cache
  // at once.
  GpuModel(const ModelConfig& config, Element type, int32_t device, GpuWeights weights, const SchedulerLimits& limits,
           const GenerationKernels& kernels, const GpuRuntime& runtime);
  ~GpuModel() override;

  void Admit(int32_t slot, const Slot& start, std::span<const int32_t> pages) override;
  void ReadPrompts(std::span<const StepRow> rows, std::span<const int32_t> sampled) override;
  void Decode(std::span<const int32_t> slots, int32_t positions, int32_t steps) override;
  std::vector<Slot> ReadSlots() override;
  void Fetch(int32_t slot, Completion& completion) override;

 private:
  template <typename T>
  void Upload(const GpuMemory& to, size_t offset, std::span<const T> values) const;
  void MakeRoom(int64_t new_tokens, int64_t positions);
  void* DecodeGraph(int64_t rows, int64_t position_splits);
  void DropGraphs();
  // Queues one step. With `sampled` null every row is sampled, else `sampled_count` of them.
  void QueueStep(int64_t rows, int64_t position_splits, const int32_t* sampled, int64_t sampled_count);

  const ModelConfig& config_;
  const Element type_;
  const GpuWeights weights_;
  const SchedulerLimits limits_;
  const GenerationKernels& kernels_;
  const GpuRuntime& runtime_;
  const int64_t rows_;            // of a step, at most
  const int64_t attention_rows_;  // of a launch of attention, whose sums may be large
  const int32_t pages_per_slot_;
  GpuStream stream_;
  GpuMemory slots_, end_ids_, pages_, step_rows_, sampled_rows_, places_;
  GpuMemory x_, normed_, partial_, query_, attended_, gated_, logits_, sample_parts_;
  GpuMemory keys_, values_;  // [layers, pages, kv heads, kPageSize, head size]
  GpuMemory attention_sums_, attention_bounds_, attention_arrived_;
  GpuMemory ids_, logprobs_;  // [slots, new_tokens_]
  int64_t new_tokens_ = 0, position_splits_ = 0;
  std::map<std::pair<int64_t, int64_t>, void*> graphs_;  // by rows and position splits
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GPU_MODEL_H_
