#include "cli/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace kgrpo::cli {

void ParallelFor(size_t count, const std::function<void(size_t)>& body, size_t workers) {
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;) {
      try {
        body(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    if (workers == 0) workers = std::max(1U, std::thread::hardware_concurrency());
    workers = std::min(count, workers);
    for (size_t i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& exception : thrown) {
    if (exception != nullptr) std::rethrow_exception(exception);
  }
}

}  // namespace kgrpo::cli
