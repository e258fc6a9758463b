// parallel.cc - starts threads for each loop. An optimiser step over a model worth parallelising takes tens of
// milliseconds, and starting threads takes tens of microseconds, so no thread pool is kept.
#include "trainer_shared/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace kgrpo::trainer {
namespace {

// The processors this process may use, which in a container can be far fewer than the machine has.
size_t UsableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
}

constexpr size_t kBlocksWorthAThread = 8;

}  // namespace

void ParallelFor(size_t blocks, const std::function<void(size_t)>& body) {
  const size_t threads = std::min(UsableProcessors(), blocks / kBlocksWorthAThread);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t block = next.fetch_add(1); block < blocks; block = next.fetch_add(1)) body(block);
  };
  std::vector<std::jthread> helpers;
  for (size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
}

}  // namespace kgrpo::trainer
