// Products by cuBLASLt, each by one algorithm that is chosen once and kept: a row's bits do not depend on the number of
// rows, as they do if the library chooses by shape. Another table of the library of kernels.h. Used
// by prompt_ops.cc.
//
// Functions that can fail return null, or a message that is valid until the thread's next call.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_PINNED_PRODUCTS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_PINNED_PRODUCTS_H_

#include <cstdint>

#include "policy_qwen/gpu/kernels.h"  // GpuStream

namespace kgrpo::policy {

// A product of bfloat16 rows x [rows, inputs] with weight [outputs, inputs], summed in float32.
struct PinnedShape {
  int64_t inputs, outputs;  // multiples of 8
  enum class Result : int32_t {
    kFloat32,  // y = x weight^T, float32
    kPlain,    // y = x weight^T + bias, bfloat16
    kAdd,      // y += x weight^T + bias, bfloat16, rounded once
  } result;
  bool has_bias;  // not with kFloat32
};

struct PinnedProduct;  // an algorithm for a shape on a device

struct PinnedProducts {
  static constexpr const char* kEntry = "kgrpo_policy_pinned_products";
  uint32_t struct_size;

  // Pins the library's `candidate`-th algorithm, from 0, for `rows` rows of that shape, fastest first by its own
  // estimate. Only algorithms that sum in one piece and need no workspace count.
  const char* (*pin)(int32_t device, const PinnedShape& shape, int64_t rows, int32_t candidate, PinnedProduct** pinned);
  void (*release)(PinnedProduct* pinned);
  // Name of the algorithm and version of the library. Valid as long as `pinned`.
  const char* (*name)(const PinnedProduct* pinned);

  // Queues the product; x, weight, bias and y at multiples of 16 bytes. `bias` is null if the shape has none.
  const char* (*run)(PinnedProduct* pinned, const void* x, const void* weight, const void* bias, int64_t rows, void* y,
                     GpuStream stream);
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_PINNED_PRODUCTS_H_
