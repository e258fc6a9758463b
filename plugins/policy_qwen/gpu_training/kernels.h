// The operators of training on a GPU that libtorch has no single kernel for, as plain functions over device pointers.
// They lie in a shared library of their own, compiled by nvcc (kernels.cu lists the entry), which the policy loads when
// its device is a GPU: gpu_kernels.h. No header of CUDA or libtorch is needed to call them.
//
// Arrays are row-major and compact unless a stride is given, on the device that is current. Every function queues its
// work on `stream` (a cudaStream_t) and returns; none waits, allocates or depends on the order in which blocks run: the
// same arguments give the same bits. Sizes are positive.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_KERNELS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_KERNELS_H_

#include <cstdint>

namespace kgrpo::policy {

// The dtype of activations and weights. Arguments described as float32 are float32 for both.
enum class Element : int32_t { kFloat32 = 0, kBfloat16 = 1 };

// Number of partial sums of rms_norm_weight_gradient: its `partial` is float32 [kNormSlices, columns].
inline constexpr int64_t kNormSlices = 64;

struct GpuKernels {
  uint32_t struct_size;

  // RMSNorm (Zhang and Sennrich, 2019) of each row: y = round(x r) weight with r = 1 / sqrt(mean(x^2) + epsilon), as
  // transformers rounds it. scale (float32 [rows]) receives r. Rows of x begin x_stride elements apart.
  void (*rms_norm)(Element type, const void* x, int64_t x_stride, const void* weight, float epsilon, int64_t rows,
                   int64_t columns, void* y, float* scale, void* stream);

  // dx = [add +] r (dy w - n mean(dy w n)) with n = x r. `add` (null for none) may be dx itself.
  void (*rms_norm_backward)(Element type, const void* dy, const void* x, int64_t x_stride, const void* weight,
                            const float* scale, const void* add, int64_t rows, int64_t columns, void* dx, void* stream);

  // weight_gradient (float32 [columns]) += sum over rows of dy n.
  void (*rms_norm_weight_gradient)(Element type, const void* dy, const void* x, int64_t x_stride, const float* scale,
                                   int64_t rows, int64_t columns, float* partial, float* weight_gradient, void* stream);

  // Rotary positions (Su et al., 2021) in the layout of transformers: element i of the first half of a head is turned
  // with element i of the second. cos and sin: float32 [rows, head_size / 2]. direction 1, or -1 for the derivative.
  // Rows of x and y begin x_stride and y_stride elements apart, heads in a row lie side by side; y may be x.
  void (*rotate)(Element type, const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows, int64_t heads,
                 int64_t head_size, const float* cos, const float* sin, float direction, void* stream);

  // y = silu(gate) up of x = [gate, up] side by side: [rows, 2 columns] -> [rows, columns].
  void (*swiglu)(Element type, const void* x, int64_t rows, int64_t columns, void* y, void* stream);
  // dx may be x.
  void (*swiglu_backward)(Element type, const void* dy, const void* x, int64_t rows, int64_t columns, void* dx,
                          void* stream);

  // Computes of each row of logits z / temperature: the log-probability of its target (logprobs), log(sum(exp))
  // (normalizers), and the entropy in nats (entropies, null where not wanted). All float32 [rows].
  void (*token_logprobs)(Element type, const void* logits, const int64_t* targets, float temperature, int64_t rows,
                         int64_t vocabulary, float* logprobs, float* normalizers, float* entropies, void* stream);

  // In place, the derivative of sum(d_logprobs logprobs) by the logits: d ([j = target] - p_j) / temperature.
  void (*token_logprobs_backward)(Element type, void* logits, const int64_t* targets, const float* normalizers,
                                  const float* d_logprobs, float temperature, int64_t rows, int64_t vocabulary,
                                  void* stream);
};

// The library's one exported function.
inline constexpr const char* kGpuKernelsEntry = "kgrpo_policy_gpu_kernels";
using GpuKernelsEntry = const GpuKernels* (*)();

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_KERNELS_H_
