// Finds out how a CUDA file uses the memory that a parameter points to: whether it is read or written first, through
// the kernels that a launcher calls, and by which indices. Used to draft a problem.
#ifndef KGRPO_TOOLS_DRAFT_USES_H
#define KGRPO_TOOLS_DRAFT_USES_H

#include <optional>
#include <string>
#include <vector>

#include "cuda_source/declarations.h"

namespace kgrpo::evaluator {

using cuda_source::CudaFunction, cuda_source::CudaSource, cuda_source::FunctionParameter, cuda_source::Lex;
using cuda_source::LexedSource, cuda_source::NotUnderstood, cuda_source::SourceReader, cuda_source::Token;

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

// The upper bounds of an index by conditions in the function, `i < n`, `i + 3 < n` or `i >= n`: "n"; each once.
std::vector<std::string> BoundsOf(const CudaSource& source, const CudaFunction& function, const std::string& index);
std::string BoundOf(const CudaSource& source, const CudaFunction& function,
                    const std::string& index);  // the first or ""

}  // namespace kgrpo::evaluator

#endif
