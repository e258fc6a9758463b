// problem: tests/evaluator/problems/affine
// bug: n is rounded up to vectors of four, so the last vector reaches behind the arrays (n = 777)
// finding: out_of_bounds in AffineVector: reads 16 bytes out of bounds, 'x' (3108 bytes)
__global__ void AffineVector(const float4* x, const float4* y, float4* out, int vectors) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  const float4 a = x[i];  // found
  const float4 b = y[i];
  out[i] = make_float4(2 * a.x + b.x, 2 * a.y + b.y, 2 * a.z + b.z, 2 * a.w + b.w);
}
__global__ void AffineSmall(const float* x, const float* y, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = 2 * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  if (n < 64) {
    AffineSmall<<<1, 64>>>(x, y, out, n);
    return;
  }
  const int vectors = (n + 3) / 4;
  AffineVector<<<(vectors + 127) / 128, 128>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(y),
                                               reinterpret_cast<float4*>(out), vectors);
}
