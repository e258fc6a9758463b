// Errors of the CUDA runtime: those that a candidate caused, as verdicts, and a lack of device memory, which may pass.
// Used by worker.cc, device.cc and the evaluator.
#pragma once

#include <kgrpo/sdk/error.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "judge/verdict/kernel_evaluation.h"  // Trouble

namespace kgrpo::evaluator_cuda {

// `launch_error`: cudaGetLastError() after the launch function returned; `wait_error`: of the synchronisation after it.
// Nothing where both are cudaSuccess.
evaluator::Trouble TroubleOf(int32_t launch_error, int32_t wait_error);

constexpr double kMemoryPatienceSeconds = 120;  // for other programs to give device memory back

// The device has too little memory at the moment: other programs, or workers that are about to end, use it.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message) : Error(KGRPO_ERROR_UNAVAILABLE, message) {}
};

// Calls `attempt` until it does not throw OutOfMemory, for as long as `seconds`; then throws that error. The caller
// holds no device lock: those who have the memory may need the device to finish. `between` is called before each
// further attempt, with the last one's error.
template <typename Attempt>
auto WaitForMemory(double seconds, const std::function<void(const OutOfMemory&)>& between, Attempt attempt) {
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    try {
      return attempt();
    } catch (const OutOfMemory& error) {
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (waited.count() > seconds) throw;
      between(error);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace kgrpo::evaluator_cuda
