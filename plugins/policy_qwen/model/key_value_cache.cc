#include "policy_qwen/model/key_value_cache.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "policy_qwen/model/tensors.h"

namespace kgrpo::policy {
namespace {

constexpr int64_t kFirstNewColumns = 64;  // memory for so many new tokens at first; it then doubles

}  // namespace

KeyValueCache::KeyValueCache(const ModelConfig& config, const std::vector<int64_t>& prompt_lengths,
                             int64_t prompt_columns, int64_t max_columns, at::ScalarType dtype, at::Device device)
    : config_(config),
      options_(at::TensorOptions().dtype(dtype).device(device)),
      columns_(prompt_columns),
      capacity_(std::min(max_columns, prompt_columns + kFirstNewColumns)),
      max_columns_(max_columns),
      prompt_columns_(prompt_columns) {
  const int64_t rows = static_cast<int64_t>(prompt_lengths.size());
  for (const int64_t length : prompt_lengths) first_columns_.push_back(prompt_columns - length);
  for (int64_t layer = 0; layer < config.layer_count; ++layer) {
    keys_.push_back(Allocate(rows));
    values_.push_back(Allocate(rows));
  }
  if (std::ranges::all_of(prompt_lengths, [&](int64_t length) { return length == prompt_columns; })) return;
  at::Tensor mask = at::zeros({rows, 1, 1, prompt_columns}, at::TensorOptions().dtype(at::kFloat));
  float* out = mask.mutable_data_ptr<float>();
  for (const int64_t length : prompt_lengths) {
    std::fill(out, out + (prompt_columns - length), -std::numeric_limits<float>::infinity());
    out += prompt_columns;
  }
  mask_ = mask.to(device);
}

at::Tensor KeyValueCache::Allocate(int64_t rows) const {
  return at::empty({rows, config_.kv_head_count, capacity_, config_.head_size}, options_);
}

at::Tensor KeyValueCache::Columns(const at::Tensor& whole) const {
  return whole.view({-1, capacity_, config_.head_size}).narrow(1, 0, columns_);
}

void KeyValueCache::WritePrompts(int64_t layer, int64_t begin, const at::Tensor& keys, const at::Tensor& values) {
  const auto write = [&](const at::Tensor& whole, const at::Tensor& part) {
    whole.narrow(0, begin, part.size(0)).narrow(2, 0, prompt_columns_).copy_(part);
  };
  write(keys_[static_cast<size_t>(layer)], keys);
  write(values_[static_cast<size_t>(layer)], values);
}

void KeyValueCache::OpenColumn() {
  if (columns_ == capacity_) {
    capacity_ = std::min(max_columns_, 2 * capacity_);
    const auto grow = [&](at::Tensor& whole) {
      at::Tensor larger = Allocate(whole.size(0));
      larger.narrow(2, 0, columns_).copy_(whole);
      whole = larger;
    };
    std::ranges::for_each(keys_, grow);
    std::ranges::for_each(values_, grow);
  }
  ++columns_;
}

void KeyValueCache::WriteColumn(int64_t layer, const at::Tensor& keys, const at::Tensor& values) {
  keys_[static_cast<size_t>(layer)].select(2, columns_ - 1).copy_(keys);
  values_[static_cast<size_t>(layer)].select(2, columns_ - 1).copy_(values);
}

at::Tensor KeyValueCache::Mask() const {
  return mask_.defined() ? at::constant_pad_nd(mask_, {0, columns_ - prompt_columns_}) : at::Tensor();
}

void KeyValueCache::Keep(const std::vector<int64_t>& rows) {
  std::vector<int64_t> first_columns;
  first_columns.reserve(rows.size());
  for (const int64_t row : rows) first_columns.push_back(first_columns_[static_cast<size_t>(row)]);
  first_columns_ = std::move(first_columns);
  const at::Tensor index = IndexTensor(rows, options_.device());
  const auto keep = [&](at::Tensor& whole) {
    at::Tensor kept = Allocate(index.size(0));
    kept.narrow(2, 0, columns_).copy_(whole.narrow(2, 0, columns_).index_select(0, index));
    whole = kept;
  };
  std::ranges::for_each(keys_, keep);
  std::ranges::for_each(values_, keep);
  if (mask_.defined()) mask_ = mask_.index_select(0, index);
}

}  // namespace kgrpo::policy
