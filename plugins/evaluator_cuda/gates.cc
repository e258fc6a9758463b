#include "evaluator_cuda/gates.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

namespace kgrpo::evaluator_cuda {
namespace {

void* Share(int memory, size_t bytes, int protection) {
  void* page = MAP_FAILED;
  if (memory >= 0 && ftruncate(memory, static_cast<off_t>(bytes)) == 0)
    page = mmap(nullptr, bytes, protection, MAP_SHARED, memory, 0);
  if (page == MAP_FAILED)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot share memory with a worker: ") + std::strerror(errno));
  return page;
}

}  // namespace

Gates::Gates()
    : open_memory_(memfd_create("kgrpo gates", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      reached_memory_(memfd_create("kgrpo gates reached", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  open_ = static_cast<OpenPage*>(Share(open_memory_.get(), sizeof(OpenPage), PROT_READ | PROT_WRITE));
  try {
    reached_ = static_cast<const ReachedPage*>(Share(reached_memory_.get(), sizeof(ReachedPage), PROT_READ));
  } catch (...) {
    munmap(open_, sizeof(OpenPage));
    throw;
  }
  // Our own mapping stays writable. The seal forbids any further writable mapping, also by a process that opens the
  // memory again. The memory cannot shrink either, so a page that the evaluator reads stays valid.
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  sealed_ = fcntl(open_memory_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | kSize) == 0 &&
            fcntl(reached_memory_.get(), F_ADD_SEALS, kSize) == 0;
}

Gates::~Gates() {
  munmap(open_, sizeof(OpenPage));
  munmap(const_cast<ReachedPage*>(reached_), sizeof(ReachedPage));
}

void Gates::Open(uint32_t which) {
  std::atomic_ref<uint32_t>(open_->open[which].sequence).store(sequence_, std::memory_order_release);
}

bool Gates::WaitReached(uint32_t which, double seconds) const {
  const auto begin = std::chrono::steady_clock::now();
  const uint32_t& reached = reached_->reached[which].sequence;
  while (__atomic_load_n(&reached, __ATOMIC_ACQUIRE) != sequence_) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > seconds) return false;
  }
  return true;
}

}  // namespace kgrpo::evaluator_cuda
