// The operators of training on a GPU that libtorch has no single kernel for, as plain functions over device pointers.
// They lie in a shared library of their own, compiled by nvcc (kernels.cu lists the entry), which the policy loads when
// its device is a GPU: gpu_library.h. No header of CUDA or libtorch is needed to call them.
//
// Arrays are row-major and compact unless a stride is given, on the stream's device. Every function queues its work on
// `stream` and returns null, or the name and reason of a launch that failed, valid until the thread's next call. None
// waits, allocates or depends on the order in which blocks run: the same arguments give the same bits. Sizes are
// positive. The current device of the calling thread does not matter and stays as it is.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_KERNELS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_KERNELS_H_

#include <cstdint>

namespace kgrpo::policy {

// The dtype of activations and weights. Arguments described as float32 are float32 for both.
enum class Element : int32_t { kFloat32 = 0, kBfloat16 = 1 };

// A stream and its device. The library's CUDA runtime is not libtorch's, so it is told the device in every call: null,
// the default stream, exists on each.
struct GpuStream {
  int32_t device;
  void* handle;  // a cudaStream_t
};

// Number of partial sums of rms_norm_weight_gradient: its `partial` is float32 [kNormSlices, columns].
inline constexpr int64_t kNormSlices = 64;

struct GpuKernels {
  uint32_t struct_size;

  // Null if the device can run these kernels, else the reason.
  const char* (*check_card)(int32_t device);

  // RMSNorm (Zhang and Sennrich, 2019) of each row: y = round(x r) weight with r = 1 / sqrt(mean(x^2) + epsilon), as
  // transformers rounds it. scale (float32 [rows]) receives r. Rows of x begin x_stride elements apart.
  const char* (*rms_norm)(Element type, const void* x, int64_t x_stride, const void* weight, float epsilon,
                          int64_t rows, int64_t columns, void* y, float* scale, GpuStream stream);

  // dx = [add +] r (dy w - n mean(dy w n)) with n = x r. `add` (null for none) may be dx itself.
  const char* (*rms_norm_backward)(Element type, const void* dy, const void* x, int64_t x_stride, const void* weight,
                                   const float* scale, const void* add, int64_t rows, int64_t columns, void* dx,
                                   GpuStream stream);

  // weight_gradient (float32 [columns]) += sum over rows of dy n.
  const char* (*rms_norm_weight_gradient)(Element type, const void* dy, const void* x, int64_t x_stride,
                                          const float* scale, int64_t rows, int64_t columns, float* partial,
                                          float* weight_gradient, GpuStream stream);

  // Rotary positions (Su et al., 2021) in the layout of transformers: element i of the first half of a head is turned
  // with element i of the second. cos and sin: float32 [rows, head_size / 2]. direction 1, or -1 for the derivative.
  // Rows of x and y begin x_stride and y_stride elements apart, heads in a row lie side by side; y may be x.
  const char* (*rotate)(Element type, const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows,
                        int64_t heads, int64_t head_size, const float* cos, const float* sin, float direction,
                        GpuStream stream);

  // y = silu(gate) up of x = [gate, up] side by side: [rows, 2 columns] -> [rows, columns].
  const char* (*swiglu)(Element type, const void* x, int64_t rows, int64_t columns, void* y, GpuStream stream);
  // dx may be x.
  const char* (*swiglu_backward)(Element type, const void* dy, const void* x, int64_t rows, int64_t columns, void* dx,
                                 GpuStream stream);

  // Computes of each row of logits z / temperature: the log-probability of its target (logprobs), log(sum(exp))
  // (normalizers), and the entropy in nats (entropies, null where not wanted). All float32 [rows].
  const char* (*token_logprobs)(Element type, const void* logits, const int64_t* targets, float temperature,
                                int64_t rows, int64_t vocabulary, float* logprobs, float* normalizers, float* entropies,
                                GpuStream stream);

  // In place, the derivative of sum(d_logprobs logprobs) by the logits: d ([j = target] - p_j) / temperature.
  const char* (*token_logprobs_backward)(Element type, void* logits, const int64_t* targets, const float* normalizers,
                                         const float* d_logprobs, float temperature, int64_t rows, int64_t vocabulary,
                                         GpuStream stream);
};

// The library's one exported function.
inline constexpr const char* kGpuKernelsEntry = "kgrpo_policy_gpu_kernels";

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_KERNELS_H_
