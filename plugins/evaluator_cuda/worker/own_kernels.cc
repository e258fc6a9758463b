#include "evaluator_cuda/worker/own_kernels.h"

#include <sys/mman.h>
#include <unistd.h>

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

constexpr uint64_t kLaunches = 40;                 // whose time is taken
constexpr uint64_t kSlowLaunchNanoseconds = 8000;  // upper bound for one launch by the host

// Maps shared memory into the device's address space. Closes the descriptor, by which a candidate could find it.
template <typename Page>
cudaError_t MapPage(int memory, int protection, unsigned flags, Page** seen) {
  void* page = mmap(nullptr, sizeof(Page), protection, MAP_SHARED, memory, 0);
  close(memory);
  if (page == MAP_FAILED) return cudaErrorInvalidValue;
  void* device = nullptr;
  cudaError_t status = RUNTIME(cudaHostRegister)(page, sizeof(Page), flags);
  if (status == cudaSuccess) status = RUNTIME(cudaHostGetDevicePointer)(&device, page, 0);
  if (status == cudaSuccess) *seen = static_cast<Page*>(device);
  return status;
}

}  // namespace

cudaError_t OwnKernels::Load() {
  cudaLibrary_t library = nullptr;
  cudaError_t status =
      RUNTIME(cudaLibraryLoadData)(&library, kgrpo_worker_kernels, nullptr, nullptr, 0, nullptr, nullptr, 0);
  const auto get = RUNTIME(cudaLibraryGetKernel);
  if (status == cudaSuccess) status = get(&gate_, library, "gate");
  if (status == cudaSuccess) status = get(&nothing_, library, "nothing");
  if (status == cudaSuccess) status = get(&touch_, library, "touch");
  if (status == cudaSuccess) status = get(&walk_, library, "walk");
  if (status != cudaSuccess) return status;
  status = MapPage(kReached, PROT_READ | PROT_WRITE, cudaHostRegisterMapped, &reached_page_);
  if (status != cudaSuccess) return status;
  gates_error_ = MapPage(kGates, PROT_READ, cudaHostRegisterMapped | cudaHostRegisterReadOnly, &open_page_);
  RUNTIME(cudaGetLastError)();  // the error is not the candidate's
  return cudaSuccess;
}

cudaError_t OwnKernels::Gate(uint32_t which, uint32_t sequence, uint64_t nanoseconds) const {
  return LaunchGate(&open_page_->open[which], which, sequence, nanoseconds);
}

cudaError_t OwnKernels::LaunchGate(const GateLine* open, uint32_t which, uint32_t sequence,
                                   uint64_t nanoseconds) const {
  GateLine* reached = &reached_page_->reached[which];
  std::array<void*, 4> arguments = {&open, &reached, &sequence, &nanoseconds};
  return RUNTIME(cudaLaunchKernel)(gate_, dim3(1), dim3(1), arguments.data(), 0, nullptr);
}

bool OwnKernels::TimeLaunches(cudaEvent_t begin, cudaEvent_t end, double* seconds) const {
  const auto record = RUNTIME(cudaEventRecord);
  const auto launch = RUNTIME(cudaLaunchKernel);
  // Nobody opens this gate. It times out when all launches must have been queued.
  bool works =
      LaunchGate(&reached_page_->never, 0, ~uint32_t{0} / 4, kLaunches * kSlowLaunchNanoseconds) == cudaSuccess &&
      record(begin, nullptr) == cudaSuccess;
  for (uint64_t i = 0; i < kLaunches; ++i)
    works = works && launch(nothing_, dim3(1), dim3(32), nullptr, 0, nullptr) == cudaSuccess;
  float milliseconds = 0;
  works = works && record(end, nullptr) == cudaSuccess && RUNTIME(cudaEventSynchronize)(end) == cudaSuccess &&
          RUNTIME(cudaEventElapsedTime)(&milliseconds, begin, end) == cudaSuccess;
  *seconds = static_cast<double>(milliseconds) * 1e-3 / kLaunches;
  return works;
}

double OwnKernels::LaunchSeconds() const {
  cudaEvent_t begin = nullptr, end = nullptr;
  const auto make = RUNTIME(cudaEventCreate);
  double quickest = 0, seconds = 0;
  // The quickest of some: other processes may have had the device in between.
  bool works = make(&begin) == cudaSuccess && make(&end) == cudaSuccess;
  for (int i = 0; works && i < 5; ++i) {
    works = TimeLaunches(begin, end, &seconds);
    if (quickest == 0 || seconds < quickest) quickest = seconds;
  }
  RUNTIME(cudaEventDestroy)(begin);
  RUNTIME(cudaEventDestroy)(end);
  return works ? quickest : 0;
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
