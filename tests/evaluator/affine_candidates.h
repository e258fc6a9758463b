// Candidates for the problem `affine`, made of an honest kernel and launch with one of them replaced. Used by the tests
// of both evaluators.
#ifndef KGRPO_TESTS_EVALUATOR_AFFINE_CANDIDATES_H
#define KGRPO_TESTS_EVALUATOR_AFFINE_CANDIDATES_H

#include <string>

namespace kgrpo::evaluator {

inline const std::string kKernel = R"(
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}
)";
inline const std::string kLaunch = "extern \"C\" void launch(const float* x, const float* y, float* out, int n)";
inline const std::string kHonest = "k<<<(n + 255) / 256, 256>>>(x, y, out, n);";

// The honest kernel with a launch function of body `body`.
inline std::string WithBody(const std::string& body) { return kKernel + kLaunch + " { " + body + " }\n"; }

// An honest launch function with a kernel of body `body`.
inline std::string WithKernel(const std::string& body) {
  return "__global__ void k(const float* x, const float* y, float* out, int n) { int i = blockIdx.x * blockDim.x + "
         "threadIdx.x; " +
         body + " }\n" + kLaunch + " { " + kHonest + " }\n";
}

}  // namespace kgrpo::evaluator
#endif
