#include "evaluator_cuda/device_errors.h"

#include <cuda_runtime_api.h>

#include <string>

namespace kgrpo::evaluator_cuda {

using evaluator::Trouble;

Trouble TroubleOf(int32_t launch_error, int32_t wait_error) {
  if (launch_error == cudaErrorNotReady) launch_error = cudaSuccess;  // the answer to a question, not a failure
  // The error that stopped the device is more precise than the one that a later call returns because of it.
  const auto error = static_cast<cudaError_t>(wait_error != cudaSuccess ? wait_error : launch_error);
  const std::string words = std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error) + ".";
  switch (error) {
    case cudaSuccess: return {};
    case cudaErrorIllegalAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError: return {"out_of_bounds", "The device stopped it: " + words};
    case cudaErrorMisalignedAddress: return {"misaligned", "The device stopped it: " + words};
    case cudaErrorAssert:
    case cudaErrorIllegalInstruction:
    case cudaErrorLaunchFailure: return {"trap", "The device stopped it: " + words};
    case cudaErrorLaunchTimeout: return {"timeout", "The device stopped it: " + words};
    case cudaErrorMemoryAllocation: return {"out_of_memory", "The launch function failed: " + words};
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorCooperativeLaunchTooLarge: return {"invalid_launch", "The launch function failed: " + words};
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion: return {"unsupported", "The launch function failed: " + words};
    case cudaErrorECCUncorrectable:
    case cudaErrorDevicesUnavailable: return {"device_fault", "The device itself failed: " + words};
    default: return {"crash", "The launch function failed: " + words};
  }
}

}  // namespace kgrpo::evaluator_cuda
