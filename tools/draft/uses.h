// Finds out how a CUDA file uses the memory that a parameter points to: whether it is read or written first, through
// the kernels that a launcher calls, and by which indices. Used to draft a problem.
#ifndef KGRPO_TOOLS_DRAFT_USES_H
#define KGRPO_TOOLS_DRAFT_USES_H

#include <optional>
#include <string>
#include <vector>

#include "draft/cuda_source.h"

namespace kgrpo::evaluator {

struct Uses {
  bool read = false, written = false;
  bool written_first = false;  // the write comes before the read in the text
  int read_line = 0;           // of the first read
  // ["rows", "cols"], in names of the function's parameters; nothing where the indices do not tell.
  std::optional<std::vector<std::string>> shape;
};

// Looks at tokens alone: a pointer that is kept in a struct or given to another file's function is not followed.
// `grid`: for a kernel without a launcher, the number of blocks that it is launched with; may be "".
Uses UsesOf(const CudaSource& source, const CudaFunction& function, const std::string& parameter,
            const std::string& grid);

// One call of a kernel in a launcher: `k<<<grid, block>>>(a, b)`, or a cooperative launch.
struct KernelLaunch {
  const CudaFunction* kernel;
  std::vector<std::string> arguments;  // their texts
};
std::vector<KernelLaunch> LaunchesOf(const CudaSource& source, const CudaFunction& function);

// The upper bound of an index by a condition in the function, `i < n`, `i + 3 < n` or `i >= n`: "n"; "" where there
// is none.
std::string BoundOf(const CudaSource& source, const CudaFunction& function, const std::string& index);

}  // namespace kgrpo::evaluator

#endif
