// Blocks that run in addition to the counted ones: their results are correct, and they do not change the counts.
#include <algorithm>
#include <iterator>
#include <set>

#include "harness.h"
#include "simt/schedule/block_sample.h"
#include "simt/state/program.h"

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

constexpr const char* kRacy = "RaceMissingSecondBarrier";

LaunchResult RunRacy(LaunchConfig config) {
  Bench bench("buggy");
  return bench.Run(kRacy, config, bench.Upload(NoiseVector(kAddends, 1), "x"), bench.Reserve<float>(kAddends, "y"),
                   kAddends);
}

// Two neighbours run with every check, and are in no count.
TEST(CheckedBlocks, AreLookedAtBesideTheCounted) {
  LaunchConfig config = Config({kBlocks}, {kThreads}, Mode::kCounted);
  config.further_seed = 12345;
  const LaunchResult without = RunRacy(config);
  EXPECT_CLEAN(without);
  config.choose_checked = 2;
  config.checked_instructions = 1 << 20;
  for (const bool whole : {false, true}) {
    config.whole = whole;
    const LaunchResult with = RunRacy(config);
    ASSERT_FALSE(with.findings.empty()) << "whole: " << whole;
    EXPECT_EQ(with.findings.front().code, FindingCode::kRace);
    EXPECT_NEAR(with.counts.issued / without.counts.issued, 1, 1e-9);
    EXPECT_EQ(with.blocks_run, whole ? uint64_t{kBlocks} : without.blocks_run + 2);
  }
  // Checks end with their allowance: here within the first tile.
  config.checked_instructions = 16;
  EXPECT_CLEAN(RunRacy(config));
}

TEST(CheckedBlocks, MayBeNamedAndRunAlone) {
  LaunchConfig config = Config({kBlocks}, {kThreads}, Mode::kPlain);
  config.checked_blocks = {7, 4000};
  config.checked_instructions = 1 << 20;
  config.only_checked = true;
  const LaunchResult result = RunRacy(config);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings.front().thread.block.x, 7u);
  EXPECT_EQ(result.blocks_run, 2u);
}

// The block whose number decides is the first on its edge, and only a checked block checks it.
TEST(EdgeCoverage, NamesTheFirstBlockOfAnEdge) {
  Bench bench(PtxText{R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry Rare(.param .u32 n)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  mov.u32 %r1, %ctaid.x;
  ld.param.u32 %r2, [n];
  setp.ne.u32 %p1, %r1, %r2;
  @%p1 bra $End;
  add.u32 %r3, %r1, 1;
$End:
  ret;
}
)"});
  const auto edge = [](const LaunchResult& result) {
    for (const Coverage::First& first : result.coverage.firsts)
      if (result.coverage.edges[first.at] == (kTaken | kPassed)) return first;
    return Coverage::First{};
  };
  const LaunchResult plain = bench.Run("Rare", Config({64}, {32}, Mode::kPlain), 41);
  EXPECT_CLEAN(plain);
  std::vector<uint64_t> blocks;
  for (const Coverage::First& first : plain.coverage.firsts) blocks.push_back(first.block);
  EXPECT_EQ(blocks, (std::vector<uint64_t>{0, 0, 41})) << "taken, the exit, passed";
  EXPECT_EQ(plain.coverage.Unchecked(edge(plain).at), kTaken | kPassed);

  Coverage all = plain.coverage;
  all.Add(bench.Run("Rare", Config({40}, {32}), 41).coverage);
  EXPECT_EQ(all.Unchecked(edge(plain).at), kPassed);
  all.Add(bench.Run("Rare", Config({64}, {32}), 41).coverage);
  EXPECT_EQ(all.Unchecked(edge(plain).at), 0);
}

// Whether blocks of a kernel show what others compute.
bool AreAlike(const std::string& body) {
  const std::string head = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry K(.param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p<9>;
  .reg .f32 %f<9>;
  .reg .b32 %r<19>;
  .reg .b64 %d<19>;
  .shared .align 4 .b8 s[1024];
  ld.param.u64 %d1, [x];
  ld.param.u64 %d2, [y];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r2, 256, %r3;
  setp.ge.s32 %p1, %r4, %r1;
  @%p1 bra $End;
  mul.wide.s32 %d3, %r4, 4;
  add.s64 %d4, %d1, %d3;
  add.s64 %d5, %d2, %d3;
)";
  const auto module = Module::Parse(head + body + "$End:\n  ret;\n}\n");
  EXPECT_EQ(module->kernels()[0].refused, "");
  return module->program().kernels[0].control.alike;
}

TEST(AlikeBlocks, DifferInTheirPlacesAndDecisionsOnly) {
  const std::string load = "ld.global.f32 %f1, [%d4];\n", store = "st.global.f32 [%d5], %f1;\n";
  EXPECT_TRUE(AreAlike(load + "add.f32 %f1, %f1, %f1;\n" + store));
  EXPECT_TRUE(AreAlike(load + "setp.eq.s32 %p2, %r2, 77;\n@%p2 bra $Skip;\nadd.f32 %f1, %f1, %f1;\n$Skip:\n" + store))
      << "a decision";
  EXPECT_TRUE(
      AreAlike("ld.global.u32 %r5, [%d4];\nmul.wide.s32 %d6, %r5, 4;\nadd.s64 %d7, %d1, %d6;\n"
               "ld.global.f32 %f1, [%d7];\n" +
               store))
      << "a place that data names";

  EXPECT_FALSE(AreAlike(load + "setp.eq.s32 %p2, %r2, 77;\nselp.f32 %f1, 0f00000000, %f1, %p2;\n" + store));
  EXPECT_FALSE(AreAlike("st.global.u32 [%d5], %r2;\n")) << "a value";
  EXPECT_FALSE(
      AreAlike("rem.s32 %r5, %r4, 7;\nmul.wide.s32 %d6, %r5, 4;\nadd.s64 %d7, %d1, %d6;\n"
               "ld.global.f32 %f1, [%d7];\n" +
               store))
      << "a remainder";
  EXPECT_FALSE(AreAlike("mov.u32 %r5, s;\nst.shared.u32 [%r5], %r2;\nld.shared.f32 %f1, [%r5];\n" + store))
      << "through shared memory";
  EXPECT_FALSE(AreAlike(load + "setp.lt.f32 %p2, %f1, 0f00000000;\nmov.u32 %r5, 0;\n@%p2 bra $Skip;\n"
                               "mov.u32 %r5, %r2;\n$Skip:\nst.global.u32 [%d5], %r5;\n"));
}

constexpr const char* kOfAll = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry K(.param .u64 y)
{
  .reg .pred %p<9>;
  .reg .b32 %r<9>;
  .reg .b64 %d<9>;
  ld.param.u64 %d1, [y];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r2, 64, %r3;
  mul.wide.s32 %d3, %r4, 4;
  add.s64 %d4, %d1, %d3;
)";

// A block of a rare class runs; where decisions do not show the differences, all blocks do.
TEST(FurtherBlocks, ShowWhatAllOthersDo) {
  const auto run = [](const std::string& body) {
    Bench bench(PtxText{kOfAll + body + "  ret;\n}\n"});
    LaunchConfig config = Config({kBlocks}, {kThreads}, Mode::kCounted);
    config.further_blocks = 8;
    config.further_seed = 5;
    const DeviceAddress y = bench.Reserve<uint32_t>(kAddends, "y");
    const LaunchResult result = bench.Run("K", config, y);
    EXPECT_CLEAN(result);
    std::set<uint32_t> values;
    for (const uint32_t value : bench.Download<uint32_t>(y, kAddends)) values.insert(value);
    return std::pair(result, values);
  };
  const auto [even, same] = run("st.global.u32 [%d4], 1;\n");
  EXPECT_TRUE(even.shows_others);
  EXPECT_EQ(even.blocks_run, 33u);
  const auto [one, by_decision] =
      run("mov.u32 %r5, 1;\nsetp.ne.s32 %p1, %r2, 3210;\n@%p1 bra $Store;\n"
          "mov.u32 %r5, 9;\n$Store:\nst.global.u32 [%d4], %r5;\n");
  EXPECT_TRUE(one.shows_others);
  EXPECT_LE(one.blocks_run, 40u);
  EXPECT_TRUE(by_decision.contains(9));
  const auto [none, by_value] =
      run("setp.eq.s32 %p1, %r2, 3210;\nselp.u32 %r5, 9, 1, %p1;\nst.global.u32 [%d4], %r5;\n");
  EXPECT_FALSE(none.shows_others);
  EXPECT_EQ(none.blocks_run, uint64_t{kBlocks});
  EXPECT_TRUE(by_value.contains(9));
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
