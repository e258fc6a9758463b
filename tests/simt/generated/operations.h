// The operations of generated kernels, by kind. Used by builder.cc and programs.cc.
#ifndef KGRPO_TESTS_SIMT_GENERATED_OPERATIONS_H_
#define KGRPO_TESTS_SIMT_GENERATED_OPERATIONS_H_

#include <string>
#include <vector>

#include "kernel_generator.h"

namespace kgrpo::generated {

// Types of values, a letter each: u unsigned, s int, U unsigned long long, S long long, f float, d double, h __half,
// b __nv_bfloat16, H __half2, B __nv_bfloat162.
struct Operation {
  char result;
  std::string arguments;  // letters
  std::string text;       // $0, $1, $2 are the arguments
  double ulps = 0, absolute = 0;
};

// Those of a kind; integer operations for a kind without its own.
std::vector<Operation> Operations(Kind kind);

}  // namespace kgrpo::generated
#endif  // KGRPO_TESTS_SIMT_GENERATED_OPERATIONS_H_
