// The keys and values of the sequences that are being generated. Rows are sequences, columns positions; prompts are
// aligned at their ends, so that all sequences write the same column in a step. Used by the generator.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_KEY_VALUE_CACHE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_KEY_VALUE_CACHE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "policy_qwen/model/config.h"

namespace kgrpo::policy {

class KeyValueCache {
 public:
  // `prompt_lengths`: of each row; none is above `prompt_columns`. At most `max_columns` will ever be used.
  KeyValueCache(const ModelConfig& config, const std::vector<int64_t>& prompt_lengths, int64_t prompt_columns,
                int64_t max_columns, at::ScalarType dtype, at::Device device);

  // Writes a layer's prompt part of the rows begin ..: keys and values [rows, kv heads, prompt_columns, head size].
  void WritePrompts(int64_t layer, int64_t begin, const at::Tensor& keys, const at::Tensor& values);

  // Opens the next column, growing the memory if need be.
  void OpenColumn();
  // Writes a layer's open column: keys and values [rows, kv heads, head size].
  void WriteColumn(int64_t layer, const at::Tensor& keys, const at::Tensor& values);

  // All columns up to the open one: [rows * kv heads, columns, head size].
  at::Tensor Keys(int64_t layer) const { return Columns(keys_[static_cast<size_t>(layer)]); }
  at::Tensor Values(int64_t layer) const { return Columns(values_[static_cast<size_t>(layer)]); }

  // The memory behind them: [rows, kv heads, capacity, head size].
  const at::Tensor& WholeKeys(int64_t layer) const { return keys_[static_cast<size_t>(layer)]; }
  const at::Tensor& WholeValues(int64_t layer) const { return values_[static_cast<size_t>(layer)]; }
  int64_t capacity() const { return capacity_; }
  int64_t columns() const { return columns_; }  // in use, the open one included
  // The first of a row's own columns; those before are padding.
  int64_t first_column(int64_t row) const { return first_columns_[static_cast<size_t>(row)]; }

  // float32 [rows, 1, 1, columns] to add to scores: -inf where a row has no token. Undefined if every row has a token
  // in every column.
  at::Tensor Mask() const;

  // Keeps only the given rows, in that order.
  void Keep(const std::vector<int64_t>& rows);

 private:
  at::Tensor Columns(const at::Tensor& whole) const;
  at::Tensor Allocate(int64_t rows) const;

  const ModelConfig& config_;
  at::TensorOptions options_;
  int64_t columns_;   // in use
  int64_t capacity_;  // columns there is memory for
  int64_t max_columns_;
  std::vector<at::Tensor> keys_, values_;  // a layer each: [rows, kv heads, capacity, head size]
  at::Tensor mask_;                        // [rows, 1, 1, prompt columns]; undefined if there is nothing to hide
  int64_t prompt_columns_;
  std::vector<int64_t> first_columns_;  // of each row
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_KEY_VALUE_CACHE_H_
