// The arithmetic of a decoding step on a CPU. Every result's bits depend only on its own operands: not on how many
// rows are computed together, nor on a row's place among them, nor on the number of threads. This makes completions
// independent of their batch. Used by generation/cpu_model.cc and the sampler.
//
// One implementation (row_kernels.inc) is compiled for several instruction sets; bits differ between those.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_ROW_KERNELS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_ROW_KERNELS_H_

#include <cstdint>

namespace kgrpo::policy {

// How weights and cached values are stored.
enum class Format { kFloat32, kBfloat16 };

// Arrays are row-major and compact, of any alignment; float32 unless they have a Format. Any thread.
struct RowKernels {
  const char* name;

  // out[i * stride + j] = sum over k of x[i, k] * weight[j, k], for begin <= j < end. x [rows, inputs], weight
  // [outputs, inputs].
  void (*products)(const float* x, int64_t rows, int64_t inputs, const void* weight, Format format, int64_t begin,
                   int64_t end, int64_t stride, float* out);

  // out[i, d] = sum over j of weights[i, j] * values[j, d]. weights [rows, count], values [count, size].
  void (*weighted_sums)(const float* weights, int64_t rows, int64_t count, const void* values, Format format,
                        int64_t size, float* out);

  // out[i] = exp(x[i] - shift), 0 where x[i] - shift is below -87.33; returns their sum. out may be x.
  float (*exponentials)(const float* x, int64_t count, float shift, float* out);

  // x[i] = x[i] / (1 + exp(-x[i])).
  void (*silu)(float* x, int64_t count);

  float (*maximum)(const float* x, int64_t count);  // of at least one
  float (*sum_of_squares)(const float* x, int64_t count);
};

// Kernels for the widest instruction set that this processor has.
const RowKernels& BestRowKernels();

extern const RowKernels kGenericRowKernels;
#ifdef KGRPO_X86_ROW_KERNELS
extern const RowKernels kAvx2RowKernels;
extern const RowKernels kAvx512RowKernels;
#endif

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_ROW_KERNELS_H_
