// What calls of the CUDA runtime cost the host, measured on an H200 (bench/results/h200_prices.csv, "host"). Each call
// that the client offers has a row. What a call waits for, copies or allocates is priced by device_session.cc.
#pragma once

#include <cstring>
#include <string>

namespace kgrpo::interpreter {

struct CallPrice {
  const char* calls;   // between blanks
  double nanoseconds;  // of each
  double of_each = 0;  // further ones of each part: a graph's node, a byte
};

inline constexpr CallPrice kCallPrices[] = {
    {" cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority ", 2600},
    {" cudaStreamDestroy ", 870},
    {" cudaEventCreate cudaEventCreateWithFlags ", 200},
    {" cudaEventDestroy ", 140},
    {" cudaEventRecord ", 1016},
    {" cudaStreamWaitEvent cudaEventQuery cudaEventSynchronize ", 150},
    {" cudaStreamQuery cudaStreamSynchronize ", 210},
    {" cudaDeviceSynchronize ", 360},
    {" cudaStreamBeginCapture cudaStreamBeginCaptureToGraph ", 400},
    {" cudaStreamEndCapture cudaGraphCreate cudaGraphDestroy ", 200, 830},
    {" cudaGraphAddKernelNode cudaGraphKernelNodeSetParams cudaGraphExecKernelNodeSetParams ", 600},
    {" cudaGraphInstantiate cudaGraphInstantiateWithFlags ", 6500, 1300},
    {" cudaGraphExecDestroy ", 2000, 300},
    {" cudaGraphUpload ", 1650},
    {" cudaGraphLaunch ", 2050},
    {" cudaGraphExecUpdate ", 200, 36},
    {" cudaMallocHost cudaHostAlloc ", 500'000, 0.4},
    {" cudaFreeHost ", 180'000, 0.1},
    {" cudaMallocArray cudaMalloc3DArray cudaFreeArray ", 30'000},
    {" cudaCreateTextureObject cudaCreateSurfaceObject cudaDestroyTextureObject cudaDestroySurfaceObject ", 1500},
    {" cudaMemGetInfo ", 4400},
    {" cudaGetSymbolAddress cudaGetSymbolSize cudaFuncGetAttributes cudaFuncSetAttribute ", 300},
    {" cudaOccupancyMaxActiveBlocksPerMultiprocessor cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags ", 200},
    // Priced by what they do at the device.
    {" __cudaLaunchKernel __cudaLaunchKernel_ptsz cudaLaunchKernel cudaLaunchCooperativeKernel cudaLaunchKernelExC ",
     0},
    {" cudaMalloc cudaMallocAsync cudaFree cudaFreeAsync cudaMallocPitch cudaMalloc3D ", 0},
    {" cudaMemcpy cudaMemcpyAsync cudaMemset cudaMemsetAsync cudaMemcpyToSymbol cudaMemcpyToSymbolAsync ", 0},
    {" cudaMemcpyFromSymbol cudaMemcpyFromSymbolAsync cudaMemcpy2D cudaMemcpy2DAsync cudaMemcpy2DToArray ", 0},
    {" cudaMemcpy2DToArrayAsync cudaMemcpy2DFromArray cudaMemcpy2DFromArrayAsync cudaMemcpyToArray cudaMemcpy3D ", 0},
    {" cudaMemcpy3DAsync ", 0},
    // At most 75 ns: not counted.
    {" cudaGetErrorName cudaGetErrorString cudaGetLastError cudaPeekAtLastError cudaGetDeviceCount cudaGetDevice ", 0},
    {" cudaSetDevice cudaDeviceReset cudaDeviceSetCacheConfig cudaDeviceSetLimit cudaRuntimeGetVersion ", 0},
    {" cudaDriverGetVersion cudaDeviceGetAttribute cudaGetDeviceProperties cudaFuncSetCacheConfig ", 0},
    {" cudaCreateChannelDesc cudaArrayGetInfo cudaGetChannelDesc cudaEventElapsedTime cudaStreamIsCapturing ", 0},
    {" cudaGraphGetNodes cudaGraphNodeGetType ", 0},
};

// Null: the call has no row.
inline const CallPrice* FindCallPrice(const std::string& call) {
  for (const CallPrice& price : kCallPrices)
    if (std::strstr(price.calls, (" " + call + " ").c_str()) != nullptr) return &price;
  return nullptr;
}

}  // namespace kgrpo::interpreter
