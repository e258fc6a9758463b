#include "evaluator_cuda/gates.h"

#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

namespace kgrpo::evaluator_cuda {

Gates::Gates() : memory_(memfd_create("kgrpo gates", MFD_CLOEXEC)) {
  void* page = MAP_FAILED;
  if (memory_.get() >= 0 && ftruncate(memory_.get(), sizeof(GatePage)) == 0)
    page = mmap(nullptr, sizeof(GatePage), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (page == MAP_FAILED)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot share memory with a worker: ") + std::strerror(errno));
  page_ = static_cast<GatePage*>(page);
}

Gates::~Gates() {
  munmap(page_, sizeof(GatePage));
}

void Gates::Open(uint32_t which) {
  std::atomic_ref<uint32_t>(page_->open[which].sequence).store(sequence_, std::memory_order_release);
}

bool Gates::WaitReached(uint32_t which, double seconds) const {
  const auto begin = std::chrono::steady_clock::now();
  while (std::atomic_ref<uint32_t>(page_->reached[which].sequence).load(std::memory_order_acquire) != sequence_) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > seconds) return false;
  }
  return true;
}

}  // namespace kgrpo::evaluator_cuda
