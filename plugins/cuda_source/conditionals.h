// Decides the #if, #ifdef, #elif and #else of a source as far as its own text tells, without a compiler. The one reader
// of conditionals: drafts, the form of a candidate, the split for the fast compile route and messages use it. What is
// compiled in the end only a compiler decides.
#pragma once

#include <string>
#include <string_view>

namespace kgrpo::cuda_source {

struct ActiveSource {
  std::string text;  // of the same lines: branches that no compiler reads are blank
  // Where the first conditional begins that depends on the compiler, its options or its headers; npos: all are decided.
  size_t undecided = std::string_view::npos;
};

// A conditional that is not decided keeps all of its branches.
ActiveSource WithoutInactive(std::string_view source);

// Returns whether a compiler or a header that kernels may include may define a macro of this name: _X, CUDA_X, INT_MAX,
// assert. Other names are defined by the source only.
bool IsForeignMacro(std::string_view name);

}  // namespace kgrpo::cuda_source
