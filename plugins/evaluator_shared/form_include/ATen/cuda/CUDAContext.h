// In place of PyTorch's header of this name for candidates in PyTorch's form: the current stream, without the headers
// of cuBLAS, cuSPARSE and cuSOLVER.
#pragma once

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#ifndef AT_CUDA_CHECK
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
#endif
