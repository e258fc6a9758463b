// A loop over independent items on several threads. Used by `check`, `problems`, and `eval` of several kernels.
#ifndef KGRPO_CLI_PARALLEL_H
#define KGRPO_CLI_PARALLEL_H

#include <cstddef>
#include <functional>

namespace kgrpo::cli {

// Runs body(0) .. body(count - 1) on `workers` threads (0: as many as there are cores), and waits for all. Then throws
// the exception of the lowest index that failed.
void ParallelFor(size_t count, const std::function<void(size_t)>& body, size_t workers = 0);

}  // namespace kgrpo::cli
#endif
