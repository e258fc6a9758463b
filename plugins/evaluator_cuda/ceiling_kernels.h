// Kernels that measure the peak rates of the device's arithmetic units. Called by device.cc; compiled by nvcc.
#pragma once

#include <cuda_runtime_api.h>

namespace kgrpo::evaluator_cuda {

// Each keeps all multiprocessors busy with one kind of instruction for `rounds` rounds, and says how many floating
// point operations that is; *sink is not written in practice.

// Fused multiply-adds in float32, and in float64.
cudaError_t LaunchMultiplyAdd(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream);
cudaError_t LaunchMultiplyAdd64(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream);

// Matrix products of float16 on the tensor cores by mma.sync, summed in float16 and in float32.
cudaError_t LaunchTensorHalf(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream);
cudaError_t LaunchTensorFloat(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream);

}  // namespace kgrpo::evaluator_cuda
