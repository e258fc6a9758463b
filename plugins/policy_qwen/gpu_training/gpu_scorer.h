// Log-probabilities of completions on a GPU, and their derivative: the transformer of gpu_transformer.h under a head
// whose logits exist a block of rows at a time. Used by policy.cc for Policy::Forward and Backward on a GPU.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_SCORER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_SCORER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "policy_qwen/gpu_training/gpu_ops.h"
#include "policy_qwen/gpu_training/gpu_transformer.h"
#include "policy_qwen/model/config.h"
#include "policy_qwen/model/parameters.h"

namespace kgrpo::policy {

// Sequences that went through the model together, and what their backward needs.
struct GpuPass {
  GpuBatch batch;
  at::Tensor targets;      // int64 [outputs]
  at::Tensor hidden;       // [outputs, hidden]
  at::Tensor normalizers;  // float32 [outputs]: log of the sum over the vocabulary
  GpuActivations activations;
};

// One thread, inside an InferenceMode with the device current. An allocation that fails throws c10::OutOfMemoryError.
class GpuScorer {
 public:
  // `config`, `rotary` (the same table as generation's) and `kernels` outlive the scorer. `free_bytes` returns the free
  // memory in bytes.
  GpuScorer(const ModelConfig& config, at::ScalarType dtype, at::Device device, RotaryTable& rotary,
            const GpuKernels& kernels, std::function<int64_t()> free_bytes);

  struct Result {
    at::Tensor logprobs;   // float32 [outputs], sequence after sequence
    at::Tensor entropies;  // likewise, nats; undefined unless wanted
    GpuPass pass;          // only with `gradient`
  };
  // Scores each sequence's targets under softmax(logits / temperature). With `gradient`, keeps what Backward needs: all
  // activations if they take at most `memory` bytes (unset: half of the device's free memory), else the layers' inputs,
  // from which the backward pass computes each layer again.
  Result Forward(const Weights& weights, const std::vector<PackedSequence>& sequences,
                 const std::vector<int64_t>& targets, double temperature, bool want_entropies, bool gradient,
                 std::optional<int64_t> memory);

  // Adds to `gradients` the derivative of sum(d_logprobs logprobs); d_logprobs float32 [outputs] on the device. `done`
  // may be empty.
  void Backward(const Weights& weights, const Weights& gradients, GpuPass pass, double temperature,
                const at::Tensor& d_logprobs, const LayerDone& done = {});

  int64_t BytesARow(Keep keep) const { return transformer_.BytesARow(keep, dtype_); }
  // Bytes of `free` that activations may take if no option sets a limit.
  static int64_t RoomForActivations(int64_t free);

 private:
  int64_t RowsABlock() const;

  const ModelConfig& config_;
  at::ScalarType dtype_;
  at::Device device_;
  std::function<int64_t()> free_bytes_;
  GpuOps ops_;
  GpuTransformer transformer_;
  RotaryTable& rotary_;
};

// Free bytes of the GPU, including those that libtorch holds without using them.
int64_t FreeBytesOf(at::Device device);
int64_t TotalBytesOf(at::Device device);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_SCORER_H_
