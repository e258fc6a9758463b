// evaluator_cuda/worker/interposed.cc before a runtime of ours (fake_runtime.c): which functions count as allocations
// of device memory, what is refused, and that the rest is forwarded.
#include <cuda_runtime_api.h>

#include "evaluator_cuda/worker/runtime.h"
#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

struct Function {
  const char* name;
  std::function<cudaError_t()> call;
};

class InterposedTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(LoadRuntime(KGRPO_FAKE_RUNTIME), ""); }
  void SetUp() override { RuntimeCounts() = {}; }
};

// allow_device_malloc: false counts these (device_evaluator_check.cc).
TEST_F(InterposedTest, EveryWayToDeviceMemoryCounts) {
  void* pointer = nullptr;
  size_t pitch = 0;
  cudaPitchedPtr pitched{};
  cudaArray_t array = nullptr;
  cudaMipmappedArray_t levels = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaMemAllocNodeParams parameters{};
  const cudaChannelFormatDesc format{};
  const cudaExtent extent{};
  const Function functions[] = {
      {"cudaMalloc", [&] { return cudaMalloc(&pointer, 1); }},
      {"cudaMallocAsync", [&] { return cudaMallocAsync(&pointer, 1, nullptr); }},
      {"cudaMallocFromPoolAsync", [&] { return cudaMallocFromPoolAsync(&pointer, 1, nullptr, nullptr); }},
      {"cudaMallocPitch", [&] { return cudaMallocPitch(&pointer, &pitch, 1, 1); }},
      {"cudaMalloc3D", [&] { return cudaMalloc3D(&pitched, extent); }},
      {"cudaMallocArray", [&] { return cudaMallocArray(&array, &format, 1, 1, 0); }},
      {"cudaMalloc3DArray", [&] { return cudaMalloc3DArray(&array, &format, extent, 0); }},
      {"cudaMallocMipmappedArray", [&] { return cudaMallocMipmappedArray(&levels, &format, extent, 1, 0); }},
      {"cudaGraphAddMemAllocNode", [&] { return cudaGraphAddMemAllocNode(&node, nullptr, nullptr, 0, &parameters); }},
  };
  int runtimes = 11;  // in the order of fake_runtime.c
  uint64_t count = 0;
  for (const Function& function : functions) {
    EXPECT_EQ(function.call(), runtimes++) << function.name;
    EXPECT_EQ(RuntimeCounts().allocations, ++count) << function.name;
  }
  EXPECT_EQ(RuntimeCounts().refused, 0U);
  EXPECT_EQ(RuntimeCounts().launches, 0U);
}

TEST_F(InterposedTest, WhatWouldChangeTheDeviceForOthersIsRefused) {
  void *pointer = nullptr, *function = nullptr;
  const Function functions[] = {
      {"cudaMallocManaged", [&] { return cudaMallocManaged(&pointer, 1, cudaMemAttachGlobal); }},
      {"cudaIpcOpenMemHandle", [&] { return cudaIpcOpenMemHandle(&pointer, {}, 0); }},
      {"cudaDeviceReset", [] { return cudaDeviceReset(); }},
      {"cudaDeviceSetLimit", [] { return cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1); }},
      {"cuMemAlloc",
       [&] { return cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, CUDART_VERSION, 0, nullptr); }},
  };
  uint64_t count = 0;
  for (const Function& one : functions) {
    EXPECT_EQ(one.call(), cudaErrorNotSupported) << one.name;
    EXPECT_EQ(RuntimeCounts().refused, ++count) << one.name;
  }
  EXPECT_EQ(RuntimeCounts().allocations, 0U);
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
