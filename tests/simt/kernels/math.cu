// One result an operation: out[i * kOperations + k] is operation k of the i-th inputs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void FloatMath(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float a = x[i], b = y[i], p = fabsf(a) + 0.01f;
  float* o = out + i * 32;
  int k = 0;
  o[k++] = expf(a);
  o[k++] = logf(p);
  o[k++] = sinf(a * 10);
  o[k++] = cosf(a * 10);
  o[k++] = tanhf(a);
  o[k++] = erff(a);
  o[k++] = powf(p, b);
  o[k++] = sqrtf(p);
  o[k++] = rsqrtf(p);
  o[k++] = a / (b + 3);
  o[k++] = 1 / (b + 3);
  o[k++] = __expf(a);
  o[k++] = __logf(p);
  o[k++] = __sinf(a);
  o[k++] = __cosf(a);
  o[k++] = __fdividef(a, p);
  o[k++] = exp2f(a);
  o[k++] = log2f(p);
  o[k++] = cbrtf(a);
  o[k++] = hypotf(a, b);
  o[k++] = floorf(a * 5);
  o[k++] = rintf(a * 5);
  o[k++] = truncf(a * 5);
  o[k++] = fmodf(a * 7, p);
  o[k++] = fminf(a, b);
  o[k++] = log1pf(p);
  o[k++] = expm1f(a);
  o[k++] = atan2f(a, b);
  o[k++] = lgammaf(p + 1);
  o[k++] = sinf(a * 1e6f);
  o[k++] = static_cast<float>(exp(static_cast<double>(a)) * sin(static_cast<double>(b)) / sqrt(static_cast<double>(p)));
  o[k++] = static_cast<float>(pow(static_cast<double>(p), static_cast<double>(b)));
}

extern "C" __global__ void FloatBits(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float a = x[i], b = y[i];
  float* o = out + i * 16;
  int k = 0;
  o[k++] = __fadd_rz(a, b);
  o[k++] = __fadd_ru(a, b);
  o[k++] = __fadd_rd(a, b);
  o[k++] = __fmul_rz(a, b);
  o[k++] = __fmaf_rd(a, b, a);
  o[k++] = __fmaf_rn(a, b, -a);
  o[k++] = __saturatef(a * 2);
  o[k++] = __int2float_rz(static_cast<int>(a * 2e9f));
  o[k++] = __uint2float_rn(static_cast<unsigned>(fabsf(a) * 4e9f));
  o[k++] = __float2int_rd(a * 1000);
  o[k++] = __float2uint_rn(a * 1e10f);
  o[k++] = static_cast<float>(static_cast<long long>(a * 1e18f));
  o[k++] = __double2float_ru(static_cast<double>(a) * b);
  o[k++] = static_cast<float>(static_cast<signed char>(a * 100));
  o[k++] = copysignf(a, b);
  o[k++] = fmaxf(a, b == a ? a : NAN);
}

extern "C" __global__ void HalfMath(const unsigned short* x, const unsigned short* y, unsigned short* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half a = __ushort_as_half(x[i]), b = __ushort_as_half(y[i]);
  unsigned short* o = out + i * 16;
  int k = 0;
  o[k++] = __half_as_ushort(__hadd(a, b));
  o[k++] = __half_as_ushort(__hsub(a, b));
  o[k++] = __half_as_ushort(__hmul(a, b));
  o[k++] = __half_as_ushort(__hfma(a, b, a));
  o[k++] = __half_as_ushort(__float2half(__half2float(a) * 1.37f));
  o[k++] = __half_as_ushort(__hneg(a));
  o[k++] = __half_as_ushort(__hmax(a, b));
  o[k++] = __hlt(a, b);
  o[k++] = __half_as_ushort(__low2half(__hadd2(__halves2half2(a, b), __halves2half2(b, b))));
  o[k++] = __half_as_ushort(__high2half(__hmul2(__halves2half2(a, b), __halves2half2(b, b))));
  const __nv_bfloat16 c = __ushort_as_bfloat16(x[i]), d = __ushort_as_bfloat16(y[i]);
  o[k++] = __bfloat16_as_ushort(__hadd(c, d));
  o[k++] = __bfloat16_as_ushort(__hmul(c, d));
  o[k++] = __bfloat16_as_ushort(__hfma(c, d, c));
  o[k++] = __bfloat16_as_ushort(__float2bfloat16(__bfloat162float(c) * 1.37f));
  o[k++] = static_cast<unsigned short>(__half2int_rn(a));
  o[k++] = __half_as_ushort(__float2half_rz(__half2float(a) * 1.37f));
}

extern "C" __global__ void Integers(const int* x, const int* y, long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int a = x[i], b = y[i];
  const unsigned u = a, v = b;
  const long long w = static_cast<long long>(a) * b + a;
  long long* o = out + i * 24;
  int k = 0;
  o[k++] = a / (b | 1);
  o[k++] = a % (b | 1);
  o[k++] = u / (v | 1);
  o[k++] = u % (v | 1);
  o[k++] = w / (b | 1);
  o[k++] = static_cast<unsigned long long>(w) % (v | 1);
  o[k++] = __umulhi(u, v);
  o[k++] = __mulhi(a, b);
  o[k++] = __clz(a);
  o[k++] = __popc(u);
  o[k++] = __ffs(a);
  o[k++] = __brev(u);
  o[k++] = __clzll(w);
  o[k++] = __popcll(w);
  o[k++] = __byte_perm(u, v, 0x3715);
  o[k++] = __funnelshift_l(u, v, a & 63);
  o[k++] = __dp4a(a, b, a);
  o[k++] = __usad(u, v, u);
  o[k++] = (u >> 3 & 0x7ff) | (v << 11);
  o[k++] = a >> (b & 31);
  o[k++] = w >> (b & 63);
  o[k++] = min(a, b) + max(u, v);
  o[k++] = __mul24(a, b);
  o[k++] = static_cast<short>(a) * static_cast<unsigned char>(b);
}
