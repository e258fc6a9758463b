#include "policy_qwen/generation/prompt_ops.h"

#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <kgrpo/sdk/error.h>

#include <array>
#include <cmath>
#include <optional>

#include "policy_qwen/device.h"
#include "policy_qwen/gpu/gpu_library.h"
#include "policy_qwen/gpu/pinned_products.h"

namespace kgrpo::policy {
namespace {

constexpr int64_t kPinnedRows = 8192;  // for which algorithms are chosen
constexpr int32_t kCandidates = 8;     // at most, until one is independent of the number of rows

struct Release {
  void (*release)(PinnedProduct*) = nullptr;
  void operator()(PinnedProduct* pinned) const { release(pinned); }
};

class LibraryPromptOps final : public PromptOps {
 public:
  LibraryPromptOps(const ModelConfig& config, c10::Stream stream)
      : config_(config),
        stream_(stream),
        gpu_stream_{stream.device_index(), stream.native_handle()},
        products_(OpenGpuTable<PinnedProducts>()) {}

  // Returns why no algorithm will do, or nothing. `weight` and `bias` are those of a layer.
  std::string Pin(PromptProduct which, const PinnedShape& shape, const void* weight, const void* bias) {
    std::string why;
    for (int32_t candidate = 0; candidate < kCandidates; ++candidate) {
      PinnedProduct* made = nullptr;
      if (const char* failure = products_.pin(stream_.device_index(), shape, kPinnedRows, candidate, &made);
          failure != nullptr) {
        return why.empty() ? failure : why;
      }
      pins_[static_cast<size_t>(which)] = {made, Release{products_.release}};
      if (HasOneOrder(which, shape, weight, bias)) return "";
      why = std::string(products_.name(made)) + " depends on the number of rows";
    }
    return why;
  }

  std::string NameOf(PromptProduct which) const { return products_.name(pins_[static_cast<size_t>(which)].get()); }

  void Product(PromptProduct which, const void* x, const void* weight, const void* bias, int64_t rows,
               void* y) override {
    CheckGpu("generation",
             products_.run(pins_[static_cast<size_t>(which)].get(), x, weight, bias, rows, y, gpu_stream_));
  }

  void TakeRows(const void* x, int64_t rows, const int32_t* which, int64_t count, void* y) override {
    const DeviceScope scope(stream_.device());
    const c10::StreamGuard on(stream_);
    at::Tensor out = View(y, {count, config_.hidden_size}, at::kBFloat16);
    at::index_select_out(out, View(x, {rows, config_.hidden_size}, at::kBFloat16), 0, View(which, {count}, at::kInt));
  }

  const void* Attention(const PromptGroup& group, const void* query, const void* keys, const void* values) override {
    const DeviceScope scope(stream_.device());
    const c10::StreamGuard on(stream_);
    const int64_t size = config_.head_size, kv_heads = config_.kv_head_count;
    // A longest query of one row would choose another kernel, with another order of sums.
    attended_ = std::get<0>(at::_flash_attention_forward(
        View(query, {group.rows, config_.head_count, size}, at::kBFloat16),
        View(keys, {group.positions, kv_heads, size}, at::kBFloat16),
        View(values, {group.positions, kv_heads, size}, at::kBFloat16),
        View(group.row_ends, {group.sequences + 1}, at::kInt),
        View(group.position_ends, {group.sequences + 1}, at::kInt), std::max<int64_t>(group.longest_rows, 2),
        group.longest, /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false,
        1.0 / std::sqrt(static_cast<double>(size))));
    return attended_.const_data_ptr();
  }

 private:
  at::Tensor View(const void* data, at::IntArrayRef sizes, at::ScalarType type) const {
    return at::from_blob(const_cast<void*>(data), sizes, at::device(stream_.device()).dtype(type));
  }

  // Whether other numbers of rows, and other places of a row, give the same bits.
  bool HasOneOrder(PromptProduct which, const PinnedShape& shape, const void* weight, const void* bias) {
    constexpr int64_t kRows = 2200;
    const auto floats = at::device(stream_.device()).dtype(at::kFloat);
    const at::Tensor x = at::arange(kRows * shape.inputs, floats).sin_().to(at::kBFloat16).view({kRows, shape.inputs});
    const auto of = [&](int64_t first, int64_t rows) {
      const bool sums = shape.result == PinnedShape::Result::kFloat32;
      const at::Tensor y = at::zeros({rows, shape.outputs}, floats.dtype(sums ? at::kFloat : at::kBFloat16));
      Product(which, x.narrow(0, first, rows).const_data_ptr(), weight, bias, rows, y.mutable_data_ptr());
      return y;
    };
    const at::Tensor all = of(0, kRows);
    for (const int64_t rows : {1, 8, 64, 200, 511, 1000, 2048}) {
      for (const int64_t first : {0, 77}) {
        if (!at::equal(of(first, rows), all.narrow(0, first, rows))) return false;
      }
    }
    return true;
  }

  const ModelConfig& config_;
  const c10::Stream stream_;
  const GpuStream gpu_stream_;
  const PinnedProducts& products_;
  std::array<std::unique_ptr<PinnedProduct, Release>, kPromptProducts> pins_;
  at::Tensor attended_;  // of the last group: the next kernels on the stream read it
};

}  // namespace

PromptOpsChoice ChoosePromptOps(const ModelConfig& config, const Weights& weights, c10::Stream stream) {
  using Result = PinnedShape::Result;
  const LayerWeights& layer = weights.layers.front();
  const struct {
    PromptProduct which;
    Result result;
    at::Tensor weight, bias;
  } products[] = {{PromptProduct::kQueryKeyValue, Result::kFloat32, layer.query_key_value, {}},
                  {PromptProduct::kOutput, Result::kAdd, layer.output, layer.output_bias},
                  {PromptProduct::kGateUp, Result::kPlain, layer.gate_up, layer.gate_up_bias},
                  {PromptProduct::kDown, Result::kAdd, layer.down, layer.down_bias}};
  const DeviceScope scope(stream.device());
  const c10::StreamGuard on(stream);
  auto ops = std::make_unique<LibraryPromptOps>(config, stream);
  std::string note = "prompts by FlashAttention-2 and";
  for (const auto& [which, result, weight, bias] : products) {
    const PinnedShape shape = {weight.size(1), weight.size(0), result, bias.defined()};
    const std::string name = std::to_string(shape.inputs) + " x " + std::to_string(shape.outputs);
    if (const std::string why = ops->Pin(which, shape, PlaceOf(weight), PlaceOf(bias)); !why.empty()) {
      return {nullptr, "prompts position by position, as decoding: " + name + ": " + why};
    }
    note += (which == PromptProduct::kQueryKeyValue ? " " : ", ") + name + " by " + ops->NameOf(which);
  }
  return {std::move(ops), note};
}

}  // namespace kgrpo::policy
