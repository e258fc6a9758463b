// Functions of CUDA's library whose results an H200 told (measured_h200.csv); compiled with and without -ftz=true.
// Thread i reads the first two of its three words and writes one.
#define FUNCTION(name, type, expression)                                                   \
  extern "C" __global__ void name(const unsigned long long* in, unsigned long long* out) { \
    const unsigned i = threadIdx.x;                                                        \
    const type a = Read(in[3 * i], type()), b = Read(in[3 * i + 1], type());               \
    out[i] = Bits(expression);                                                             \
  }
static __device__ float Read(unsigned long long bits, float) {
  return __uint_as_float((unsigned)bits);
}
static __device__ double Read(unsigned long long bits, double) {
  return __longlong_as_double((long long)bits);
}
static __device__ unsigned long long Bits(float v) {
  return __float_as_uint(v);
}
static __device__ unsigned long long Bits(double v) {
  return (unsigned long long)__double_as_longlong(v);
}
FUNCTION(cbrtf_of, float, cbrtf(a))
FUNCTION(rcbrtf_of, float, rcbrtf(a))
FUNCTION(powf_of, float, powf(a, b))
FUNCTION(tgammaf_of, float, tgammaf(a))
FUNCTION(nextafterf_of, float, nextafterf(a, b))
FUNCTION(erfcinv_of, double, erfcinv(a))
FUNCTION(normcdfinv_of, double, normcdfinv(a))
