// How a file itself calls one of its functions: the launch of a kernel, the memory that it gets, the values of its
// arguments. Used by draft.cc for what the function alone does not tell.
#ifndef KGRPO_TOOLS_DRAFT_CALL_SITE_H
#define KGRPO_TOOLS_DRAFT_CALL_SITE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "draft/uses.h"

namespace kgrpo::evaluator {

// The first call in the file. Expressions are in problem.yaml's form, in names of the function's parameters and of
// `sizes`; what is not understood is empty or missing.
struct CallSite {
  int line = 0;                                            // 0: the file does not call it
  std::string grid, block, shared;                         // the kernel's: "ceil_div(n, 256)", "16,16"
  std::map<std::string, std::vector<std::string>> shapes;  // pointers' shapes, by the cudaMalloc of their arguments
  std::map<std::string, std::string> values;               // parameters whose arguments are constants
  std::map<std::string, int64_t> sizes;                    // variables of the caller that shapes mention
};

CallSite CallSiteOf(const CudaSource& source, const CudaFunction& function);

}  // namespace kgrpo::evaluator

#endif
