// The library's entry: the table of kernels.h.
#include "policy_qwen/gpu_training/kernels.h"

#include "policy_qwen/gpu_training/launchers.h"

extern "C" __attribute__((visibility("default"))) const kgrpo::policy::GpuKernels* kgrpo_policy_gpu_kernels() {
  using namespace kgrpo::policy;
  static const GpuKernels kKernels = {
      .struct_size = sizeof(GpuKernels),
      .rms_norm = RmsNorm,
      .rms_norm_backward = RmsNormBackward,
      .rms_norm_weight_gradient = RmsNormWeightGradient,
      .rotate = Rotate,
      .swiglu = SwiGlu,
      .swiglu_backward = SwiGluBackward,
      .token_logprobs = TokenLogprobs,
      .token_logprobs_backward = TokenLogprobsBackward,
  };
  return &kKernels;
}
