// Instructions that everyday kernels rarely use, for coverage_test.cc. Each kernel is one warp unless it says otherwise.
#include <cstdint>
#include <cuda_fp8.h>

#define KERNEL extern "C" __global__ void
static __device__ unsigned SharedAddress(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// One value of a row for each of these: x, y, z are the thread's.
KERNEL Bits(const unsigned* x, const unsigned* y, const unsigned* z, unsigned* out) {
  const unsigned a = x[threadIdx.x], b = y[threadIdx.x], c = z[threadIdx.x];
  unsigned* row = out + 16 * threadIdx.x;
#define THREE(i, ptx) asm(ptx " %0, %1, %2, %3;" : "=r"(row[i]) : "r"(a), "r"(b), "r"(c));
#define TWO(i, ptx) asm(ptx " %0, %1, %2;" : "=r"(row[i]) : "r"(a), "r"(b));
  THREE(0, "dp2a.lo.s32.u32")
  THREE(1, "mad24.hi.u32")
  TWO(2, "mul24.hi.s32")
  TWO(3, "bmsk.clamp.b32")
  TWO(4, "szext.clamp.s32")
  THREE(5, "vadd.s32.s32.s32.sat.max")
  THREE(6, "vmad.s32.s32.s32.shr7")
  THREE(7, "vset4.u32.u32.ge.add")
  asm("vsub.s32.s32.s32.sat %0, %1.b1, %2.h1;" : "=r"(row[8]) : "r"(a), "r"(b));
  THREE(9, "vshr.s32.s32.u32.clamp.add")
  TWO(10, "cvt.pack.sat.s16.s32")
  asm("{.reg .pred p, q; setp.ne.s32 q, %1, 0; lop3.and.b32 %0|p, %1, %2, %3, 0x96, q; selp.b32 %0, 7, 0, p;}"
      : "=r"(row[11]) : "r"(a), "r"(b), "r"(c));
  asm("fns.b32 %0, %1, %2, %3;" : "=r"(row[12]) : "r"(a), "r"(b & 31u), "r"((c & 7u) - 3u));
  TWO(13, "max.s16x2")
  TWO(14, "add.u16x2")
  THREE(15, "cvt.pack.sat.u8.s32.b32")
}

// All codes of the 8-bit formats to halves and back; tf32 and saturating conversions of floats.
KERNEL Tiny(const float* x, unsigned* halves, unsigned* back, unsigned* narrow) {
  for (unsigned code = threadIdx.x; code < 256; code += 32) {
    for (int f = 0; f < 2; ++f) {
      const __half_raw h = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, f == 0 ? __NV_E4M3 : __NV_E5M2);
      halves[f * 256 + code] = h.x;
      back[f * 256 + code] = __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, f == 0 ? __NV_E4M3 : __NV_E5M2);
    }
  }
  unsigned* row = narrow + 8 * threadIdx.x;
  const float v = x[threadIdx.x], w = x[threadIdx.x + 1];
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(row[0]) : "f"(v));
  asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(row[1]) : "f"(v), "f"(w));
  asm("cvt.rn.satfinite.relu.bf16x2.f32 %0, %1, %2;" : "=r"(row[2]) : "f"(v), "f"(w));
  asm("min.xorsign.abs.f32 %0, %1, %2;" : "=r"(row[3]) : "r"(__float_as_uint(v)), "r"(__float_as_uint(w)));
  row[4] = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3);
  row[5] = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E5M2);
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(row[6]) : "f"(v));
}

// c = a b in each format, of whole registers: a is 4 x 32 words, b 2 x 32.
KERNEL Products(const unsigned* a, const unsigned* b, int* out, float* out_float, double* out_double) {
  unsigned x[4], y[2];
  for (int i = 0; i < 4; ++i) x[i] = a[i * 32 + threadIdx.x];
  for (int i = 0; i < 2; ++i) y[i] = b[i * 32 + threadIdx.x];
#define INTEGERS(row, ptx)                                                                                             \
  {                                                                                                                    \
    int c[4] = {1, 2, 3, 4};                                                                                           \
    asm("mma.sync.aligned." ptx " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                             \
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                                                               \
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));                                          \
    for (int i = 0; i < 4; ++i) out[(row * 4 + i) * 32 + threadIdx.x] = c[i];                                          \
  }
  INTEGERS(0, "m16n8k32.row.col.s32.s8.s8.s32")
  INTEGERS(1, "m16n8k32.row.col.s32.u8.s8.s32")
  INTEGERS(2, "m16n8k64.row.col.s32.s4.u4.s32")
  asm volatile("" ::: "memory");
  {
    int c[4] = {0, 0, 0, 0};
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (int i = 0; i < 4; ++i) out[(12 + i) * 32 + threadIdx.x] = c[i];
  }
  {
    float c[4] = {0, 0, 0, 0};
    // Codes 0x30 to 0x3F of e4m3: 0.5 to 1.875 in sixteenths.
    unsigned p[4], q[2];
    for (int i = 0; i < 4; ++i) p[i] = (x[i] & 0x0f0f0f0fu) | 0x30303030u;
    for (int i = 0; i < 2; ++i) q[i] = (y[i] & 0x0f0f0f0fu) | 0x30303030u;
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]));
    for (int i = 0; i < 4; ++i) out_float[i * 32 + threadIdx.x] = c[i];
  }
  {
    double c[4] = {0, 0, 0, 0};
    const double u[4] = {(double)(x[0] & 255u), (double)(x[1] & 255u), (double)(x[2] & 255u), (double)(x[3] & 255u)};
    const double v[2] = {(double)(y[0] & 255u), (double)(y[1] & 255u)};
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(u[0]), "d"(u[1]), "d"(u[2]), "d"(u[3]), "d"(v[0]), "d"(v[1]));
    for (int i = 0; i < 4; ++i) out_double[i * 32 + threadIdx.x] = c[i];
  }
}

// A matrix of 8 x 8 halves through stmatrix, plain and transposed, and movmatrix.
KERNEL Matrices(const unsigned* in, unsigned* plain, unsigned* transposed, unsigned* moved) {
  __shared__ __align__(16) unsigned tile[2][32];
  const unsigned word = in[threadIdx.x], row = threadIdx.x % 8;
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(SharedAddress(&tile[0][row * 4])), "r"(word) : "memory");
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(SharedAddress(&tile[1][row * 4])), "r"(word) : "memory");
  __syncwarp();
  plain[threadIdx.x] = tile[0][threadIdx.x];
  transposed[threadIdx.x] = tile[1][threadIdx.x];
  unsigned other;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(other) : "r"(word));
  moved[threadIdx.x] = other;
}

// Two warps: all arrive at an mbarrier, wait for its phase, read what the other wrote; twice.
template <bool kWait>
static __device__ void Phases(int* out) {
  __shared__ uint64_t barrier;
  __shared__ int values[64];
  const unsigned at = SharedAddress(&barrier);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(at) : "memory");
  __syncthreads();
  int sum = 0;
  for (unsigned phase = 0; phase < 2; ++phase) {
    values[threadIdx.x] = (int)(threadIdx.x * (phase + 1));
    for (int half = 0; half < 2; ++half) {
      uint64_t state;
      asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
      if (kWait || half == 1) {
        unsigned done = 0;
        while (done == 0) {
          asm volatile("{.reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                       : "=r"(done) : "r"(at), "l"(state) : "memory");
        }
      }
      if (half == 0) sum += values[63 - threadIdx.x];
    }
  }
  out[threadIdx.x] = sum;
}
KERNEL Mbarrier(int* out) { Phases<true>(out); }
KERNEL MbarrierWithoutWait(int* out) { Phases<false>(out); }

// Copies that arrive at an mbarrier, some of them ignored, with hints to the cache.
KERNEL CopiesThatArrive(const int* in, int* out) {
  __shared__ uint64_t barrier;
  __shared__ __align__(16) int values[32 * 4];
  const unsigned at = SharedAddress(&barrier);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncwarp();
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("{.reg .pred p; setp.eq.u32 p, %2, 1; cp.async.cg.shared.global [%0], [%1], 16, p;}"
               ::"r"(SharedAddress(values + 4 * threadIdx.x)), "l"(in + 4 * threadIdx.x), "r"(threadIdx.x % 2) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra W;}" ::"r"(at) : "memory");
  const int* from = values + 4 * (31 - threadIdx.x);
  int sum;
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(sum) : "l"(in), "l"(policy));
  out[threadIdx.x] = sum + from[0] + from[3];
}

KERNEL VectorAtomics(float4* sums, float2* old) {
  atomicAdd(sums, make_float4(1, 2, 3, 4));
  old[threadIdx.x] = atomicAdd((float2*)sums, make_float2((float)threadIdx.x, 1));
}

using Function = float (*)(float, int);
static __device__ __noinline__ float Plus(float x, int n) { return x + (float)n; }
static __device__ __noinline__ float Times(float x, int n) { return x * (float)n; }
static __device__ __noinline__ float Minus(float x, int n) {
  if (n > 5) return x - (float)n;
  return x;
}
__device__ Function kFunctions[4] = {Plus, Times, Minus, nullptr};
KERNEL Pointers(const float* x, const int* which, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = kFunctions[which[i]](x[i], i);
}

struct Shape {
  int k;
  __device__ explicit Shape(int k) : k(k) {}
  __device__ virtual float Apply(float x) const { return x + (float)k; }
  __device__ virtual int Id() const = 0;
};
struct Scale : Shape {
  __device__ Scale() : Shape(3) {}
  __device__ float Apply(float x) const override { return x * (float)k; }
  __device__ int Id() const override { return 1; }
};
struct Move : Shape {
  __device__ Move() : Shape(4) {}
  __device__ float Apply(float x) const override { return x - (float)k; }
  __device__ int Id() const override { return 2; }
};
KERNEL Virtual(const float* x, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  Scale scale;
  Move move;
  const Shape* shape = i % 2 == 1 ? (const Shape*)&scale : (const Shape*)&move;
  out[i] = shape->Apply(x[i]) + (float)shape->Id();
}

static __device__ __noinline__ int FibonacciOf(int n) { return n < 2 ? n : FibonacciOf(n - 1) + FibonacciOf(n - 2); }
KERNEL Fibonacci(int* out) { out[threadIdx.x] = FibonacciOf(threadIdx.x % 12); }

static __device__ __noinline__ void Sort(int* values, int low, int high) {
  if (low >= high) return;
  const int pivot = values[high];
  int at = low;
  for (int j = low; j < high; ++j) {
    if (values[j] < pivot) {
      const int v = values[at];
      values[at++] = values[j];
      values[j] = v;
    }
  }
  values[high] = values[at];
  values[at] = pivot;
  Sort(values, low, at - 1);
  Sort(values, at + 1, high);
}
KERNEL Quicksort(int* values, int n) { Sort(values + threadIdx.x * n, 0, n - 1); }

static __device__ __noinline__ int Deeper(int n, int* out) {
  int kept[4] = {n, n + 1, n + 2, n + 3};
  if (n > 0) kept[n & 3] = Deeper(n - 1, out);
  return kept[(n + 1) & 3] + kept[n & 3] + *out;
}
KERNEL Endless(int* out, int n) {
  if (threadIdx.x == 3) out[0] = Deeper(n, out);
}
