// problem: problems/gaussian_mixture
// style: a constexpr table in __constant__ memory, powers as exp2 of log2, template recursion over the components
// cuda: correct
// sim: correct
struct Component {
  float centre, steepness, weight;
};
constexpr Component Make(int k) { return {(k - 6) / 3.0f, (4.0f + k) * 1.44269504f, 1.0f / (1.0f + k)}; }
__constant__ Component components[12] = {Make(0), Make(1), Make(2), Make(3), Make(4),  Make(5),
                                         Make(6), Make(7), Make(8), Make(9), Make(10), Make(11)};

template <int kFirst, int kEnd>
__device__ __forceinline__ float Sum(float x, float sharpness) {
  if constexpr (kFirst < kEnd) {
    const Component& c = components[kFirst];
    const float power = exp2f(sharpness * log2f(fabsf(x - c.centre)));
    return c.weight * exp2f(-c.steepness * power) + Sum<kFirst + 1, kEnd>(x, sharpness);
  } else {
    return 0.0f;
  }
}

__global__ void Mixture(const float* x, float* out, float sharpness, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = logf(Sum<0, 12>(x[i], sharpness));
}

extern "C" void launch(const float* x, float* out, float sharpness, int n) {
  Mixture<<<(n + 191) / 192, 192>>>(x, out, sharpness, n);
}
