// Blocks that run in addition to the counted ones: their results are correct, and they do not change the counts.
#include <algorithm>
#include <iterator>
#include <set>

#include "harness.h"
#include "simt/schedule/block_sample.h"

namespace kgrpo::simt {
namespace {

constexpr int kBlocks = 4096, kThreads = 64, kAddends = kBlocks * kThreads;

struct SampledRun {
  LaunchResult result;
  std::set<uint64_t> wrote;  // blocks
};

// Adds vectors by `kBlocks` blocks, of which some run.
SampledRun AddVectors(uint32_t further_blocks, uint64_t further_seed) {
  Bench bench("basic");
  const auto a = NoiseVector(kAddends, 1), b = NoiseVector(kAddends, 2);
  LaunchConfig config = Config({kBlocks}, {kThreads}, Mode::kCounted);
  config.further_blocks = further_blocks;
  config.further_seed = further_seed;
  const DeviceAddress c = bench.Reserve<float>(kAddends, "c");
  SampledRun ran;
  ran.result = bench.Run("Add", config, bench.Upload(a, "a"), bench.Upload(b, "b"), c, kAddends);
  const Allocation& memory = *bench.memory.Find(c);
  const auto values = bench.Download<float>(c, kAddends);
  for (uint64_t at = memory.NextWritten(0); at < memory.bytes(); at = memory.NextWritten(at + sizeof(float))) {
    const auto i = at / sizeof(float);
    EXPECT_EQ(values[i], a[i] + b[i]) << i;
    ran.wrote.insert(i / kThreads);
  }
  EXPECT_EQ(memory.WrittenBytes(), ran.wrote.size() * kThreads * sizeof(float));
  return ran;
}

TEST(FurtherBlocks, AreCountedApart) {
  const SampledRun without = AddVectors(0, 0), with = AddVectors(8, 12345), other = AddVectors(8, 54321);
  EXPECT_CLEAN(with.result);
  EXPECT_EQ(without.result.blocks_run, 24u);
  EXPECT_EQ(without.wrote.size(), 24u);
  EXPECT_EQ(with.result.blocks_run, 33u) << "the last block runs, too";
  EXPECT_TRUE(std::includes(with.wrote.begin(), with.wrote.end(), without.wrote.begin(), without.wrote.end()));
  EXPECT_EQ(with.wrote.size(), 33u);
  EXPECT_TRUE(with.wrote.contains(kBlocks - 1));
  EXPECT_NE(with.wrote, other.wrote);
  EXPECT_EQ(with.result.counts.sampled_blocks, without.result.counts.sampled_blocks);
  EXPECT_EQ(with.result.counts.issued, without.result.counts.issued);
  EXPECT_EQ(with.result.further.sampled_blocks, 8u);
  EXPECT_EQ(with.result.further.issued / 8, with.result.counts.issued / 24);
  EXPECT_TRUE(with.result.independent);
  EXPECT_FALSE(with.result.further_failed);
}

TEST(FurtherBlocks, AreFewWhereTheyTakeLong) {
  constexpr int kSize = 512;
  Bench bench("basic");
  LaunchConfig config = Config({kSize / 16, kSize / 16}, {16, 16}, Mode::kCounted);
  config.further_blocks = 8;
  config.further_seed = 7;
  const DeviceAddress c = bench.Reserve<float>(kSize * kSize, "c");
  const LaunchResult result = bench.Run("MatmulNaive", config, bench.Upload(NoiseVector(kSize * kSize, 1), "a"),
                                        bench.Upload(NoiseVector(kSize * kSize, 2), "b"), c, kSize);
  EXPECT_CLEAN(result);
  EXPECT_EQ(result.blocks_run, 24u + 3u + 1u);
}

TEST(FurtherBlocks, KernelsWithAtomicsAreNotIndependent) {
  Bench bench("basic");
  const DeviceAddress bins = bench.Upload(std::vector<uint32_t>(256, 0), "bins");
  const LaunchResult result =
      bench.Run("HistogramGlobal", Config({4}, {64}), bench.Upload(std::vector<uint8_t>(256, 3), "x"), bins, 256);
  EXPECT_CLEAN(result);
  EXPECT_FALSE(result.independent);
}

// A fault of a further block is told by one word: it may come of what skipped blocks of an earlier launch left out.
TEST(FurtherBlocks, FaultsAreNoFindings) {
  Bench bench("basic");
  LaunchConfig config = Config({kBlocks}, {kThreads}, Mode::kCounted);
  config.further_blocks = 64;
  config.further_seed = 99;
  // Longer than the blocks that are counted reach.
  const std::vector<uint64_t> counted = SampleBlocks(kBlocks, 24, 0);
  const uint64_t elements = (counted.back() + 1) * kThreads;
  ASSERT_LT(elements, uint64_t{kAddends});
  const auto values = NoiseVector(elements, 1);
  const DeviceAddress c = bench.Reserve<float>(elements, "c");
  const LaunchResult result =
      bench.Run("Add", config, bench.Upload(values, "a"), bench.Upload(values, "b"), c, kAddends);
  EXPECT_CLEAN(result);
  EXPECT_TRUE(result.further_failed);
}

TEST(ExtendSample, AddsAsManyAsTheirWorkAllows) {
  const std::vector<uint64_t> first = SampleBlocks(1000, 24, 3);
  const auto work = [](uint64_t of_each) { return std::vector<uint64_t>(24, of_each); };
  std::vector<uint64_t> sample = first;
  std::vector<uint64_t> added = ExtendSample(1000, 3, work(100), &sample);
  EXPECT_EQ(sample, SampleBlocks(1000, 8 * 24, 3));
  EXPECT_EQ(added.size(), 7u * 24);
  std::vector<uint64_t> both;
  std::set_union(first.begin(), first.end(), added.begin(), added.end(), std::back_inserter(both));
  EXPECT_EQ(both, sample);

  sample = first;
  EXPECT_EQ(ExtendSample(1000, 3, work(20'000), &sample).size(), 10u);
  sample = first;
  EXPECT_TRUE(ExtendSample(1000, 3, work(1'000'000), &sample).empty());
  EXPECT_EQ(sample, first);
  sample = SampleBlocks(10, 24, 3);
  EXPECT_TRUE(ExtendSample(10, 3, work(1), &sample).empty());
}

TEST(SampleBlocks, AreDistinctAndInOrder) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    const std::vector<uint64_t> chosen = SampleBlocks(1000, 48, seed);
    EXPECT_EQ(std::set<uint64_t>(chosen.begin(), chosen.end()).size(), 48u);
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    EXPECT_LT(chosen.back(), 1000u);
  }
  EXPECT_EQ(SampleBlocks(3, 8, 5), (std::vector<uint64_t>{0, 1, 2}));
}

TEST(Allocation, FindsWhatWasWritten) {
  DeviceMemory memory;
  const DeviceAddress address = memory.Allocate(1000, "x");
  Allocation& allocation = *memory.Find(address);
  EXPECT_EQ(allocation.NextWritten(0), 1000u);
  EXPECT_EQ(allocation.NextUnwritten(0), 0u);
  const std::vector<uint8_t> bytes(200, 1);
  memory.Write(address + 60, bytes.data(), 8);
  memory.Write(address + 800, bytes.data(), 200);
  EXPECT_EQ(allocation.NextWritten(0), 60u);
  EXPECT_EQ(allocation.NextWritten(63), 63u);
  EXPECT_EQ(allocation.NextUnwritten(60), 68u);
  EXPECT_EQ(allocation.NextWritten(68), 800u);
  EXPECT_EQ(allocation.NextUnwritten(800), 1000u);
  EXPECT_EQ(allocation.WrittenBytes(), 208u);
}

}  // namespace
}  // namespace kgrpo::simt
