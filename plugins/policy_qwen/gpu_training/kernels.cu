// The library's entry: the table of kernels.h.
#include "policy_qwen/gpu_training/kernels.h"

#include "policy_qwen/gpu_training/launch.cuh"
#include "policy_qwen/gpu_training/launchers.h"

extern "C" __attribute__((visibility("default"))) const kgrpo::policy::GpuKernels* kgrpo_policy_gpu_kernels() {
  using namespace kgrpo::policy;
  static const GpuKernels kKernels = {
      .struct_size = sizeof(GpuKernels),
      .check_card = CheckCard<>,
      .rms_norm = [](auto... arguments) { return Launch("rms_norm", RmsNorm, arguments...); },
      .rms_norm_backward = [](auto... arguments) { return Launch("rms_norm_backward", RmsNormBackward, arguments...); },
      .rms_norm_weight_gradient =
          [](auto... arguments) { return Launch("rms_norm_weight_gradient", RmsNormWeightGradient, arguments...); },
      .rotate = [](auto... arguments) { return Launch("rotate", Rotate, arguments...); },
      .swiglu = [](auto... arguments) { return Launch("swiglu", SwiGlu, arguments...); },
      .swiglu_backward = [](auto... arguments) { return Launch("swiglu_backward", SwiGluBackward, arguments...); },
      .token_logprobs = [](auto... arguments) { return Launch("token_logprobs", TokenLogprobs, arguments...); },
      .token_logprobs_backward =
          [](auto... arguments) { return Launch("token_logprobs_backward", TokenLogprobsBackward, arguments...); },
  };
  return &kKernels;
}
