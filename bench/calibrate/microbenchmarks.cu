#include "calibrate/microbenchmarks.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "calibrate/micro_kernels.cuh"

namespace kgrpo::bench {
namespace {

constexpr int kRepetitions = 7, kThreads = 256;
constexpr size_t kMegabyte = size_t{1} << 20, kBuffer = 1024 * kMegabyte;

void Check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

class Bench {
 public:
  explicit Bench(const std::function<void(const Micro&)>& report) : report_(report) {
    int device = 0;
    Check(cudaGetDevice(&device), "cudaGetDevice");
    Check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "attribute");
    Check(cudaMalloc(&a_, kBuffer), "cudaMalloc");
    Check(cudaMalloc(&b_, kBuffer), "cudaMalloc");
    Check(cudaMalloc(&out_, 256), "cudaMalloc");
    Check(cudaMemset(a_, 0, kBuffer), "cudaMemset");
    Check(cudaMemset(b_, 0, kBuffer), "cudaMemset");
    Check(cudaEventCreate(&start_), "cudaEventCreate");
    Check(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~Bench() {
    cudaFree(a_);
    cudaFree(b_);
    cudaFree(out_);
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  void Clock();
  void Launches();
  void Dram();
  void L2();
  void Latencies();
  void Pipes();
  void Shared();
  void L1();
  void Atomics();
  void Blocks();

 private:
  // Median seconds of `work` between two events; with `cold` nothing of its data is in the L2 before.
  template <typename Work>
  double Seconds(Work work, bool cold = false) {
    std::vector<double> times;
    for (int r = 0; r < kRepetitions; ++r) {
      if (cold) Flush();
      Check(cudaEventRecord(start_), "event");
      work();
      Check(cudaEventRecord(stop_), "event");
      Check(cudaGetLastError(), "launch");
      Check(cudaEventSynchronize(stop_), "kernel");
      float milliseconds = 0;
      Check(cudaEventElapsedTime(&milliseconds, start_, stop_), "event");
      times.push_back(milliseconds * 1e-3);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
  double Result() {
    float value = 0;
    Check(cudaMemcpy(&value, out_, sizeof value, cudaMemcpyDeviceToHost), "result");
    return value;
  }
  void Report(const std::string& name, double at, double value, const std::string& unit) {
    report_({name, at, value, unit});
  }
  void Flush() { Check(cudaMemsetAsync(b_, 0, 256 * kMegabyte), "cudaMemset"); }
  float* floats() { return static_cast<float*>(a_); }
  float* out() { return static_cast<float*>(out_); }
  template <Chain kind>
  void Pipe(const char* name);
  void Atomic(const char* name, int different, int apart, int block_words);

  const std::function<void(const Micro&)>& report_;
  int multiprocessors_ = 0;
  double hertz_ = 0;
  void *a_ = nullptr, *b_ = nullptr, *out_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

// Cycles and seconds of the same long chain.
void Bench::Clock() {
  constexpr int kLong = 20000;
  const auto run = [&] { ChainKernel<Chain::kFma, 1><<<multiprocessors_, kThreads>>>(kLong, out()); };
  for (int i = 0; i < 20; ++i) run();
  const double seconds = Seconds(run);
  hertz_ = Result() * kLong * kUnroll / seconds;
  Report("clock", 0, hertz_ * 1e-6, "MHz");
}

void Bench::Launches() {
  constexpr int kMany = 400;
  const double one = Seconds([] { EmptyKernel<<<1, 32>>>(); });
  const double many = Seconds([] {
    for (int i = 0; i < kMany; ++i) EmptyKernel<<<1, 32>>>();
  });
  Report("events_around_a_launch", 1, one * 1e6, "us");
  Report("launch_back_to_back", kMany, many / kMany * 1e6, "us");
  const double filled = Seconds([&] {
    for (int i = 0; i < kMany; ++i) CopyKernel<<<512, kThreads>>>(static_cast<float4*>(a_), static_cast<float4*>(b_), 131072);
  });
  Report("launch_back_to_back_131072_threads", kMany, filled / kMany * 1e6, "us");
}

void Bench::Dram() {
  auto* x = static_cast<float4*>(a_);
  auto* y = static_cast<float4*>(b_);
  for (const size_t megabytes : {1, 4, 16, 64, 256, 1024}) {
    const size_t bytes = megabytes * kMegabyte, count = bytes / sizeof(float4);
    const auto rate = [&](const char* name, double moved, auto work) {
      Report(name, static_cast<double>(megabytes), moved / Seconds(work, true) * 1e-9, "GB/s");
    };
    const auto bytes_moved = static_cast<double>(bytes);
    rate("dram_read", bytes_moved, [&] { ReadKernel<<<multiprocessors_ * 8, kThreads>>>(x, count, 1, out()); });
    rate("dram_write", bytes_moved, [&] { WriteKernel<<<multiprocessors_ * 8, kThreads>>>(x, count); });
    rate("dram_copy", 2 * bytes_moved, [&] {
      CopyKernel<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads>>>(x, y, count);
    });
  }
}

void Bench::L2() {
  constexpr int kTimes = 20;
  for (const size_t megabytes : {2, 8, 16, 24, 32, 48}) {
    const size_t count = megabytes * kMegabyte / sizeof(float4);
    const double seconds =
        Seconds([&] { ReadKernel<<<multiprocessors_ * 8, kThreads>>>(static_cast<float4*>(a_), count, kTimes, out()); });
    Report("l2_read", static_cast<double>(megabytes), static_cast<double>(count) * kTimes * 16 / 32 / (seconds * hertz_),
           "sectors per cycle");
  }
  const int blocks = multiprocessors_ * 8;
  for (const int stride : {1, 2, 4, 8, 16, 32}) {
    const double seconds = Seconds([&] {
      StrideWriteKernel<<<blocks, kThreads>>>(floats(), stride, 64, 8 * kMegabyte / sizeof(float));
    });
    const double sectors = static_cast<double>(blocks) * kThreads * 64 * std::min(stride, 8) / 8;
    Report("l2_stride_write", stride, sectors / (seconds * hertz_), "sectors per cycle");
  }
}

void Bench::Latencies() {
  const auto chase = [&](const char* name, size_t bytes, unsigned stride, int steps, bool warm) {
    const auto count = static_cast<unsigned>(bytes / 4 / stride);
    LinkKernel<<<multiprocessors_ * 4, kThreads>>>(static_cast<unsigned*>(a_), count, stride, count / 3 * 2 + 1);
    if (!warm) Flush();
    ChaseKernel<<<1, 1>>>(static_cast<unsigned*>(a_), warm ? static_cast<int>(count) : 0, steps, out());
    Report(name, static_cast<double>(bytes) / 1024, Result(), "cycles");
  };
  chase("l1_latency", 16 * 1024, 32, 4096, true);
  chase("l2_latency", kMegabyte, 32, 8192, true);
  chase("l2_latency", 4 * kMegabyte, 32, 8192, true);
  chase("l2_latency", 16 * kMegabyte, 32, 8192, true);
  chase("dram_latency", 128 * kMegabyte, 32, 4096, false);
  ChaseSharedKernel<<<1, 32>>>(4096, out());
  Report("shared_latency", 0, Result(), "cycles");
  for (const int warps : {1, 2, 4, 8, 16, 32}) {
    BarrierKernel<<<1, warps * 32>>>(kRounds, out());
    Report("barrier_latency", warps, Result(), "cycles");
  }
}

// The latency of one warp's chain, then the rate of a multiprocessor full of them.
template <Chain kind>
void Bench::Pipe(const char* name) {
  ChainKernel<kind, 1><<<1, 32>>>(kRounds, out());
  Report(std::string(name) + "_latency", 0, Result(), "cycles");
  const int blocks = multiprocessors_ * 4;
  const double seconds = Seconds([&] { ChainKernel<kind, kChains><<<blocks, 512>>>(kRounds, out()); });
  const double warps = static_cast<double>(blocks) * 512 / 32 * kRounds * kUnroll * kChains;
  Report(std::string(name) + "_rate", 0, warps / (seconds * hertz_) / multiprocessors_, "per cycle and SM");
}

void Bench::Pipes() {
  Pipe<Chain::kFma>("fp32");
  Pipe<Chain::kInteger>("int_pair");  // two operations a step
  Pipe<Chain::kDouble>("fp64");
  Pipe<Chain::kHalf>("half");
  Pipe<Chain::kSpecial>("special");
  Pipe<Chain::kShuffle>("shuffle");
  const int blocks = multiprocessors_ * 4;
  const double seconds = Seconds([&] { TensorKernel<<<blocks, kThreads>>>(1024, out()); });
  const double flops = 2.0 * 16 * 16 * 16 * kChains * 1024 * blocks * (kThreads / 32);
  Report("tensor", 0, flops / (seconds * hertz_) / multiprocessors_, "flops per cycle and SM");
}

void Bench::Shared() {
  const int blocks = multiprocessors_ * 2;
  for (const int ways : {1, 2, 4, 8, 16, 32}) {
    const double seconds = Seconds([&] { ConflictKernel<<<blocks, 512>>>(ways, kRounds, out()); });
    const double requests = static_cast<double>(blocks) * 512 / 32 * kRounds * kUnroll;
    Report("shared_conflict", ways, seconds * hertz_ * multiprocessors_ / requests, "cycles a request");
  }
}

void Bench::L1() {
  const int blocks = multiprocessors_ * 2;
  for (const int lines : {1, 2, 4, 8, 16, 32}) {
    const double seconds = Seconds([&] { LinesKernel<<<blocks, 512>>>(floats(), lines, kRounds, out()); });
    const double requests = static_cast<double>(blocks) * 512 / 32 * kRounds * kUnroll;
    Report("l1_lines", lines, seconds * hertz_ * multiprocessors_ / requests, "cycles a request");
  }
}

void Bench::Atomic(const char* name, int different, int apart, int block_words) {
  constexpr int kTimes = 32;
  const int blocks = multiprocessors_ * 2;
  const double seconds = Seconds([&] {
    GlobalAtomicKernel<<<blocks, kThreads>>>(static_cast<int*>(a_), different, apart, block_words, kTimes);
  });
  const double requests = static_cast<double>(blocks) * kThreads / 32 * kTimes;
  Report(name, different, seconds * hertz_ / requests, "cycles a request");
}

void Bench::Atomics() {
  Check(cudaMemset(a_, 0, 64 * kMegabyte), "cudaMemset");
  for (const int different : {1, 2, 4, 8}) Atomic("atomic_one_sector", different, 1, 0);  // 32 / different lanes meet
  for (const int different : {1, 2, 4}) Atomic("atomic_sectors_of_a_line", different, 8, 0);
  for (const int different : {1, 2, 4, 8, 16, 32}) Atomic("atomic_lines", different, 32, 0);
  for (const int different : {1, 8, 32}) Atomic("atomic_spread", different, 32, 4096);
  Atomic("atomic_coalesced_spread", 32, 1, 4096);
  const int blocks = multiprocessors_ * 2;
  for (const int different : {1, 2, 4, 8, 16, 32}) {
    const double seconds = Seconds([&] { SharedAtomicKernel<<<blocks, 512>>>(different, kRounds, out()); });
    const double requests = static_cast<double>(blocks) * 512 / 32 * kRounds;
    Report("shared_atomic", different, seconds * hertz_ * multiprocessors_ / requests, "cycles a request");
  }
}

void Bench::Blocks() {
  constexpr unsigned kMany = 1u << 18;
  for (const int threads : {32, 128, 256, 1024}) {
    const double seconds = Seconds([&] { EmptyKernel<<<kMany, static_cast<unsigned>(threads)>>>(); });
    Report("blocks_per_cycle", threads, kMany / (seconds * hertz_), "per cycle");
  }
  // From few blocks to one more than fit, each reading 256 KiB.
  for (const int eighths : {1, 4, 8, 9, 16, 17, 32, 33, 64, 65}) {
    const int blocks = std::max(1, multiprocessors_ * eighths / 8);
    const double seconds = Seconds(
        [&] { ReadKernel<<<blocks, 1024>>>(static_cast<float4*>(a_), static_cast<size_t>(blocks) * 16384, 1, out()); },
        true);
    Report("few_blocks_read", blocks, seconds * 1e6, "us");
    const double chain = Seconds([&] { ChainKernel<Chain::kFma, kChains><<<blocks, 1024>>>(kRounds, out()); });
    Report("few_blocks_fp32", blocks, chain * 1e6, "us");
  }
}

}  // namespace

void RunMicrobenchmarks(const std::function<void(const Micro&)>& report) {
  Bench bench(report);
  bench.Clock();
  bench.Launches();
  bench.Dram();
  bench.Latencies();
  bench.L2();
  bench.Pipes();
  bench.Shared();
  bench.L1();
  bench.Atomics();
  bench.Blocks();
}

std::string CurrentDeviceName() {
  int device = 0;
  Check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties = {};
  Check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace kgrpo::bench
