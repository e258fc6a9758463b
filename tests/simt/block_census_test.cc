// Launches whose blocks differ: the counts of a sample of blocks represent all blocks.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness.h"
#include "simt/schedule/block_sample.h"

namespace kgrpo::simt {
namespace {

double Issued(const Counts& counts) {
  return counts.issued * static_cast<double>(counts.grid_blocks) / static_cast<double>(counts.sampled_blocks);
}

struct UnevenLaunch {
  const char* kernel;
  Dim3 grid, block;
  int first, second;
  bool two;  // integer parameters
};
void PrintTo(const UnevenLaunch& one, std::ostream* out) { *out << one.kernel; }

LaunchResult RunCase(const UnevenLaunch& one, LaunchConfig config) {
  Bench bench("uneven");
  const DeviceAddress out = bench.Upload(std::vector<float>(1 << 20, 1.0f), "out");
  config.grid = one.grid;
  config.block = one.block;
  config.mode = Mode::kCounted;
  return one.two ? bench.Run(one.kernel, config, out, one.first, one.second)
                 : bench.Run(one.kernel, config, out, one.first);
}

class Uneven : public testing::TestWithParam<UnevenLaunch> {};

TEST_P(Uneven, SomeBlocksStandForAll) {
  LaunchConfig all;
  all.sampled_blocks = UINT32_MAX;
  const LaunchResult some = RunCase(GetParam(), {}), every = RunCase(GetParam(), all);
  EXPECT_CLEAN(some);
  EXPECT_CLEAN(every);
  EXPECT_FALSE(some.must_run_whole);
  EXPECT_LT(some.blocks_run, every.blocks_run / 4);
  EXPECT_EQ(some.counts.grid_blocks, every.counts.grid_blocks);
  EXPECT_NEAR(Issued(some.counts) / Issued(every.counts), 1, 0.03);
  // The longest block is among them.
  const auto most = *std::max_element(every.work.begin(), every.work.end());
  const double mean = static_cast<double>(std::accumulate(every.work.begin(), every.work.end(), uint64_t{0})) /
                      static_cast<double>(every.work.size());
  if (static_cast<double>(most) < 1.25 * mean) return;
  EXPECT_GE(some.counts.busiest_blocks, static_cast<double>(most) / mean * 0.95);
  EXPECT_NEAR(some.counts.busiest_blocks / every.counts.busiest_blocks, 1, 0.05);
  const auto longest = [](const Counts& counts) {
    double cycles = 0;
    for (const BlockLatency& latency : counts.latency) cycles = std::max(cycles, latency.hit.Cycles({}));
    return cycles;
  };
  EXPECT_NEAR(longest(some.counts) / longest(every.counts), 1, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Kernel, Uneven,
                         testing::Values(UnevenLaunch{"OneBlock", {4099}, {64}, 0, 0, false},
                                         UnevenLaunch{"OneBlock", {4099}, {64}, 2048, 0, false},
                                         UnevenLaunch{"OneBlock", {4099}, {64}, 4098, 0, false},
                                         UnevenLaunch{"EverySeventh", {4000}, {64}, 200, 0, false},
                                         UnevenLaunch{"Triangle", {300}, {32}, 1, 0, false},
                                         UnevenLaunch{"Tiles", {50, 40}, {16, 8}, 315, 790, true},
                                         UnevenLaunch{"Strides", {700}, {128}, 700 * 128 * 3 + 5000, 0, false},
                                         UnevenLaunch{"Even", {3000}, {256}, 3000 * 256 - 100, 0, false}),
                         [](const testing::TestParamInfo<UnevenLaunch>& one) {
                           return std::string(one.param.kernel) + "_" + std::to_string(one.param.first);
                         });

// Data decides: a sample alone is refused, and a whole run says whether it stands; then what each block has done does.
TEST(Uneven, WorkByDataIsFoundByRunningAll) {
  constexpr uint32_t kBlocks = 2000;
  std::vector<int> steps(kBlocks, 0);
  steps[777] = 5000;
  const auto run = [&](const LaunchConfig& changes) {
    Bench bench("uneven");
    LaunchConfig config = changes;
    config.grid = {kBlocks};
    config.block = {32};
    config.mode = Mode::kCounted;
    return bench.Run("ByData", config, bench.Upload(std::vector<float>(kBlocks * 32, 1.0f), "out"),
                     bench.Upload(steps, "steps"));
  };
  EXPECT_TRUE(run({}).must_run_whole);
  LaunchConfig config;
  config.whole = true;
  const LaunchResult first = run(config);
  EXPECT_EQ(first.blocks_run, kBlocks);
  EXPECT_TRUE(first.data_decides);
  EXPECT_FALSE(first.sample_stands);
  config.known_work = first.work;
  const LaunchResult second = run(config);
  EXPECT_EQ(second.work, first.work);
  config.known_work.clear();
  config.sampled_blocks = kBlocks;
  const LaunchResult every = run(config);
  EXPECT_NEAR(Issued(second.counts) / Issued(every.counts), 1, 0.03);
  EXPECT_DOUBLE_EQ(second.counts.busiest_blocks, every.counts.busiest_blocks);
}

// Resident blocks share tickets out as if they ran at once.
TEST(Uneven, ResidentBlocksTakeTurnsAtTickets) {
  constexpr uint32_t kBlocks = 40;
  constexpr int kPieces = 400;
  Bench bench("uneven");
  LaunchConfig config = Config({kBlocks}, {64}, Mode::kCounted);
  config.whole = true;
  config.sampled_blocks = 4;
  config.resident_blocks = kBlocks;
  const LaunchResult result = bench.Run("Tickets", config, bench.Upload(std::vector<float>(kPieces * 64, 1.0f), "out"),
                                        bench.Upload(std::vector<int>(1, 0), "next"), kPieces);
  EXPECT_CLEAN(result);
  const auto [least, most] = std::minmax_element(result.work.begin(), result.work.end());
  EXPECT_LT(static_cast<double>(*most), 1.3 * static_cast<double>(*least));
  EXPECT_TRUE(result.sample_stands);
}

// All that a grid stores is known from the addresses of its stores, though few of its blocks run.
TEST(StoredByGrid, IsExact) {
  // Bodies set %rd3, where a float is stored, from %r1 (thread), %r2 (block), %r3 (number in the grid), %rd1 (out).
  const std::string whole = "mul.wide.u32 %rd2, %r3, 4;\nadd.s64 %rd3, %rd1, %rd2;\n";
  const std::string guarded = "setp.ge.u32 %p1, %r3, 100000;\n@%p1 bra $end;\n" + whole;
  const std::string hole = "setp.eq.u32 %p1, %r2, 777;\n@%p1 bra $end;\n" + whole;
  const std::string quotient =
      "div.u32 %r4, %r3, 1000;\nrem.u32 %r5, %r3, 1000;\nmad.lo.u32 %r3, %r4, 1000, %r5;\n" + whole;
  const std::string wraps = "mul.lo.u32 %r3, %r3, 134217728;\nshr.u32 %r3, %r3, 20;\n" + whole;
  const std::string backwards = "sub.u32 %r3, 131071, %r3;\n" + whole;
  const std::string apart = "mul.lo.u32 %r3, %r3, 2;\n" + whole;
  const std::string by_data = "ld.global.u32 %r3, [%rd1];\nand.b32 %r3, %r3, 0;\n" + whole;
  const auto run = [](const std::string& body, uint32_t blocks, std::vector<std::pair<uint64_t, uint64_t>>* stored) {
    Bench bench(
        PtxText{".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
                ".reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n.reg .f32 %f<10>;\n.reg .pred %p<10>;\n"
                "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
                "mad.lo.u32 %r3, %r2, 64, %r1;\nmov.f32 %f1, 0f3F800000;\n" +
                body + "st.global.f32 [%rd3], %f1;\n$end:\nret;\n}\n"});
    LaunchConfig config = Config({blocks}, {64}, Mode::kCounted);
    config.find_stored = true;
    const DeviceAddress out = bench.Reserve<float>(1 << 18, "out");
    bench.memory.Memset(out, 0, 4 << 18);
    const LaunchResult result = bench.Run("k", config, out);
    EXPECT_CLEAN(result);
    EXPECT_LT(result.blocks_run, 100u);
    stored->clear();
    if (result.stored)
      for (const StoredRange& one : *result.stored) stored->emplace_back(one.begin - out, one.end - out);
    return result.stored.has_value();
  };
  std::vector<std::pair<uint64_t, uint64_t>> stored;
  const auto expect = [&](const std::string& body, const std::vector<std::pair<uint64_t, uint64_t>>& wanted) {
    EXPECT_TRUE(run(body, 2048, &stored)) << body;
    EXPECT_EQ(stored, wanted) << body;
  };
  constexpr uint64_t kBytes = 2048 * 64 * 4;
  expect(whole, {{0, kBytes}});
  expect(guarded, {{0, 400000}});
  expect(hole, {{0, 777 * 256}, {778 * 256, kBytes}});
  expect(quotient, {{0, kBytes}});
  expect(backwards, {{0, kBytes}});
  expect(wraps, {{0, 4},         {512, 516},     {1024, 1028},   {1536, 1540},   {2048, 2052},   {2560, 2564},
                 {3072, 3076},   {3584, 3588},   {4096, 4100},   {4608, 4612},   {5120, 5124},   {5632, 5636},
                 {6144, 6148},   {6656, 6660},   {7168, 7172},   {7680, 7684},   {8192, 8196},   {8704, 8708},
                 {9216, 9220},   {9728, 9732},   {10240, 10244}, {10752, 10756}, {11264, 11268}, {11776, 11780},
                 {12288, 12292}, {12800, 12804}, {13312, 13316}, {13824, 13828}, {14336, 14340}, {14848, 14852},
                 {15360, 15364}, {15872, 15876}});
  ASSERT_TRUE(run(apart, 1024, &stored));
  EXPECT_EQ(stored.size(), 65536u);
  EXPECT_EQ(stored.back(), std::pair(uint64_t{8 * 65535}, uint64_t{8 * 65535 + 4}));
  EXPECT_FALSE(run(by_data, 2048, &stored));
}

TEST(BusiestBlocks, IsTheMakespanOverTheMean) {
  EXPECT_EQ(BusiestBlocks(std::vector<uint64_t>(1000, 7), 132), 0);
  std::vector<uint64_t> work(132, 1);
  work[60] = 133;  // mean 2
  EXPECT_DOUBLE_EQ(BusiestBlocks(work, 132), 66.5);
  EXPECT_DOUBLE_EQ(BusiestBlocks({4, 1, 1, 1, 1}, 2), 4 / 1.6);
}

}  // namespace
}  // namespace kgrpo::simt
