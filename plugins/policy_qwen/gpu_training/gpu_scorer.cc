#include "policy_qwen/gpu_training/gpu_scorer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "policy_qwen/model/ops.h"
#include "policy_qwen/model/tensors.h"

namespace kgrpo::policy {
namespace {

// Logits of a block of rows take at most this much. A block reads the head once, so it should hold many rows: 3,500 of
// Qwen's vocabulary in bfloat16.
constexpr int64_t kLogitsBytes = int64_t{1} << 30;
// Shares of the free memory: the most that logits may take, and the room for activations.
constexpr double kLogitsShare = 0.25, kActivationsShare = 0.5;

template <typename Body>
void ForBlocks(int64_t rows, int64_t a_block, Body&& body) {
  for (int64_t begin = 0; begin < rows; begin += a_block) body(begin, std::min(a_block, rows - begin));
}

}  // namespace

GpuScorer::GpuScorer(const ModelConfig& config, at::ScalarType dtype, at::Device device, RotaryTable& rotary,
                     const GpuKernels& kernels, std::function<int64_t()> free_bytes)
    : config_(config),
      dtype_(dtype),
      device_(device),
      free_bytes_(std::move(free_bytes)),
      ops_(kernels, device),
      transformer_(config, ops_),
      rotary_(rotary) {}

int64_t FreeBytesOf(at::Device device) {
  c10::DeviceAllocator& allocator = *c10::getDeviceAllocator(device.type());
  const auto stats = allocator.getDeviceStats(device.index());
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<int64_t>(allocator.getMemoryInfo(device.index()).first) + stats.reserved_bytes[kAll].current -
         stats.allocated_bytes[kAll].current;
}

int64_t TotalBytesOf(at::Device device) {
  return static_cast<int64_t>(c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).second);
}

int64_t GpuScorer::RoomForActivations(int64_t free) {
  return static_cast<int64_t>(kActivationsShare * static_cast<double>(free));
}

int64_t GpuScorer::RowsABlock() const {
  const int64_t a_row = config_.vocabulary_size * static_cast<int64_t>(c10::elementSize(dtype_));
  const int64_t bytes = std::min(kLogitsBytes, static_cast<int64_t>(kLogitsShare * static_cast<double>(free_bytes_())));
  return std::max<int64_t>(bytes / a_row, 1);
}

GpuScorer::Result GpuScorer::Forward(const Weights& weights, const std::vector<PackedSequence>& sequences,
                                     const std::vector<int64_t>& targets, double temperature, bool want_entropies,
                                     bool gradient, std::optional<int64_t> memory) {
  Result result;
  GpuPass& pass = result.pass;
  pass.batch = PackOnGpu(config_, sequences, rotary_, dtype_, device_);
  pass.targets = IndexTensor(targets, device_);
  Keep keep = Keep::kNothing;
  if (gradient) {
    const int64_t all = transformer_.BytesARow(Keep::kAll, dtype_) * pass.batch.ids.size(0);
    const int64_t room = memory ? *memory : RoomForActivations(free_bytes_());
    keep = all <= room ? Keep::kAll : Keep::kLayerInputs;
  }
  pass.hidden = transformer_.Forward(weights, pass.batch, keep, gradient ? &pass.activations : nullptr);

  const int64_t rows = pass.hidden.size(0);
  const auto floats = pass.hidden.options().dtype(at::kFloat);
  result.logprobs = at::empty({rows}, floats);
  pass.normalizers = at::empty({rows}, floats);
  if (want_entropies) result.entropies = at::empty({rows}, floats);
  ForBlocks(rows, RowsABlock(), [&](int64_t begin, int64_t count) {
    const at::Tensor logits = Linear(pass.hidden.narrow(0, begin, count), weights.head, {});
    const GpuOps::Logprobs block =
        ops_.TokenLogprobs(logits, pass.targets.narrow(0, begin, count), temperature, want_entropies);
    result.logprobs.narrow(0, begin, count).copy_(block.logprobs);
    pass.normalizers.narrow(0, begin, count).copy_(block.normalizers);
    if (want_entropies) result.entropies.narrow(0, begin, count).copy_(block.entropies);
  });
  if (!gradient) pass = {};
  return result;
}

void GpuScorer::Backward(const Weights& weights, const Weights& gradients, GpuPass pass, double temperature,
                         const at::Tensor& d_logprobs, const LayerDone& done) {
  at::Tensor d_hidden = at::empty_like(pass.hidden);
  ForBlocks(pass.hidden.size(0), RowsABlock(), [&](int64_t begin, int64_t count) {
    const at::Tensor rows = pass.hidden.narrow(0, begin, count);
    const at::Tensor logits = Linear(rows, weights.head, {});
    ops_.TokenLogprobsBackward(logits, pass.targets.narrow(0, begin, count), pass.normalizers.narrow(0, begin, count),
                               d_logprobs.narrow(0, begin, count), temperature);
    at::Tensor d_rows = d_hidden.narrow(0, begin, count);
    at::mm_out(d_rows, logits, weights.head);
    ops_.LinearBackwardParameters(logits, rows, gradients.head, {});
  });
  transformer_.Backward(weights, gradients, pass.batch, pass.activations, d_hidden, done);
}

}  // namespace kgrpo::policy
