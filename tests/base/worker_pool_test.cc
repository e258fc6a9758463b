// base/worker_pool.h: the number of threads.
#include "base/worker_pool.h"

#include "test.h"

namespace kgrpo {
namespace {

auto Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

TEST(WorkerPool, StartsNoMoreThreadsThanThereIsWork) {
  const auto before = Threads();
  {
    WorkerPool pool(8, 2);
    EXPECT_EQ(Threads() - before, 2);
    int sum = 0;
    std::mutex mutex;
    pool.ForEach(3, [&](size_t i) {
      const std::lock_guard<std::mutex> lock(mutex);
      sum += static_cast<int>(i);
    });
    EXPECT_EQ(sum, 3);
  }
  WorkerPool(0, 0).ForEach(0, [](size_t) { FAIL(); });
}

}  // namespace
}  // namespace kgrpo
