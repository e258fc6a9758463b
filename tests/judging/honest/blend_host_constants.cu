// problem: problems/blend_chunks
// style: coefficients staged in pinned host memory and copied to a __constant__ array, the copy waited for by an event before reuse
// cuda: correct
// sim: correct
#include <memory>

__constant__ float coefficients[2];

__global__ void Blend(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fminf(fmaxf(fmaf(coefficients[0], a[i], coefficients[1] * b[i]), -1.0f), 1.0f);
}

namespace {
class Staging {
 public:
  Staging() {
    cudaMallocHost(reinterpret_cast<void**>(&values_), 2 * sizeof(float));
    cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming);
  }
  void Copy(float alpha) {
    cudaEventSynchronize(copied_);  // at once before the first copy
    values_[0] = alpha;
    values_[1] = 1.0f - alpha;
    cudaMemcpyToSymbolAsync(coefficients, values_, 2 * sizeof(float), 0, cudaMemcpyHostToDevice, 0);
    cudaEventRecord(copied_, 0);
  }

 private:
  float* values_ = nullptr;
  cudaEvent_t copied_ = nullptr;
};
}  // namespace

extern "C" void launch(const float* a, const float* b, float* out, float alpha, int n) {
  static const std::unique_ptr<Staging> staging = std::make_unique<Staging>();
  staging->Copy(alpha);
  Blend<<<(n + 255) / 256, 256>>>(a, b, out, n);
}
