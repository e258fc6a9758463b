// The model on a GPU for the scheduler: weights as they lie there, the paged cache, buffers, and one CUDA graph of a
// decode step for each of a few numbers of rows and of positions. Used by generation_engine.cc.
//
// A row has one role. Tokens of a prompt are prompt rows, also the last one, whose logits give the first new token, and
// tokens that a later request reads again. Sampled tokens are decode rows. With PromptOps the roles give different
// bits, without them the same; a row's role never depends on what else is read, shared or decoded.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GPU_MODEL_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GPU_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy_qwen/generation/generation_scheduler.h"
#include "policy_qwen/gpu/gpu_library.h"
#include "policy_qwen/gpu/gpu_runtime.h"
#include "policy_qwen/gpu/kernels.h"
#include "policy_qwen/model/config.h"
#include "policy_qwen/model/ops.h"
#include "policy_qwen/model/parameters.h"

namespace kgrpo::policy {

// A tensor's place in the device's memory; null for an undefined one.
inline const void* PlaceOf(const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }

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

// Sequences of prompt rows whose attention is computed together. A sequence is the rows of one slot in a chunk of
// prompts: its last rows so far. Pointers are to the device.
struct PromptGroup {
  int64_t first_row = 0, rows = 0;                              // of the chunk
  int64_t sequences = 0, positions = 0;                         // positions: of all its sequences, from 0 on
  int64_t longest_rows = 0, longest = 0;                        // of a sequence: its rows, its positions
  const int32_t *row_ends = nullptr, *position_ends = nullptr;  // [sequences + 1], cumulative, from 0
  const int32_t* slots = nullptr;                               // [sequences]
};

enum class PromptProduct { kQueryKeyValue, kOutput, kGateUp, kDown };
inline constexpr size_t kPromptProducts = 4;

// Operators of prompt rows in bfloat16: prompt_ops.h has those of a GPU, tests have others. They queue their work on
// the model's stream. A row's result depends on its own inputs only, bit for bit.
class PromptOps {
 public:
  virtual ~PromptOps() = default;
  // x weight^T: to `y`, in float32, for kQueryKeyValue; + bias to `y` for kGateUp; + bias added to `y` for the others.
  virtual void Product(PromptProduct which, const void* x, const void* weight, const void* bias, int64_t rows,
                       void* y) = 0;
  // y [count, hidden] = the rows of x [rows, hidden] that `which` (on the device) names.
  virtual void TakeRows(const void* x, int64_t rows, const int32_t* which, int64_t count, void* y) = 0;
  // Causal attention of query [group.rows, heads, size] over keys and values [group.positions, kv heads, size]; returns
  // [group.rows, heads, size], valid for work on the stream until the next call.
  virtual const void* Attention(const PromptGroup& group, const void* query, const void* keys, const void* values) = 0;
};

// One thread at a time. Errors are kgrpo::Error.
class GpuModel final : public GenerationDevice {
 public:
  // Throws KGRPO_ERROR_UNSUPPORTED, naming the key of config.json, for shapes that the kernels do not cover.
  static void CheckShape(const ModelConfig& config);
  // Bytes of one page of the cache, over all layers.
  static uint64_t PageBytes(const ModelConfig& config, Element type);
  // Bytes of everything but the cache.
  static uint64_t BufferBytes(const ModelConfig& config, Element type, const SchedulerLimits& limits,
                              bool has_prompt_ops);

  // `config`, tables, weights and stream outlive the model; the weights, and `angles` of all positions, are on the
  // stream's device and keep their addresses. Takes limits.pages pages of the cache at once. With `prompt_ops` null,
  // prompts are read position by position, as decode rows.
  GpuModel(const ModelConfig& config, Element type, GpuStream stream, const Weights& weights, RotaryAngles angles,
           const SchedulerLimits& limits, const GpuKernels& kernels, const GpuRuntime& runtime,
           std::unique_ptr<PromptOps> prompt_ops = nullptr);
  ~GpuModel() override;

  void Admit(int32_t slot, const Slot& start, std::span<const int32_t> pages) override;
  void ReadPrompts(std::span<const StepRow> rows, std::span<const int32_t> sampled) override;
  void Decode(std::span<const int32_t> slots, int32_t positions, int32_t steps) override;
  std::vector<Slot> ReadSlots() override;
  void Fetch(int32_t slot, Completion& completion) override;

 private:
  template <typename T>
  void Upload(const GpuMemory& to, size_t offset, std::span<const T> values) const {
    if (values.empty()) return;
    CheckGpu("generation", runtime_.upload(to.As<T>() + offset, values.data(), values.size_bytes(), stream_));
  }
  void MakeRoom(int64_t new_tokens, int64_t positions);
  void* DecodeGraph(int64_t rows, int64_t position_splits);
  void DropGraphs();
  // Sums of a product that are still to be added to the residual stream x, with its bias.
  struct Pending {
    const float* sums = nullptr;
    int64_t splits = 1;
    const void* bias = nullptr;
  };
  LayerCache CacheOf(size_t layer) const;
  HeadShape Heads() const;
  HeadSums SumsOf(const LayerWeights& w, int32_t splits) const;  // in partial_
  // These queue a step's parts, on the step's rows.
  void QueueEmbedding(const StepRow* step_rows, int64_t rows);
  void QueueNorm(void* x, const Pending& pending, const at::Tensor& weight, int64_t rows, const int32_t* gather,
                 int64_t out_rows);
  Pending QueueLayers(int64_t rows, int64_t position_splits);  // of decode rows
  void ReadByPosition(std::span<const StepRow> rows, std::span<const int32_t> sampled);
  // Returns the residual stream of the `count` sampled rows. Only these go through the last layer's MLP.
  void* QueuePromptLayers(int64_t rows, const std::vector<PromptGroup>& groups, const int32_t* sampled, int64_t count);
  // x: the residual stream of `rows` rows, of which `gather` names those to sample; null: all of them. They are the
  // rows `sampled` of the step, null likewise.
  void QueueSampling(void* x, const Pending& pending, int64_t rows, const int32_t* gather, const int32_t* sampled,
                     int64_t count);
  // Positions whose keys and values a group of prompts gathers at most. A single sequence always fits.
  static int64_t GroupPositions(const SchedulerLimits& limits);
  std::vector<PromptGroup> UploadGroups(std::span<const StepRow> rows);

  const ModelConfig& config_;
  const Element type_;
  const Weights& weights_;
  const RotaryAngles angles_;
  const SchedulerLimits limits_;
  const GpuKernels& kernels_;
  const GpuRuntime& runtime_;
  const std::unique_ptr<PromptOps> prompt_ops_;
  const int64_t rows_;  // that are computed at a time, at most
  const int32_t pages_per_slot_;
  const GpuStream stream_;
  GpuMemory slots_, end_ids_, pages_, step_rows_, sampled_rows_, places_;
  GpuMemory x_, normed_, partial_, query_, attended_, gated_, logits_, sample_parts_;
  GpuMemory keys_, values_;  // [layers, pages, kv heads, kPageSize, head size]
  GpuMemory attention_sums_, attention_bounds_, attention_arrived_;
  GpuMemory prompt_index_, prompt_keys_, prompt_values_, gate_up_;  // for prompt_ops_
  GpuMemory ids_, logprobs_;                                        // [slots, new_tokens_]
  int64_t new_tokens_ = 0, position_splits_ = 0;
  std::map<std::pair<int64_t, int64_t>, void*> graphs_;  // by rows and position splits
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GENERATION_GPU_MODEL_H_
