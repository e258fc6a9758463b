// parallel.h - a loop over a large array on all cores that this process may use. Used by cpu_tensor_math.cc.
#pragma once
#include <cstddef>
#include <functional>

namespace kgrpo::trainer {

// Calls body(block) once for each block in [0, blocks), on up to as many threads as the process may run on, and returns
// when all are done. Which thread runs which block is unspecified, so a body may write only what belongs to its block;
// then the result does not depend on the number of threads. `body` must not throw. Small loops run on the calling
// thread.
void ParallelFor(size_t blocks, const std::function<void(size_t)>& body);

}  // namespace kgrpo::trainer
