// A loop over independent items on several threads. Used by `check` and `problems`.
#ifndef KGRPO_CLI_PARALLEL_H
#define KGRPO_CLI_PARALLEL_H

#include <cstddef>
#include <functional>

namespace kgrpo::cli {

// body(0) .. body(count - 1), on as many threads as there are cores. Returns when all are done; what one throws is
// thrown once the others have ended, the lowest index first.
void ParallelFor(size_t count, const std::function<void(size_t)>& body);

}  // namespace kgrpo::cli
#endif
