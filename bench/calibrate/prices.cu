// Measures the rows of the time model's tables on a GPU: instructions, tensor products by type and shape, constant and
// local memory, fences, sleeps, divergence, waiting between blocks, calls of the runtime, launches over parts. Prints
// "name,at,value,unit" a line, as micro.csv has them; about a minute. By itself:
//
//   nvcc -O3 -std=c++20 -arch=sm_90 -o prices bench/calibrate/prices.cu && ./prices > prices.csv
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kUnroll = 16, kThreads = 256;
int g_sms = 0;
double g_hertz = 0;
float* g_out = nullptr;
uint32_t* g_words = nullptr;

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
void Report(const std::string& name, double at, double value, const char* unit) {
  std::printf("%s,%g,%.6g,%s\n", name.c_str(), at, value, unit);
  std::fflush(stdout);
}
float Result() {
  float value = 0;
  Check(cudaMemcpy(&value, g_out, sizeof value, cudaMemcpyDeviceToHost), "result");
  return value;
}
// Median seconds between two events around `work`.
template <typename Work>
double Seconds(Work work, int repetitions = 5) {
  static cudaEvent_t start = [] { cudaEvent_t e; cudaEventCreate(&e); return e; }(), stop = [] { cudaEvent_t e; cudaEventCreate(&e); return e; }();
  std::vector<double> times;
  for (int r = 0; r < repetitions; ++r) {
    Check(cudaEventRecord(start), "event");
    work();
    Check(cudaEventRecord(stop), "event");
    Check(cudaGetLastError(), "launch");
    Check(cudaEventSynchronize(stop), "kernel");
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    times.push_back(ms * 1e-3);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// ---- instructions: a chain of one operation ----

template <typename Op, int chains>
__global__ void ChainKernel(int rounds, float* sink) {
  typename Op::T x[chains];
  for (int c = 0; c < chains; ++c) x[c] = static_cast<typename Op::T>(threadIdx.x * 7 + static_cast<unsigned>(c) + 1);
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int c = 0; c < chains; ++c) Op::Step(x[c]);
    }
  }
  const long long end = clock64();
  bool never = false;
  for (int c = 0; c < chains; ++c) never |= x[c] == static_cast<typename Op::T>(123456789);
  if (never) sink[1] = 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(end - start) / static_cast<float>(rounds * kUnroll);
}

template <typename Op>
void Time(const char* name) {
  constexpr int kRounds = 64;
  for (int i = 0; i < 2; ++i) ChainKernel<Op, 1><<<1, 32>>>(kRounds, g_out);
  Report(std::string(name) + " latency", 0, Result(), "cycles");
  const int blocks = g_sms * 4;
  const double seconds = Seconds([&] { ChainKernel<Op, 4><<<blocks, 512>>>(kRounds, g_out); });
  const double warps = static_cast<double>(blocks) * 512 / 32 * kRounds * kUnroll * 4;
  Report(std::string(name) + " rate", 0, seconds * g_hertz * g_sms / warps, "cycles each and SM");
}

#define INT_OPS(X) \
  X(add_u32, "add.u32 %0, %0, 7;") X(mul_lo_u32, "mul.lo.u32 %0, %0, %0;") X(mul_hi_u32, "mul.hi.u32 %0, %0, %0;") \
  X(mad_lo_s32, "mad.lo.s32 %0, %0, %0, %0;") X(mul24, "mul24.lo.u32 %0, %0, %0;") X(shl, "shl.b32 %0, %0, 1;") X(shf, "shf.l.wrap.b32 %0, %0, %0, 5;") \
  X(lop3, "lop3.b32 %0, %0, 0x1234, 0x777, 0x96;") X(prmt, "prmt.b32 %0, %0, 0x1234, 0x3021;") X(bfe, "bfe.u32 %0, %0, 3, 20;") \
  X(bfi, "bfi.b32 %0, %0, 77, 3, 9;") X(bfind, "bfind.u32 %0, %0;") X(popc, "popc.b32 %0, %0;") X(clz, "clz.b32 %0, %0;") X(brev, "brev.b32 %0, %0;") \
  X(sad, "sad.u32 %0, %0, 77, %0;") X(dp4a, "dp4a.u32.u32 %0, %0, 0x1020304, %0;") X(dp2a, "dp2a.lo.u32.u32 %0, %0, 0x1020304, %0;") X(min_s32, "min.s32 %0, %0, 77;") \
  X(abs_s32, "abs.s32 %0, %0;") X(div_u32, "div.u32 %0, 0x7fffffff, %0;") X(rem_u32, "rem.u32 %0, 0x7fffffff, %0;") \
  X(fns, "fns.b32 %0, %0, 0, 2;") X(bmsk, "bmsk.clamp.b32 %0, %0, 9;") X(szext, "szext.clamp.u32 %0, %0, 9;") \
 X(set, "set.lt.u32.u32 %0, %0, 9;") \
  X(slct, "slct.u32.s32 %0, %0, 77, %0;") X(addc, "add.cc.u32 %0, %0, 7; addc.u32 %0, %0, 3;") \
  X(fma_f16x2, "fma.rn.f16x2 %0, %0, %0, %0;") X(add_f16x2, "add.f16x2 %0, %0, %0;") X(max_f16x2, "max.f16x2 %0, %0, %0;") X(fma_relu_f16x2, "fma.rn.relu.f16x2 %0, %0, %0, %0;") \
  X(fma_bf16x2, "fma.rn.bf16x2 %0, %0, %0, %0;") X(ex2_f16x2, "ex2.approx.f16x2 %0, %0;") X(ex2_bf16x2, "ex2.approx.ftz.bf16x2 %0, %0;") X(tanh_f16x2, "tanh.approx.f16x2 %0, %0;") X(tanh_bf16x2, "tanh.approx.bf16x2 %0, %0;") \
  X(cvt_f32_s32, "{.reg .f32 t; cvt.rn.f32.s32 t, %0; mov.b32 %0, t;}") X(cvt_s32_f32, "{.reg .f32 t; mov.b32 t, %0; cvt.rzi.s32.f32 %0, t;}") \
  X(cvt_f16_f32, "{.reg .f32 t; .reg .b16 h; mov.b32 t, %0; cvt.rn.f16.f32 h, t; cvt.u32.u16 %0, h;}") \
  X(cvt_f16x2_f32, "{.reg .f32 t; mov.b32 t, %0; cvt.rn.f16x2.f32 %0, t, t;}") X(cvt_bf16x2_f32, "{.reg .f32 t; mov.b32 t, %0; cvt.rn.bf16x2.f32 %0, t, t;}") \
  X(cvt_tf32, "{.reg .f32 t; mov.b32 t, %0; cvt.rna.tf32.f32 %0, t;}") \
  X(cvt_e4m3x2_f32, "{.reg .f32 t; .reg .b16 h; mov.b32 t, %0; cvt.rn.satfinite.e4m3x2.f32 h, t, t; cvt.u32.u16 %0, h;}") \
  X(cvt_f16x2_e4m3x2, "{.reg .b16 h; cvt.u16.u32 h, %0; cvt.rn.f16x2.e4m3x2 %0, h;}") X(cvt_u8, "cvt.u32.u8 %0, %0;") X(cvt_pack, "cvt.pack.sat.s16.s32 %0, %0, %0;") \
  X(setp_selp, "{.reg .pred p; setp.lt.u32 p, %0, 9; selp.b32 %0, 11, %0, p;}") \
  X(shfl, "shfl.sync.bfly.b32 %0, %0, 1, 31, -1;") X(shfl_idx, "shfl.sync.idx.b32 %0, %0, 1, 31, -1;") \
  X(vote_ballot, "{.reg .pred p; setp.lt.u32 p, %0, 9; vote.sync.ballot.b32 %0, p, -1;}") \
  X(vote_all, "{.reg .pred p, q; setp.lt.u32 p, %0, 9; vote.sync.all.pred q, p, -1; selp.b32 %0, 11, 5, q;}") \
  X(match_any_same, "match.any.sync.b32 %0, 5, -1; or.b32 %0, %0, 1;") \
  X(match_any_two, "{.reg .u32 t; and.b32 t, %0, 1; match.any.sync.b32 t, t, -1; xor.b32 %0, %0, t; }") \
  X(match_any_lanes, "{.reg .u32 t; match.any.sync.b32 t, %0, -1; shr.u32 t, t, 31; shl.b32 t, t, 8; or.b32 %0, %0, t;}") \
  X(match_all, "{.reg .u32 t; .reg .pred p; match.all.sync.b32 t|p, 5, -1; add.u32 %0, %0, t;}") \
  X(redux_add, "redux.sync.add.u32 %0, %0, -1;") X(redux_min, "redux.sync.min.u32 %0, %0, -1;") X(redux_or, "redux.sync.or.b32 %0, %0, -1;") \
  X(activemask, "{.reg .u32 t; activemask.b32 t; add.u32 %0, %0, t;}") X(elect, "{.reg .u32 t; .reg .pred p; elect.sync t|p, -1; add.u32 %0, %0, t;}") \
  X(bar_warp, "bar.warp.sync -1; add.u32 %0, %0, 1;") X(movmatrix, "movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;") \
  X(clock, "{.reg .u32 t; mov.u32 t, %%clock; add.u32 %0, %0, t;}") X(smid, "{.reg .u32 t; mov.u32 t, %%smid; add.u32 %0, %0, t;}") \
  X(tid, "{.reg .u32 t; mov.u32 t, %%tid.x; add.u32 %0, %0, t;}") X(laneid, "{.reg .u32 t; mov.u32 t, %%laneid; add.u32 %0, %0, t;}") X(globaltimer, "{.reg .u32 t; mov.u32 t, %%globaltimer_lo; add.u32 %0, %0, t;}") \
  X(membar_cta, "membar.cta; add.u32 %0, %0, 1;") X(membar_gl, "membar.gl; add.u32 %0, %0, 1;") X(membar_sys, "membar.sys; add.u32 %0, %0, 1;") \
  X(fence_acq_rel_gpu, "fence.acq_rel.gpu; add.u32 %0, %0, 1;") X(fence_sc_gpu, "fence.sc.gpu; add.u32 %0, %0, 1;") X(fence_proxy_async, "fence.proxy.async; add.u32 %0, %0, 1;") \
  X(bar_sync, "bar.sync 0; add.u32 %0, %0, 1;") X(bar_red, "{.reg .pred p, q; setp.lt.u32 p, %0, 9; bar.red.or.pred q, 0, p; selp.b32 %0, 11, 5, q;}") \
  X(nanosleep_0, "nanosleep.u32 0; add.u32 %0, %0, 1;")
#define FLOAT_OPS(X) \
  X(fma_f32, "fma.rn.f32 %0, %0, %0, %0;") X(min_f32, "min.f32 %0, %0, %0;") X(copysign_f32, "copysign.f32 %0, %0, %0;") X(rcp, "rcp.approx.ftz.f32 %0, %0;") X(sqrt_approx, "sqrt.approx.ftz.f32 %0, %0;") \
  X(rsqrt, "rsqrt.approx.ftz.f32 %0, %0;") X(sin, "sin.approx.ftz.f32 %0, %0;") X(lg2, "lg2.approx.ftz.f32 %0, %0;") X(ex2, "ex2.approx.ftz.f32 %0, %0;") X(tanh, "tanh.approx.f32 %0, %0;") \
  X(sqrt_rn, "sqrt.rn.f32 %0, %0;") X(div_rn, "div.rn.f32 %0, %0, %0;") X(rcp_rn, "rcp.rn.f32 %0, %0;") X(div_full, "div.full.f32 %0, %0, %0;") X(cvt_rni, "cvt.rni.f32.f32 %0, %0;")
#define DOUBLE_OPS(X) \
  X(fma_f64, "fma.rn.f64 %0, %0, %0, %0;") X(add_f64, "add.f64 %0, %0, %0;") X(min_f64, "min.f64 %0, %0, %0;") X(div_f64, "div.rn.f64 %0, %0, %0;") X(rcp_f64, "rcp.rn.f64 %0, %0;") X(sqrt_f64, "sqrt.rn.f64 %0, %0;") \
  X(rcp_f64_approx, "rcp.approx.ftz.f64 %0, %0;") X(cvt_f64_f32, "{.reg .f32 t; cvt.rn.f32.f64 t, %0; cvt.f64.f32 %0, t;}") X(cvt_f64_s32, "{.reg .s32 t; cvt.rzi.s32.f64 t, %0; cvt.rn.f64.s32 %0, t;}")
#define LONG_OPS(X) \
  X(add_u64, "add.u64 %0, %0, 7;") X(mul_lo_u64, "mul.lo.u64 %0, %0, %0;") X(mul_hi_u64, "mul.hi.u64 %0, %0, %0;") X(div_u64, "div.u64 %0, 0x7fffffffffff, %0;") X(rem_u64, "rem.u64 %0, 0x7fffffffffff, %0;") \
  X(popc_b64, "{.reg .u32 t; popc.b64 t, %0; cvt.u64.u32 %0, t;}") X(shl_b64, "shl.b64 %0, %0, 1;") X(brev_b64, "brev.b64 %0, %0;") X(match_any_b64, "{.reg .u32 t; match.any.sync.b64 t, 5, -1; cvt.u64.u32 %0, t;}") \
  X(clock64, "{.reg .u64 t; mov.u64 t, %%clock64; add.u64 %0, %0, t;}") X(mul_wide, "{.reg .u32 t; cvt.u32.u64 t, %0; mul.wide.u32 %0, t, t;}")
#define DEFINE(T_, R_, name, text) \
  struct name##_op { using T = T_; static __device__ __forceinline__ void Step(T& x) { asm volatile(text : "+" R_(x)); } };
#define DEFINE_INT(name, text) DEFINE(uint32_t, "r", name, text)
#define DEFINE_FLOAT(name, text) DEFINE(float, "f", name, text)
#define DEFINE_DOUBLE(name, text) DEFINE(double, "d", name, text)
#define DEFINE_LONG(name, text) DEFINE(uint64_t, "l", name, text)
INT_OPS(DEFINE_INT)
FLOAT_OPS(DEFINE_FLOAT)
DOUBLE_OPS(DEFINE_DOUBLE)
LONG_OPS(DEFINE_LONG)
#define TIME(name, text) Time<name##_op>(#name);

void Instructions() {
  INT_OPS(TIME)
  FLOAT_OPS(TIME)
  DOUBLE_OPS(TIME)
  LONG_OPS(TIME)
}

// ---- tensor products ----

template <typename Op, int chains>
__global__ void TensorKernel(int rounds, float* sink) {
  typename Op::A a[8], b[4];
  typename Op::C c[chains][4];
  for (int i = 0; i < 8; ++i) a[i] = static_cast<typename Op::A>(threadIdx.x * 3 + static_cast<unsigned>(i));
  for (int i = 0; i < 4; ++i) b[i] = static_cast<typename Op::A>(threadIdx.x * 5 + static_cast<unsigned>(i));
  for (int k = 0; k < chains; ++k) for (int i = 0; i < 4; ++i) c[k][i] = static_cast<typename Op::C>(k);
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int k = 0; k < chains; ++k) Op::Step(a, b, c[k]);
  }
  const long long end = clock64();
  typename Op::C total = 0;
  for (int k = 0; k < chains; ++k) for (int i = 0; i < 4; ++i) total += c[k][i];
  if (total == static_cast<typename Op::C>(123456789)) sink[1] = 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(end - start) / static_cast<float>(rounds);
}

template <typename Op>
void Tensor(const char* name, double flops) {
  for (int i = 0; i < 2; ++i) TensorKernel<Op, 1><<<1, 32>>>(256, g_out);
  Report(std::string("mma ") + name + " latency", flops, Result(), "cycles");
  const int blocks = g_sms * 4;
  const double seconds = Seconds([&] { TensorKernel<Op, 4><<<blocks, kThreads>>>(256, g_out); });
  const double products = 256.0 * 4 * blocks * (kThreads / 32);
  Report(std::string("mma ") + name + " rate", flops, flops * products / (seconds * g_hertz) / g_sms, "flops a cycle and SM");
}

#define C4(R) : "+" R(c[0]), "+" R(c[1]), "+" R(c[2]), "+" R(c[3])
#define MMA(name, A_, C_, text, ...) \
  struct name##_mma { using A = A_; using C = C_; static __device__ __forceinline__ void Step(A* a, A* b, C* c) { asm volatile(text __VA_ARGS__); } };
#define T442 " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
#define T421 " {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
#define I42(R) : R(a[0]), R(a[1]), R(a[2]), R(a[3]), R(b[0]), R(b[1])
#define I21(R) : R(a[0]), R(a[1]), R(b[0])
MMA(f16_k16, uint32_t, float, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" T442, C4("f") I42("r"))
MMA(f16_k8, uint32_t, float, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" T421, C4("f") I21("r"))
MMA(f16f16_k16, uint32_t, uint32_t, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};", : "+r"(c[0]), "+r"(c[1]) I42("r"))
MMA(bf16_k16, uint32_t, float, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" T442, C4("f") I42("r"))
MMA(bf16_k8, uint32_t, float, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32" T421, C4("f") I21("r"))
MMA(tf32_k8, uint32_t, float, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" T442, C4("f") I42("r"))
MMA(tf32_k4, uint32_t, float, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32" T421, C4("f") I21("r"))
MMA(s8_k32, uint32_t, uint32_t, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" T442, C4("r") I42("r"))
MMA(s8_k16, uint32_t, uint32_t, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32" T421, C4("r") I21("r"))
MMA(s8_m8k16, uint32_t, uint32_t, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};", : "+r"(c[0]), "+r"(c[1]) : "r"(a[0]), "r"(b[0]))
MMA(s4_k64, uint32_t, uint32_t, "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32" T442, C4("r") I42("r"))
MMA(b1_k256, uint32_t, uint32_t, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc" T442, C4("r") I42("r"))
MMA(e4m3_k32, uint32_t, float, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32" T442, C4("f") I42("r"))
MMA(e5m2_k32, uint32_t, float, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32" T442, C4("f") I42("r"))
MMA(f64_m8k4, double, double, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};", : "+d"(c[0]), "+d"(c[1]) : "d"(a[0]), "d"(b[0]))
MMA(f64_k4, double, double, "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64" T421, C4("d") I21("d"))
MMA(f64_k8, double, double, "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64" T442, C4("d") I42("d"))
MMA(f64_k16, double, double, "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%0,%1,%2,%3};",
    C4("d") : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]))

void Tensors() {
  Tensor<f16_k16_mma>("f16_k16", 4096);
  Tensor<f16_k8_mma>("f16_k8", 2048);
  Tensor<f16f16_k16_mma>("f16f16_k16", 4096);
  Tensor<bf16_k16_mma>("bf16_k16", 4096);
  Tensor<bf16_k8_mma>("bf16_k8", 2048);
  Tensor<tf32_k8_mma>("tf32_k8", 2048);
  Tensor<tf32_k4_mma>("tf32_k4", 1024);
  Tensor<s8_k32_mma>("s8_k32", 8192);
  Tensor<s8_k16_mma>("s8_k16", 4096);
  Tensor<s8_m8k16_mma>("s8_m8k16", 2048);
  Tensor<s4_k64_mma>("s4_k64", 16384);
  Tensor<b1_k256_mma>("b1_k256", 65536);
  Tensor<e4m3_k32_mma>("e4m3_k32", 8192);
  Tensor<e5m2_k32_mma>("e5m2_k32", 8192);
  Tensor<f64_m8k4_mma>("f64_m8k4", 512);
  Tensor<f64_k4_mma>("f64_k4", 1024);
  Tensor<f64_k8_mma>("f64_k8", 2048);
  Tensor<f64_k16_mma>("f64_k16", 4096);
}

// ---- constant memory: lanes read `distinct` words, `stride` apart, of the first `words` of a table of zeros ----

__constant__ uint32_t c_table[15360];

__global__ void ConstantKernel(int rounds, uint32_t distinct, uint32_t stride, uint32_t words, float* sink) {
  uint32_t at = threadIdx.x % distinct * stride % words;
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) {
    uint32_t next = at + c_table[at] + 5;
    at = next >= words ? next - words : next;
  }
  const long long end = clock64();
  if (at == 123456789) sink[1] = 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(end - start) / static_cast<float>(rounds);
}

void Constants() {
  constexpr int kRounds = 128;
  for (const uint32_t words : {256u, 512u, 2048u, 8192u, 15360u}) {
    for (const uint32_t distinct : {1u, 2u, 4u, 8u, 16u, 32u}) {
      const uint32_t stride = std::max(1u, words / 32 - 3);
      const std::string name = "constant " + std::to_string(words * 4) + " bytes";
      for (int i = 0; i < 2; ++i) ConstantKernel<<<1, 32>>>(kRounds, distinct, stride, words, g_out);
      Report(name + " latency", distinct, Result(), "cycles");
      const double seconds = Seconds([&] { ConstantKernel<<<g_sms * 4, 512>>>(kRounds, distinct, stride, words, g_out); }, 3);
      Report(name + " rate", distinct, seconds * g_hertz / (4.0 * 16 * kRounds), "cycles a request and SM");
    }
  }
}

// ---- local memory: an array of `words` a thread, indexed by what the compiler does not know ----

template <int words>
__global__ void LocalKernel(int rounds, uint32_t spread, float* sink) {
  uint32_t array[words];
  for (int i = 0; i < words; ++i) array[i] = threadIdx.x + static_cast<unsigned>(i) * spread;
  uint32_t at = threadIdx.x * spread % words, total = 0;
  for (int r = 0; r < rounds; ++r) {
    total += array[at];
    array[(at + 3) % words] = total;
    at = (at + 1) % words;
  }
  if (total == 123456789) *sink = 1;
}

template <int words>
void Local() {
  constexpr int kRounds = 512;
  for (const uint32_t spread : {0u, 1u}) {
    for (const int blocks_each : {1, 4, 8}) {
      const double seconds = Seconds([&] { LocalKernel<words><<<g_sms * blocks_each, kThreads>>>(kRounds, spread, g_out); }, 3);
      Report("local " + std::to_string(words) + " words, " + std::to_string(blocks_each) + " blocks an SM", spread,
             seconds * 1e6, "us");
    }
  }
}

// ---- fences after stores, sleeps ----

template <int scope>
__global__ void FenceKernel(int rounds, int stores, volatile uint32_t* x, float* sink) {
  volatile uint32_t* at = x + blockIdx.x * 4096 + threadIdx.x;
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) {
    for (int s = 0; s < stores; ++s) at[s * 1024] = static_cast<uint32_t>(r);
    if (scope == 0) __threadfence_block();
    if (scope == 1) __threadfence();
    if (scope == 2) __threadfence_system();
  }
  const long long end = clock64();
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(end - start) / static_cast<float>(rounds);
}

template <int scope>
void Fence(const char* name) {
  constexpr int kRounds = 64;
  for (const int stores : {0, 1, 4}) {
    for (int i = 0; i < 2; ++i) FenceKernel<scope><<<1, 32>>>(kRounds, stores, g_words, g_out);
    Report(std::string("fence ") + name + ", one warp, stores", stores, Result(), "cycles");
    for (const int blocks : {1, 4, 8}) {
      const double seconds = Seconds([&] { FenceKernel<scope><<<g_sms * blocks, kThreads>>>(kRounds, stores, g_words, g_out); }, 3);
      Report(std::string("fence ") + name + ", " + std::to_string(blocks) + " blocks of 8 warps, stores", stores,
             seconds * g_hertz / kRounds, "cycles a round");
    }
  }
}

__global__ void SleepKernel(int rounds, unsigned nanoseconds, float* sink) {
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) __nanosleep(nanoseconds);
  const long long end = clock64();
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(end - start) / static_cast<float>(rounds);
}

void Sleeps() {
  for (const unsigned ns : {1u, 20u, 50u, 100u, 200u, 500u, 1000u, 4000u, 20000u, 100000u, 1000000u, 2000000u}) {
    const int rounds = ns >= 100000 ? 4 : 64;
    SleepKernel<<<1, 32>>>(rounds, ns, g_out);
    Report("nanosleep, one warp", ns, Result() / g_hertz * 1e9, "ns");
    const double seconds = Seconds([&] { SleepKernel<<<g_sms * 2, kThreads>>>(rounds, ns, g_out); }, 3);
    Report("nanosleep, 16 warps an SM", ns, seconds / rounds * 1e9, "ns");
  }
}

// ---- divergence: lanes take one of `ways` paths of 8 dependent operations ----

#define WORK(k) asm volatile("mad.lo.u32 %0,%0,%0," #k ";mad.lo.u32 %0,%0,%0,1;mad.lo.u32 %0,%0,%0,2;mad.lo.u32 %0,%0,%0,3;" \
  "mad.lo.u32 %0,%0,%0,4;mad.lo.u32 %0,%0,%0,5;mad.lo.u32 %0,%0,%0,6;mad.lo.u32 %0,%0,%0,7;" : "+r"(x))
#define CASE(k) case k: WORK(k); break;
__global__ void SwitchKernel(int rounds, uint32_t ways, float* sink) {
  uint32_t x = threadIdx.x, way = threadIdx.x % ways;
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) {
    switch (way) {
      CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15)
      CASE(16) CASE(17) CASE(18) CASE(19) CASE(20) CASE(21) CASE(22) CASE(23) CASE(24) CASE(25) CASE(26) CASE(27) CASE(28) CASE(29) CASE(30) CASE(31)
    }
    way = way + (x == 77);
  }
  const long long end = clock64();
  if (x == 123456789) sink[1] = 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(end - start) / static_cast<float>(rounds);
}
// `ways` branches, one after the other, each taken by some lanes: long paths that do not become predicates.
#define PART(k) if (way == k) { WORK(k); WORK(k); } else { WORK(1##k); WORK(2##k); }
__global__ void BranchKernel(int rounds, uint32_t ways, float* sink) {
  uint32_t x = threadIdx.x, way = threadIdx.x % ways;
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) {
    PART(0) PART(1) PART(2) PART(3) PART(4) PART(5) PART(6) PART(7)
  }
  const long long end = clock64();
  if (x == 123456789) sink[1] = 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(end - start) / static_cast<float>(rounds);
}
template <typename Kernel>
void Diverge(const char* name, Kernel kernel) {
  constexpr int kRounds = 256;
  for (const uint32_t ways : {1u, 2u, 4u, 8u, 16u, 32u}) {
    for (int i = 0; i < 2; ++i) kernel<<<1, 32>>>(kRounds, ways, g_out);
    Report(std::string(name) + " latency", ways, Result(), "cycles");
    const double seconds = Seconds([&] { kernel<<<g_sms * 4, 512>>>(kRounds, ways, g_out); }, 3);
    Report(std::string(name) + " rate", ways, seconds * g_hertz / (4.0 * 16 * kRounds), "cycles a round, warp and SM");
  }
}

// ---- waiting ----

__device__ volatile unsigned d_flag[65536];
__device__ volatile float d_total[65536];
__device__ unsigned d_lock, d_counter, d_turn;
__device__ volatile unsigned d_generation;

// Each block waits for its predecessor. kind 0: volatile flags and fences; 1: no fence; 2: release and acquire; 3: atomics.
template <int kind>
__global__ void ChainOfBlocksKernel(unsigned tag, float* out) {
  if (threadIdx.x != 0) return;
  float p = 0;
  if (blockIdx.x != 0) {
    const unsigned before = blockIdx.x - 1;
    if (kind == 2) {
      unsigned value;
      do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(const_cast<unsigned*>(&d_flag[before])) : "memory");
      while (value != tag);
    } else if (kind == 3) {
      while (atomicAdd(const_cast<unsigned*>(&d_flag[before]), 0) != tag) {}
    } else {
      while (d_flag[before] != tag) {}
      if (kind == 0) __threadfence();
    }
    p = d_total[before];
  }
  d_total[blockIdx.x] = p + 1;
  if (kind == 0 || kind == 3) __threadfence();
  if (kind == 2) {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(const_cast<unsigned*>(&d_flag[blockIdx.x])), "r"(tag) : "memory");
  } else if (kind == 3) {
    atomicExch(const_cast<unsigned*>(&d_flag[blockIdx.x]), tag);
  } else {
    d_flag[blockIdx.x] = tag;
  }
  if (blockIdx.x == gridDim.x - 1) *out = p;
}
// A thread of each block takes a lock. sleep: ns between attempts.
__global__ void LockKernel(unsigned sleep) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(&d_lock, 0, 1) != 0) {
    if (sleep != 0) __nanosleep(sleep);
  }
  __threadfence();
  d_total[0] = d_total[0] + 1;
  __threadfence();
  atomicExch(&d_lock, 0);
}
// `lanes` lanes of each warp add one by compare-and-swap to one word.
__global__ void SwapKernel(unsigned lanes) {
  if (threadIdx.x % 32 >= lanes) return;
  unsigned old = *reinterpret_cast<volatile unsigned*>(&d_counter), assumed;
  do {
    assumed = old;
    old = atomicCAS(&d_counter, assumed, assumed + 1);
  } while (assumed != old);
}
// Blocks take turns in order of a ticket.
__global__ void TicketKernel() {
  if (threadIdx.x != 0) return;
  const unsigned mine = atomicAdd(&d_counter, 1);
  while (*reinterpret_cast<volatile unsigned*>(&d_turn) != mine) {}
  __threadfence();
  d_total[0] = d_total[0] + 1;
  __threadfence();
  *reinterpret_cast<volatile unsigned*>(&d_turn) = mine + 1;
}
__global__ void GridSyncKernel(int rounds, float* sink) {
  const auto grid = cooperative_groups::this_grid();
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) grid.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(clock64() - start) / static_cast<float>(rounds);
}
__global__ void OwnBarrierKernel(int rounds, float* sink) {
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      const unsigned generation = d_generation;
      if (atomicAdd(&d_counter, 1) == gridDim.x - 1) {
        d_counter = 0;
        __threadfence();
        d_generation = generation + 1;
      } else {
        while (d_generation == generation) {}
      }
      __threadfence();
    }
    __syncthreads();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(clock64() - start) / static_cast<float>(rounds);
}
// Warp 0 hands a word in shared memory to warp 1, which hands it back.
__global__ void SharedFlagKernel(int rounds, float* sink) {
  __shared__ volatile unsigned flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  const unsigned warp = threadIdx.x / 32;
  const long long start = clock64();
  if (threadIdx.x % 32 == 0) {
    for (unsigned r = 0; r < static_cast<unsigned>(rounds); ++r) {
      while (flag != 2 * r + warp) {}
      __threadfence_block();
      flag = 2 * r + warp + 1;
    }
  }
  if (threadIdx.x == 0) sink[0] = static_cast<float>(clock64() - start) / static_cast<float>(2 * rounds);
}

void Waiting() {
  unsigned tag = 0;
  const auto chain = [&](const char* name, auto kernel, int threads) {
    for (const int blocks : {2, 132, 1024, 4096, 16384}) {
      const double seconds = Seconds([&] { kernel<<<blocks, threads>>>(++tag, g_out); }, 3);
      Report(std::string("chain of blocks, ") + name + ", " + std::to_string(threads) + " threads", blocks,
             seconds * 1e9 / blocks, "ns a block");
    }
  };
  chain("volatile and fences", ChainOfBlocksKernel<0>, 256);
  chain("volatile and fences", ChainOfBlocksKernel<0>, 32);
  chain("volatile", ChainOfBlocksKernel<1>, 256);
  chain("release and acquire", ChainOfBlocksKernel<2>, 256);
  chain("atomics", ChainOfBlocksKernel<3>, 256);
  for (const unsigned sleep : {0u, 100u}) {
    for (const int blocks : {1, 2, 8, 32, 132, 264, 528, 1056, 4096}) {
      const double seconds = Seconds([&] { LockKernel<<<blocks, 32>>>(sleep); }, 3);
      Report("lock, sleep " + std::to_string(sleep), blocks, seconds * 1e9 / blocks, "ns a block");
    }
  }
  for (const unsigned lanes : {1u, 32u}) {
    for (const int warps : {1, 2, 4, 8, 32, 132, 512, 1024, 2048}) {
      for (const int threads : {32, 256}) {
        if (warps * 32 < threads) continue;
        const double seconds = Seconds([&] { SwapKernel<<<warps * 32 / threads, threads>>>(lanes); }, 3);
        Report("compare-and-swap loop, " + std::to_string(lanes) + " lanes, blocks of " + std::to_string(threads), warps,
               seconds * 1e9 / (static_cast<double>(warps) * lanes), "ns a success");
      }
    }
  }
  for (const int blocks : {2, 32, 132, 264, 1056, 4096}) {
    const unsigned zero = 0;
    const double seconds = Seconds([&] {
      cudaMemcpyToSymbol(d_counter, &zero, sizeof zero);
      cudaMemcpyToSymbol(d_turn, &zero, sizeof zero);
      TicketKernel<<<blocks, 32>>>();
    }, 3);
    Report("tickets (and two copies, some 16 us)", blocks, seconds * 1e9 / blocks, "ns a block");
  }
  const unsigned zero = 0;
  cudaMemcpyToSymbol(d_counter, &zero, sizeof zero);
  for (const int threads : {32, 256, 1024}) {
    for (const int each : {1, 2, 4, 8}) {
      if (each * threads > 2048) continue;
      for (const int blocks : {g_sms * each}) {
        int rounds = 100;
        float* sink = g_out;
        void* arguments[] = {&rounds, &sink};
        const auto launch = [&] {
          Check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&GridSyncKernel), dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), arguments, 0, nullptr), "cooperative");
        };
        launch();
        launch();
        Report("grid.sync, " + std::to_string(threads) + " threads", blocks, Result() / g_hertz * 1e9, "ns");
        OwnBarrierKernel<<<blocks, threads>>>(rounds, g_out);
        Report("own grid barrier, " + std::to_string(threads) + " threads", blocks, Result() / g_hertz * 1e9, "ns");
      }
    }
  }
  SharedFlagKernel<<<1, 64>>>(256, g_out);
  Report("flag in shared memory", 0, Result(), "cycles a hand-over");
}

// ---- calls of the runtime ----

__global__ void EmptyKernel() {}
__global__ void AddKernel(float* x) { x[threadIdx.x] += 1; }
__constant__ float c_few[64];

// Nanoseconds of host time of each of 200 calls, with the device idle before.
template <typename Call>
void Host(const char* name, Call call, int times = 200) {
  call();
  cudaDeviceSynchronize();
  std::vector<double> all;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) call();
    const auto end = std::chrono::steady_clock::now();
    cudaDeviceSynchronize();
    all.push_back(std::chrono::duration<double, std::nano>(end - start).count() / times);
  }
  std::sort(all.begin(), all.end());
  Report(std::string("host ") + name, times, all[1], "ns a call");
}

void HostCalls() {
  cudaStream_t stream, other;
  cudaEvent_t event, second;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaEventCreate(&event);
  cudaEventCreate(&second);
  Host("clock alone", [] {}, 10000);
  Host("kernel launch", [] { EmptyKernel<<<1, 32>>>(); });
  Host("kernel launch and cudaDeviceSynchronize", [] { EmptyKernel<<<1, 32>>>(); cudaDeviceSynchronize(); });
  Host("kernel launch into a stream and cudaStreamSynchronize", [&] { EmptyKernel<<<1, 32, 0, stream>>>(); cudaStreamSynchronize(stream); });
  Host("cudaStreamCreate and Destroy", [] { cudaStream_t s; cudaStreamCreate(&s); cudaStreamDestroy(s); });
  Host("cudaStreamCreateWithFlags and Destroy", [] { cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamDestroy(s); });
  Host("cudaEventCreate and Destroy", [] { cudaEvent_t e; cudaEventCreate(&e); cudaEventDestroy(e); });
  Host("cudaEventCreateWithFlags and Destroy", [] { cudaEvent_t e; cudaEventCreateWithFlags(&e, cudaEventDisableTiming); cudaEventDestroy(e); });
  Host("cudaEventRecord", [&] { cudaEventRecord(event, nullptr); });
  Host("cudaEventRecord into a stream", [&] { cudaEventRecord(event, stream); });
  Host("cudaEventRecord and Synchronize", [&] { cudaEventRecord(event, stream); cudaEventSynchronize(event); });
  Host("cudaEventSynchronize", [&] { cudaEventSynchronize(event); });
  Host("cudaEventQuery", [&] { cudaEventQuery(event); });
  cudaEventRecord(second, stream);
  cudaDeviceSynchronize();
  Host("cudaEventElapsedTime", [&] { float ms; cudaEventElapsedTime(&ms, event, second); });
  Host("cudaStreamSynchronize", [&] { cudaStreamSynchronize(stream); });
  Host("cudaStreamQuery", [&] { cudaStreamQuery(stream); });
  Host("cudaDeviceSynchronize", [] { cudaDeviceSynchronize(); });
  Host("cudaStreamWaitEvent", [&] { cudaStreamWaitEvent(other, event, 0); });
  Host("cudaEventRecord and cudaStreamWaitEvent", [&] { cudaEventRecord(event, stream); cudaStreamWaitEvent(other, event, 0); });
  Host("the case: stream, event, record, waits", [] {
    cudaStream_t s; cudaEvent_t e;
    cudaStreamCreate(&s); cudaEventCreate(&e); cudaEventRecord(e, s); cudaEventSynchronize(e); cudaDeviceSynchronize(); cudaEventDestroy(e); cudaStreamDestroy(s);
  });
  Host("cudaGetLastError", [] { cudaGetLastError(); });
  Host("cudaGetDevice", [] { int d; cudaGetDevice(&d); });
  Host("cudaSetDevice", [] { cudaSetDevice(0); });
  Host("cudaDeviceGetAttribute", [] { int v; cudaDeviceGetAttribute(&v, cudaDevAttrMultiProcessorCount, 0); });
  Host("cudaGetDeviceProperties", [] { cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); }, 20);
  Host("cudaMemGetInfo", [] { size_t a, b; cudaMemGetInfo(&a, &b); }, 20);
  Host("cudaFuncGetAttributes", [] { cudaFuncAttributes a; cudaFuncGetAttributes(&a, EmptyKernel); });
  Host("cudaFuncSetAttribute", [] { cudaFuncSetAttribute(EmptyKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536); });
  Host("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [] { int b; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, EmptyKernel, 256, 0); });
  for (const size_t kilobytes : {4, 1024, 4096, 65536}) {
    const std::string size = std::to_string(kilobytes) + " KiB";
    const int times = kilobytes > 1024 ? 20 : 100;
    Host(("cudaMalloc and Free, " + size).c_str(), [&] { void* p; cudaMalloc(&p, kilobytes << 10); cudaFree(p); }, times);
    Host(("cudaMallocAsync and FreeAsync, " + size).c_str(), [&] { void* p; cudaMallocAsync(&p, kilobytes << 10, stream); cudaFreeAsync(p, stream); }, times);
    Host(("cudaMallocHost and FreeHost, " + size).c_str(), [&] { void* p; cudaMallocHost(&p, kilobytes << 10); cudaFreeHost(p); }, 10);
  }
  std::vector<char> host(size_t{16} << 20);
  char* pinned;
  cudaMallocHost(reinterpret_cast<void**>(&pinned), host.size());
  for (const size_t bytes : {size_t{4}, size_t{4096}, size_t{65536}, size_t{1} << 20, size_t{16} << 20}) {
    const std::string size = std::to_string(bytes) + " bytes";
    const int times = bytes > (1 << 20) ? 10 : 50;
    Host(("cudaMemcpy to the device, " + size).c_str(), [&] { cudaMemcpy(g_words, host.data(), bytes, cudaMemcpyHostToDevice); }, times);
    Host(("cudaMemcpy to the host, " + size).c_str(), [&] { cudaMemcpy(host.data(), g_words, bytes, cudaMemcpyDeviceToHost); }, times);
    Host(("cudaMemcpy within, " + size).c_str(), [&] { cudaMemcpy(g_words, g_words + (8 << 20), bytes, cudaMemcpyDeviceToDevice); }, times);
    Host(("cudaMemcpyAsync within, " + size).c_str(), [&] { cudaMemcpyAsync(g_words, g_words + (8 << 20), bytes, cudaMemcpyDeviceToDevice, nullptr); }, times);
    Host(("cudaMemcpyAsync to the device from pinned, " + size).c_str(), [&] { cudaMemcpyAsync(g_words, pinned, bytes, cudaMemcpyHostToDevice, nullptr); }, times);
    Host(("cudaMemset, " + size).c_str(), [&] { cudaMemset(g_words, 0, bytes); }, times);
    Host(("cudaMemsetAsync and wait, " + size).c_str(), [&] { cudaMemsetAsync(g_words, 0, bytes); cudaDeviceSynchronize(); }, times);
  }
  float few[64] = {};
  Host("cudaMemcpyToSymbol", [&] { cudaMemcpyToSymbol(c_few, few, sizeof few); });
  Host("cudaGetSymbolAddress", [&] { void* p; cudaGetSymbolAddress(&p, c_few); });
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  const auto capture = [&](int kernels) {
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < kernels; ++i) AddKernel<<<1, 32, 0, stream>>>(g_out + 64);
    cudaStreamEndCapture(stream, &graph);
  };
  for (const int kernels : {1, 4, 16, 64}) {
    const std::string size = std::to_string(kernels) + " kernels";
    Host(("graph capture and destroy, " + size).c_str(), [&] { capture(kernels); cudaGraphDestroy(graph); }, 50);
    capture(kernels);
    Host(("graph instantiate and destroy, " + size).c_str(), [&] { cudaGraphInstantiate(&executable, graph, 0); cudaGraphExecDestroy(executable); }, 50);
    cudaGraphInstantiate(&executable, graph, 0);
    Host(("graph launch, " + size).c_str(), [&] { cudaGraphLaunch(executable, stream); }, 50);
    Host(("graph launch and wait, " + size).c_str(), [&] { cudaGraphLaunch(executable, stream); cudaStreamSynchronize(stream); }, 50);
    Host(("graph upload, " + size).c_str(), [&] { cudaGraphUpload(executable, stream); }, 50);
    Host(("graph update, " + size).c_str(), [&] { cudaGraphExecUpdateResultInfo info; cudaGraphExecUpdate(executable, graph, &info); }, 50);
    Host(("graph made, launched, waited for and destroyed, " + size).c_str(), [&] {
      cudaGraph_t g; cudaGraphExec_t e;
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
      for (int i = 0; i < kernels; ++i) AddKernel<<<1, 32, 0, stream>>>(g_out + 64);
      cudaStreamEndCapture(stream, &g);
      cudaGraphInstantiate(&e, g, 0);
      cudaGraphLaunch(e, stream);
      cudaStreamSynchronize(stream);
      cudaGraphExecDestroy(e);
      cudaGraphDestroy(g);
    }, 20);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }
  Host("cudaStreamBeginCapture and EndCapture, empty", [&] { cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal); cudaStreamEndCapture(stream, &graph); cudaGraphDestroy(graph); });
  Host("cudaStreamIsCapturing", [&] { cudaStreamCaptureStatus status; cudaStreamIsCapturing(stream, &status); });
  float* sink = g_out + 64;
  void* arguments[] = {&sink};
  cudaKernelNodeParams node = {};
  node.func = reinterpret_cast<void*>(&AddKernel);
  node.gridDim = node.blockDim = dim3(1);
  node.kernelParams = arguments;
  Host("cudaGraphCreate, AddKernelNode, Destroy", [&] { cudaGraph_t g; cudaGraphNode_t n; cudaGraphCreate(&g, 0); cudaGraphAddKernelNode(&n, g, nullptr, 0, &node); cudaGraphDestroy(g); });
  Host("cudaLaunchCooperativeKernel", [&] { cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&AddKernel), dim3(1), dim3(32), arguments, 0, nullptr); });
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  Host("cudaMallocArray and FreeArray", [&] { cudaMallocArray(&array, &format, 256, 256); cudaFreeArray(array); }, 20);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = g_words;
  resource.res.linear.desc = format;
  resource.res.linear.sizeInBytes = 4096;
  cudaTextureDesc description = {};
  Host("cudaCreateTextureObject and Destroy", [&] { cudaTextureObject_t t; cudaCreateTextureObject(&t, &resource, &description, nullptr); cudaDestroyTextureObject(t); });
  // Kernels of some 12 us with a call between: what the device sees.
  const auto busy = [] { ChainKernel<fma_f32_op, 1><<<132, 32>>>(340, g_out); };
  const auto between = [&](const char* name, auto call) {
    const auto pair = [&](bool with) { return Seconds([&] { for (int i = 0; i < 10; ++i) { busy(); if (with) call(); } busy(); cudaDeviceSynchronize(); }); };
    Report(std::string("between kernels: ") + name, 10, (pair(true) - pair(false)) * 1e9 / 10, "ns a call");
  };
  between("cudaDeviceSynchronize", [] { cudaDeviceSynchronize(); });
  between("cudaEventRecord", [&] { cudaEventRecord(event, nullptr); });
  between("cudaStreamCreate and Destroy", [] { cudaStream_t s; cudaStreamCreate(&s); cudaStreamDestroy(s); });
  between("cudaEventRecord and Synchronize", [&] { cudaEventRecord(event, nullptr); cudaEventSynchronize(event); });
  between("cudaMemcpy of 4 bytes to the host", [&] { cudaMemcpy(host.data(), g_words, 4, cudaMemcpyDeviceToHost); });
  between("cudaMemsetAsync of 4 bytes", [&] { cudaMemsetAsync(g_words, 0, 4); });
  between("cudaGetDeviceProperties", [] { cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); });
  between("kernel into another stream, joined by events", [&] {
    cudaEventRecord(event, nullptr); cudaStreamWaitEvent(stream, event, 0); EmptyKernel<<<1, 32, 0, stream>>>(); cudaEventRecord(second, stream); cudaStreamWaitEvent(nullptr, second, 0);
  });
}

// ---- launches over disjoint parts, and over the same data ----

__global__ void SumKernel(const float4* a, const float4* b, float4* out, size_t from, size_t to) {
  const size_t i = from + blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i >= to) return;
  const float4 x = a[i], y = b[i];
  out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}
void Parts() {
  auto* base = reinterpret_cast<float4*>(g_words);
  for (const size_t megabytes : {3, 12, 24, 48, 96, 192}) {  // of the three arrays together
    const size_t count = megabytes * (size_t{1} << 20) / 48;
    for (const int parts : {1, 2, 3, 4, 8, 16}) {
      std::vector<double> times;
      for (const bool same : {false, true}) {
        const double flush = Seconds([&] { cudaMemsetAsync(reinterpret_cast<char*>(g_words) + (size_t{512} << 20), 0, size_t{256} << 20); });
        const double all = Seconds([&] {
          cudaMemsetAsync(reinterpret_cast<char*>(g_words) + (size_t{512} << 20), 0, size_t{256} << 20);
          for (int p = 0; p < parts; ++p) {
            const size_t from = same ? 0 : count * static_cast<size_t>(p) / static_cast<size_t>(parts), to = same ? count : count * static_cast<size_t>(p + 1) / static_cast<size_t>(parts);
            SumKernel<<<static_cast<unsigned>((to - from + 255) / 256), 256>>>(base, base + count, base + 2 * count, from, to);
          }
        });
        times.push_back((all - flush) * 1e6);
      }
      Report("disjoint parts of " + std::to_string(megabytes) + " MB", parts, times[0], "us");
      Report("the same " + std::to_string(megabytes) + " MB again", parts, times[1], "us");
    }
  }
}

}  // namespace

int main() {
  Check(cudaDeviceGetAttribute(&g_sms, cudaDevAttrMultiProcessorCount, 0), "device");
  Check(cudaMalloc(&g_out, 4096), "cudaMalloc");
  Check(cudaMalloc(&g_words, size_t{1} << 30), "cudaMalloc");
  Check(cudaMemset(g_words, 0, size_t{1} << 30), "cudaMemset");
  const auto spin = [] { ChainKernel<fma_f32_op, 1><<<g_sms, 256>>>(20000, g_out); };
  for (int i = 0; i < 20; ++i) spin();
  const double seconds = Seconds(spin);
  g_hertz = static_cast<double>(Result()) * 20000 * kUnroll / seconds;
  std::printf("name,at,value,unit\n");
  Report("clock", 0, g_hertz * 1e-6, "MHz");
  Instructions();
  Tensors();
  Constants();
  Local<16>();
  Local<64>();
  Local<256>();
  Local<1024>();
  Fence<0>("block");
  Fence<1>("device");
  Fence<2>("system");
  Sleeps();
  Diverge("switch", SwitchKernel);
  Diverge("branches", BranchKernel);
  Waiting();
  HostCalls();
  Parts();
  Check(cudaDeviceSynchronize(), "end");
  return 0;
}
