// The helper functions that generated kernels use, on a device and (host_prelude.h) on a host.
#include "kernel_generator.h"

namespace kgrpo::generated {

std::string DevicePrelude() {
  return R"(#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define D static __device__ __forceinline__
// Division where C++ defines it.
template <class T> D T QuotientOf(T a, T b) { return b == T(0) || (T(-1) < T(0) && b == T(-1)) ? a : a / b; }
template <class T> D T RemainderOf(T a, T b) { return b == T(0) || (T(-1) < T(0) && b == T(-1)) ? b : a % b; }
// Bits of a number; a NaN's are not defined, so that all are one.
D unsigned BitsOf(float v) { return v != v ? 0x7fffffffu : __float_as_uint(v); }
D unsigned long long BitsOf(double v) { return v != v ? 0x7fffffffffffffffull : (unsigned long long)__double_as_longlong(v); }
D unsigned BitsOf(__half v) { return __hisnan(v) ? 0x7fffu : (unsigned)__half_as_ushort(v); }
D unsigned BitsOf(__nv_bfloat16 v) { return __hisnan(v) ? 0x7fffu : (unsigned)__bfloat16_as_ushort(v); }
D double FromBits(unsigned long long v) { return __longlong_as_double((long long)v); }
template <class T> D T FromBits16(unsigned v);
template <> __device__ __forceinline__ __half FromBits16<__half>(unsigned v) { return __ushort_as_half((unsigned short)v); }
template <> __device__ __forceinline__ __nv_bfloat16 FromBits16<__nv_bfloat16>(unsigned v) { return __ushort_as_bfloat16((unsigned short)v); }
D __half2 PairOf(unsigned v, __half) { return __halves2half2(FromBits16<__half>(v), FromBits16<__half>(v >> 16)); }
D __nv_bfloat162 PairOf(unsigned v, __nv_bfloat16) { return __halves2bfloat162(FromBits16<__nv_bfloat16>(v), FromBits16<__nv_bfloat16>(v >> 16)); }
template <class T> D T Known(T v) { return v != v ? T(1) : v; }
D float Bounded(float v) { return fabsf(v) < 100.0f ? fabsf(v) : 1.0f; }
D double Bounded(double v) { return fabs(v) < 100.0 ? fabs(v) : 1.0; }
D int Exponent(int v) { return (v & 0x7fe00000) == 0x7fe00000 ? 0x40000000 : v; }
D unsigned MatchAll(unsigned v) { int p; unsigned m = __match_all_sync(0xffffffffu, v, &p); return m + (unsigned)p; }
// Arguments for approximate functions: where their error is documented.
D float Range(float v, float r) { return fabsf(v) <= r && fabsf(v) > 1e-30f ? v : 0.75f; }
D float Positive(float v) { float a = fabsf(v); return a >= 1e-30f && a <= 1e30f ? a : 1.5f; }
D __half Range16(__half v) { float f = __half2float(v); return fabsf(f) <= 3.0f && fabsf(f) > 0.001f ? v : __float2half_rn(0.75f); }
D __half Positive16(__half v) { float f = fabsf(__half2float(v)); return f >= 0.001f && f <= 1000.0f ? __habs(v) : __float2half_rn(1.5f); }
#define APPROXIMATE(name, ptx) D float name(float v) { float r; asm(ptx " %0, %1;" : "=f"(r) : "f"(v)); return r; }
APPROXIMATE(TanhApprox, "tanh.approx.f32")
APPROXIMATE(RcpApprox, "rcp.approx.f32")
APPROXIMATE(SqrtApprox, "sqrt.approx.f32")
APPROXIMATE(RsqrtApprox, "rsqrt.approx.f32")
APPROXIMATE(Ex2Approx, "ex2.approx.f32")
APPROXIMATE(Lg2Approx, "lg2.approx.f32")
APPROXIMATE(SinApprox, "sin.approx.f32")
APPROXIMATE(CosApprox, "cos.approx.f32")
D float DivFull(float a, float b) { float r; asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
D unsigned long long Stored(unsigned v) { return v; }
D unsigned long long Stored(int v) { return (unsigned)v; }
D unsigned long long Stored(unsigned long long v) { return v; }
D unsigned long long Stored(long long v) { return (unsigned long long)v; }
D unsigned long long Stored(float v) { return __float_as_uint(v); }
D unsigned long long Stored(double v) { return (unsigned long long)__double_as_longlong(v); }
D unsigned long long Stored(__half v) { return __half_as_ushort(v); }
D unsigned long long Stored(__nv_bfloat16 v) { return __bfloat16_as_ushort(v); }
D unsigned long long Stored(__half2 v) { return __half_as_ushort(__low2half(v)) | (unsigned)__half_as_ushort(__high2half(v)) << 16; }
D unsigned long long Stored(__nv_bfloat162 v) { return __bfloat16_as_ushort(__low2bfloat16(v)) | (unsigned)__bfloat16_as_ushort(__high2bfloat16(v)) << 16; }
#undef D
)";
}

}  // namespace kgrpo::generated
