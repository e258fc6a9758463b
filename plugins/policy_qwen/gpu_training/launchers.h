// The functions behind the table of kernels.h, one group a file. Used by kernels.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_LAUNCHERS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_LAUNCHERS_H_

#include "policy_qwen/gpu_training/kernels.h"

namespace kgrpo::policy {

// rms_norm.cu
void RmsNorm(Element type, const void* x, int64_t x_stride, const void* weight, float epsilon, int64_t rows,
             int64_t columns, void* y, float* scale, GpuStream stream);
void RmsNormBackward(Element type, const void* dy, const void* x, int64_t x_stride, const void* weight,
                     const float* scale, const void* add, int64_t rows, int64_t columns, void* dx, GpuStream stream);
void RmsNormWeightGradient(Element type, const void* dy, const void* x, int64_t x_stride, const float* scale,
                           int64_t rows, int64_t columns, float* partial, float* weight_gradient, GpuStream stream);

// elementwise.cu
void Rotate(Element type, const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows, int64_t heads,
            int64_t head_size, const float* cos, const float* sin, float direction, GpuStream stream);
void SwiGlu(Element type, const void* x, int64_t rows, int64_t columns, void* y, GpuStream stream);
void SwiGluBackward(Element type, const void* dy, const void* x, int64_t rows, int64_t columns, void* dx,
                    GpuStream stream);

// token_logprobs.cu
void TokenLogprobs(Element type, const void* logits, const int64_t* targets, float temperature, int64_t rows,
                   int64_t vocabulary, float* logprobs, float* normalizers, float* entropies, GpuStream stream);
void TokenLogprobsBackward(Element type, void* logits, const int64_t* targets, const float* normalizers,
                           const float* d_logprobs, float temperature, int64_t rows, int64_t vocabulary,
                           GpuStream stream);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_LAUNCHERS_H_
