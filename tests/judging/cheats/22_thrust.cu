// problem: tests/evaluator/problems/affine
// hack: calls Thrust instead of writing a kernel
// cuda: forbidden
// sim: forbidden
#include <thrust/transform.h>
#include <thrust/execution_policy.h>
#include <thrust/device_ptr.h>

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  thrust::transform(thrust::device, x, x + n, y, out, [] __device__(float a, float b) { return 2.0f * a + b; });
}
