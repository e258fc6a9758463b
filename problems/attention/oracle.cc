// Attention over a memory of slots, in float64: what the kernels of this problem are compared with.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void oracle(const double* q, const double* k, const double* v, double* out, int64_t queries, int64_t keys,
                       double scale) {
  constexpr int64_t kDim = 16;
  std::vector<double> weights(keys);
  for (int64_t query = 0; query < queries; ++query) {
    double maximum = -INFINITY;
    double sum = 0;
    for (int64_t key = 0; key < keys; ++key) {
      double total = 0;
      for (int64_t d = 0; d < kDim; ++d) {
        const double a = q[query * kDim + d];
        const double b = k[key * kDim + d];
        total += a * b;
      }
      weights[key] = total * scale;
      maximum = std::max(maximum, weights[key]);
    }
    for (double& weight : weights) sum += weight = std::exp(weight - maximum);
    for (int64_t d = 0; d < kDim; ++d) {
      double total = 0;
      for (int64_t key = 0; key < keys; ++key) total += weights[key] * v[key * kDim + d];
      out[query * kDim + d] = total / sum;
    }
  }
}
