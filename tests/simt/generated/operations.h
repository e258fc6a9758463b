// The operations of generated kernels, by kind. Used by kernel_generator.cc.
#ifndef KGRPO_TESTS_SIMT_GENERATED_OPERATIONS_H_
#define KGRPO_TESTS_SIMT_GENERATED_OPERATIONS_H_

#include <iterator>
#include <vector>

#include "kernel_generator.h"

namespace kgrpo::generated {

// Types of values, a letter each: u unsigned, s int, U unsigned long long, S long long, f float, d double, h __half,
// b __nv_bfloat16, H __half2, B __nv_bfloat162.
struct Operation {
  char result;
  const char* arguments;  // letters
  const char* text;       // $0, $1, $2 are the arguments
  double ulps = 0, absolute = 0;
};

std::vector<Operation> IntegerOperations();
std::vector<Operation> FloatOperations();
std::vector<Operation> DoubleOperations();
std::vector<Operation> ConvertOperations();
std::vector<Operation> HalfOperations();
std::vector<Operation> WarpOperations();
std::vector<Operation> ApproximateOperations();
std::vector<Operation> MathOperations();

}  // namespace kgrpo::generated
#endif  // KGRPO_TESTS_SIMT_GENERATED_OPERATIONS_H_
