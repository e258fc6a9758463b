// How many elements a kernel handles in each block and thread, by the indices in its text. Used by draft.cc, for
// kernels without a launcher.
#ifndef KGRPO_TOOLS_DRAFT_THREAD_INDEX_H
#define KGRPO_TOOLS_DRAFT_THREAD_INDEX_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cuda_source/declarations.h"
#include "judge/problem/dtype.h"

namespace kgrpo::evaluator {

using cuda_source::CudaFunction, cuda_source::CudaSource;

struct ElementType {
  DType dtype;
  int lanes;  // the type is a vector
};
// "float4" is 4 lanes of float32. Nothing for types that problems do not have. Unsigned integers of 64 bits are int64.
std::optional<ElementType> ElementTypeOf(std::string type);

class ThreadIndex {
 public:
  // `bindings`: of the function's template parameters. The arguments outlive this.
  ThreadIndex(const CudaSource& source, const CudaFunction& function,
              const std::map<std::string, std::string>& bindings)
      : source_(source), function_(function), bindings_(bindings) {}

  // The value of a template parameter, a constant, an alias or a macro; "" for other names.
  std::string ValueOf(const std::string& name) const;

  // The number or truth value of an expression of constants, with local variables; "" for others.
  std::string ConstantOf(const std::string& expression) const;

  struct Step {
    int64_t block, thread;  // elements from one block, and from one thread, to the next
    bool by_size;           // it depends on blockDim, for which `threads` was taken
    std::string index;      // the variable that has it
  };
  // By the first index that block and thread number make along an axis, "x" or "y": 1024 and 4 for
  // `(blockIdx.x * 256 + threadIdx.x) * 4`.
  std::optional<Step> StepAlong(const char* axis, int64_t threads) const;

  // The threads of `__launch_bounds__(N)`, else 256.
  int64_t Bounds() const;

 private:
  std::string OverThreads(const std::string& expression, const char* axis, int depth) const;
  std::string DefinitionOf(const std::string& name) const;

  const CudaSource& source_;
  const CudaFunction& function_;
  const std::map<std::string, std::string>& bindings_;
};

}  // namespace kgrpo::evaluator

#endif
