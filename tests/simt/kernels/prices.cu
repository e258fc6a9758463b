// Kernels whose work is what the time model has own prices for; see prices_test.cc. As in bench/calibrate/prices.cu.
#include <cooperative_groups.h>

#include <cstdint>

__device__ volatile unsigned d_flag[65536];
__device__ volatile float d_total[65536];
__device__ unsigned d_lock, d_counter, d_tickets, d_turn;
__constant__ uint32_t c_table[15360];

// Each block waits for its predecessor. kind 0: volatile flags and fences; 1: no fence; 2: release and acquire.
template <int kind>
__device__ void Chain(float* out) {
  if (threadIdx.x != 0) return;
  float p = 0;
  if (blockIdx.x != 0) {
    const unsigned before = blockIdx.x - 1;
    if (kind == 2) {
      unsigned value;
      do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(const_cast<unsigned*>(&d_flag[before])) : "memory");
      while (value != 7);
    } else {
      while (d_flag[before] != 7) {}
      if (kind == 0) __threadfence();
    }
    p = d_total[before];
  }
  d_total[blockIdx.x] = p + 1;
  if (kind == 0) __threadfence();
  if (kind == 2) {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(const_cast<unsigned*>(&d_flag[blockIdx.x])), "r"(7) : "memory");
  } else {
    d_flag[blockIdx.x] = 7;
  }
  if (blockIdx.x == gridDim.x - 1) *out = p;
}
extern "C" __global__ void ChainOfFences(float* out) { Chain<0>(out); }
extern "C" __global__ void ChainOfFlags(float* out) { Chain<1>(out); }
extern "C" __global__ void ChainOfReleases(float* out) { Chain<2>(out); }

extern "C" __global__ void Lock(float* out) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(&d_lock, 0, 1) != 0) {}
  __threadfence();
  d_total[0] = d_total[0] + 1;
  __threadfence();
  atomicExch(&d_lock, 0);
}
extern "C" __global__ void Swap(float* out) {
  unsigned old = *reinterpret_cast<volatile unsigned*>(&d_counter), assumed;
  do {
    assumed = old;
    old = atomicCAS(&d_counter, assumed, assumed + 1);
  } while (assumed != old);
}
extern "C" __global__ void Tickets(float* out) {
  if (threadIdx.x != 0) return;
  const unsigned mine = atomicAdd(&d_tickets, 1);
  while (*reinterpret_cast<volatile unsigned*>(&d_turn) != mine) {}
  __threadfence();
  d_total[0] = d_total[0] + 1;
  __threadfence();
  *reinterpret_cast<volatile unsigned*>(&d_turn) = mine + 1;
}
extern "C" __global__ void GridSync(float* out) {
  const auto grid = cooperative_groups::this_grid();
  for (int r = 0; r < 100; ++r) grid.sync();
}

template <int scope>
__device__ void Fences(float* out) {
  volatile uint32_t* at = reinterpret_cast<volatile uint32_t*>(out) + blockIdx.x * 256 + threadIdx.x;
  for (int r = 0; r < 64; ++r) {
    *at = static_cast<uint32_t>(r);
    if (scope == 0) __threadfence_block();
    if (scope == 1) __threadfence();
    if (scope == 2) __threadfence_system();
  }
}
extern "C" __global__ void FencesOfBlock(float* out) { Fences<0>(out); }
extern "C" __global__ void FencesOfDevice(float* out) { Fences<1>(out); }
extern "C" __global__ void FencesOfSystem(float* out) { Fences<2>(out); }
extern "C" __global__ void Sleep(float* out) {
  for (int r = 0; r < 64; ++r) __nanosleep(1000);
}

template <int words>
__device__ void Local(float* out, uint32_t spread) {
  uint32_t array[words];
  for (int i = 0; i < words; ++i) array[i] = threadIdx.x + static_cast<unsigned>(i) * spread;
  uint32_t at = threadIdx.x * spread % words, total = 0;
  for (int r = 0; r < 512; ++r) {
    total += array[at];
    array[(at + 3) % words] = total;
    at = (at + 1) % words;
  }
  if (total == 123456789) *out = 1;
}
extern "C" __global__ void LocalTogether(float* out) { Local<64>(out, static_cast<uint32_t>(clock64() >> 62)); }
extern "C" __global__ void LocalApart(float* out) { Local<64>(out, 1 + static_cast<uint32_t>(clock64() >> 62)); }

// Lanes read `distinct` words.
template <uint32_t distinct>
__device__ void Constants(float* out) {
  uint32_t at = threadIdx.x % distinct * 477 % 15360;
  for (int r = 0; r < 128; ++r) {
    const uint32_t next = at + c_table[at] + 5;
    at = next >= 15360 ? next - 15360 : next;
  }
  if (at == 123456789) *out = 1;
}
extern "C" __global__ void ConstantsOfAWord(float* out) { Constants<1>(out); }
extern "C" __global__ void ConstantsOf16Words(float* out) { Constants<16>(out); }
extern "C" __global__ void ConstantsOf32Words(float* out) { Constants<32>(out); }

#define WORK(k) asm volatile("mad.lo.u32 %0,%0,%0," #k ";mad.lo.u32 %0,%0,%0,1;mad.lo.u32 %0,%0,%0,2;mad.lo.u32 %0,%0,%0,3;" \
  "mad.lo.u32 %0,%0,%0,4;mad.lo.u32 %0,%0,%0,5;mad.lo.u32 %0,%0,%0,6;mad.lo.u32 %0,%0,%0,7;" : "+r"(x))
#define CASE(k) case k: WORK(k); break;
extern "C" __global__ void Switch(float* out) {
  uint32_t x = threadIdx.x, way = threadIdx.x % 8;
  for (int r = 0; r < 256; ++r) {
    switch (way) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15)
      CASE(16) CASE(17) CASE(18) CASE(19) CASE(20) CASE(21) CASE(22) CASE(23) CASE(24) CASE(25) CASE(26) CASE(27) CASE(28) CASE(29) CASE(30) CASE(31) }
    way = way + (x == 77);
  }
  if (x == 123456789) *out = 1;
}

// 256 operations a thread, one after the other.
#define CHAIN(name, text) \
  extern "C" __global__ void name(float* out) { \
    uint32_t x = threadIdx.x * 7 + 1; \
    for (int r = 0; r < 16; ++r) { \
      _Pragma("unroll") for (int u = 0; u < 16; ++u) asm volatile(text : "+r"(x)); \
    } \
    if (x == 123456789) *out = 1; \
  }
CHAIN(MatchLanes, "{.reg .u32 t; match.any.sync.b32 t, %0, -1; shr.u32 t, t, 31; shl.b32 t, t, 8; or.b32 %0, %0, t;}")
CHAIN(Redux, "redux.sync.add.u32 %0, %0, -1;")

#define PRODUCT(name, type, text, ...) \
  extern "C" __global__ void name(float* out) { \
    type c[4][4]; \
    for (int k = 0; k < 4; ++k) for (int i = 0; i < 4; ++i) c[k][i] = static_cast<type>(k); \
    const type a = static_cast<type>(threadIdx.x), b = static_cast<type>(threadIdx.x + 1); \
    for (int r = 0; r < 64; ++r) { \
      _Pragma("unroll") for (int k = 0; k < 4; ++k) asm volatile(text : __VA_ARGS__); \
    } \
    type total = 0; \
    for (int k = 0; k < 4; ++k) for (int i = 0; i < 4; ++i) total += c[k][i]; \
    if (total == static_cast<type>(123456789)) *out = 1; \
  }
PRODUCT(DoubleProducts, double, "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%4,%4,%4,%4,%4,%4,%4},{%5,%5,%5,%5},{%0,%1,%2,%3};",
        "+d"(c[k][0]), "+d"(c[k][1]), "+d"(c[k][2]), "+d"(c[k][3]) : "d"(a), "d"(b))
PRODUCT(ByteProducts, uint32_t, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%5,%5},{%0,%1,%2,%3};",
        "+r"(c[k][0]), "+r"(c[k][1]), "+r"(c[k][2]), "+r"(c[k][3]) : "r"(a), "r"(b))
