// Opens the library of kernels.h. Used by gpu_scorer.cc when the policy's device is a GPU.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_KERNELS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_KERNELS_H_

#include "policy_qwen/gpu_training/kernels.h"

namespace kgrpo::policy {

// The table, from policy_qwen/libkgrpo_gpu_training.so beside this plugin. Stays loaded. Throws KGRPO_ERROR_UNAVAILABLE
// when the library is not there (it is built only where there is a GPU, or with KGRPO_GPU=ON). Any thread.
const GpuKernels& LoadGpuKernels();

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_KERNELS_H_
