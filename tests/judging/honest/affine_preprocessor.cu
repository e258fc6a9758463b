// problem: tests/evaluator/problems/affine
// style: __CUDA_ARCH__ and __CUDACC__ guards, __host__ __device__ functions used on both sides, macros that stamp kernels out
// cuda: correct
// sim: correct
#if defined(__CUDACC__)
#define BOTH __host__ __device__ __forceinline__
#else
#define BOTH inline
#endif

BOTH int CeilDiv(int a, int b) { return (a + b - 1) / b; }

#define DEFINE_AFFINE(suffix, items)                                                        \
  __global__ void Affine##suffix(const float* x, const float* y, float* out, int n) {       \
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * (items);                    \
    for (int i = first; i < first + (items) && i < n; ++i) out[i] = Combine(x[i], y[i]);    \
  }

__device__ float Combine(float a, float b) {
#if __CUDA_ARCH__ >= 800
  return __fmaf_rn(2.0f, a, b);
#else
  return 2.0f * a + b;
#endif
}

DEFINE_AFFINE(One, 1)
DEFINE_AFFINE(Three, 3)

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  if (n % 3 == 0) {
    AffineThree<<<CeilDiv(CeilDiv(n, 3), 128), 128>>>(x, y, out, n);
  } else {
    AffineOne<<<CeilDiv(n, 128), 128>>>(x, y, out, n);
  }
}
