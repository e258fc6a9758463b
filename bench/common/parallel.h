// Numbered pieces of work on several threads. Used by the measurements that judge many kernels at once.
#ifndef KGRPO_TOOLS_COMMON_PARALLEL_H
#define KGRPO_TOOLS_COMMON_PARALLEL_H

#include <kgrpo/sdk/error.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kgrpo::bench {

// Calls work(i) for first <= i < end, in that order, from `threads` threads, and returns when all are done. After an
// std::exception of `work` no further piece begins, and Error(KGRPO_ERROR_UNAVAILABLE) names the piece.
template <typename Work>
void InParallel(size_t threads, uint64_t first, uint64_t end, Work work) {
  std::atomic<uint64_t> next = first;
  std::mutex mutex;
  std::string failure;  // guarded by `mutex`
  std::vector<std::jthread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      for (uint64_t i = next++; i < end; i = next++) {
        try {
          work(i);
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          failure = "evaluation " + std::to_string(i) + ": " + error.what();
          next = end;
        }
      }
    });
  }
  running.clear();  // joins them
  if (!failure.empty()) throw Error(KGRPO_ERROR_UNAVAILABLE, failure);
}

}  // namespace kgrpo::bench

#endif
