// problem: tests/evaluator/problems/affine
// style: a functor passed by value to a template kernel, elements per thread as a template argument, if constexpr
// cuda: correct
// sim: correct
struct Affine {
  float factor;
  __host__ __device__ constexpr explicit Affine(float f) : factor(f) {}
  __device__ float operator()(float a, float b) const { return fmaf(factor, a, b); }
};

template <int kItems, bool kWhole, typename Function>
__global__ void Transform(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int first,
                          int n, Function function) {
  const int base = first + blockIdx.x * (blockDim.x * kItems) + threadIdx.x;
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    const int i = base + item * blockDim.x;
    if constexpr (kWhole) {
      out[i] = function(a[i], b[i]);
    } else {
      if (i < n) out[i] = function(a[i], b[i]);
    }
  }
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  constexpr int kItems = 4, kBlock = 64, kTile = kItems * kBlock;
  const int whole = n / kTile;
  const Affine function(2.0f);
  if (whole > 0) Transform<kItems, true><<<whole, kBlock>>>(x, y, out, 0, n, function);
  if (n % kTile != 0) Transform<kItems, false><<<1, kBlock>>>(x, y, out, whole * kTile, n, function);
}
