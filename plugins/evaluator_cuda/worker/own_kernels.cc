#include "evaluator_cuda/worker/own_kernels.h"

#include <sys/mman.h>

#include <array>

#include "evaluator_cuda/worker/runtime.h"

// The machine code that nvcc made of kernels.cu.
asm(R"(
.section .rodata
.balign 16
kgrpo_worker_kernels:
.incbin ")" KGRPO_WORKER_KERNELS R"("
.previous
)");
extern "C" const char kgrpo_worker_kernels[];

namespace kgrpo::evaluator_cuda {
namespace {

constexpr uint64_t kPatienceNanoseconds = 2000000000;  // then the judge is gone or has given up

}  // namespace

cudaError_t OwnKernels::Load() {
  cudaLibrary_t library = nullptr;
  cudaError_t status =
      RUNTIME(cudaLibraryLoadData)(&library, kgrpo_worker_kernels, nullptr, nullptr, 0, nullptr, nullptr, 0);
  const auto get = RUNTIME(cudaLibraryGetKernel);
  if (status == cudaSuccess) status = get(&gate_, library, "gate");
  if (status == cudaSuccess) status = get(&touch_, library, "touch");
  if (status == cudaSuccess) status = get(&walk_, library, "walk");
  if (status != cudaSuccess) return status;
  void* page = mmap(nullptr, sizeof(GatePage), PROT_READ | PROT_WRITE, MAP_SHARED, kGates, 0);
  if (page == MAP_FAILED) return cudaErrorInvalidValue;
  status = RUNTIME(cudaHostRegister)(page, sizeof(GatePage), cudaHostRegisterMapped);
  void* seen = nullptr;
  if (status == cudaSuccess) status = RUNTIME(cudaHostGetDevicePointer)(&seen, page, 0);
  page_ = static_cast<GatePage*>(seen);
  return status;
}

cudaError_t OwnKernels::Gate(uint32_t which, uint32_t sequence) const {
  const uint32_t* open = &page_->open[which].sequence;
  uint32_t* reached = &page_->reached[which].sequence;
  uint64_t patience = kPatienceNanoseconds;
  std::array<void*, 4> arguments = {&open, &reached, &sequence, &patience};
  return RUNTIME(cudaLaunchKernel)(gate_, dim3(1), dim3(1), arguments.data(), 0, nullptr);
}

cudaError_t OwnKernels::Touch(uint32_t* lines, uint32_t count) const {
  std::array<void*, 2> arguments = {&lines, &count};
  return RUNTIME(cudaLaunchKernel)(touch_, dim3(count), dim3(1), arguments.data(), 0, nullptr);
}

cudaError_t OwnKernels::Walk(const uint32_t* lines, uint32_t count, uint64_t* cycles) const {
  uint32_t zero = 0;
  std::array<void*, 4> arguments = {&lines, &count, &zero, &cycles};
  return RUNTIME(cudaLaunchKernel)(walk_, dim3(1), dim3(1), arguments.data(), 0, nullptr);
}

}  // namespace kgrpo::evaluator_cuda
