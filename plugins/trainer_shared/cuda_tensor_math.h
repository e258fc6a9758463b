// cuda_tensor_math.h - TensorMath for GPUs, through libtorch. Linked by the trainer plugins (kgrpo_trainer_cuda).
#pragma once
#include <memory>
#include <string>

#include "trainer_shared/tensor_math.h"

namespace kgrpo::trainer {

// TensorMath by libtorch's operators on a device of libtorch's: "cuda:0", or "cpu" in tests of machines without a GPU.
std::unique_ptr<TensorMath> MakeTorchTensorMath(const std::string& device);

// A CudaTensorMathFactory. The policy has loaded libtorch's CUDA library before: its parameters lie there.
std::unique_ptr<TensorMath> MakeCudaTensorMath(int device);

}  // namespace kgrpo::trainer
