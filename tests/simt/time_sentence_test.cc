// The sentences on a kernel's time: the causes for which its warps wait, and the change that would gain most.
#include "simt/time/time_sentence.h"  // Print
#include "harness.h"
#include "simt/simt.h"
#include "test.h"

namespace kgrpo::simt {
namespace {

class TimeSentenceTest : public testing::Test {
 protected:
  // Of a launch of a block a multiprocessor that does nothing.
  Counts Bare() const {
    Counts counts;
    counts.grid_blocks = counts.sampled_blocks = static_cast<uint64_t>(device_.multiprocessors);
    counts.threads_per_block = 256;
    counts.warps_per_block = 8;
    counts.issued = counts.thread_instructions = 0;
    return counts;
  }
  std::string Says(const Counts& counts) const { return EstimateTime(counts, {32}, device_).sentence; }

  // A sum of 2^22 floats.
  TimeEstimate Sum(const std::string& kernel, uint32_t blocks) const {
    Bench bench("counted");
    constexpr int kCount = 1 << 22;
    const DeviceAddress x = bench.Reserve<float>(kCount, "x"), sum = bench.Reserve<float>(1, "sum");
    bench.memory.Poison(x, 0);
    bench.memory.Poison(sum, 0);
    LaunchConfig config = Config({blocks}, {kThreads}, Mode::kCounted);
    config.latencies = device_.latencies;
    config.l1_share = L1Share(device_, {32}, kThreads, blocks);
    const LaunchResult result = bench.Run(kernel, config, x, sum, kCount);
    EXPECT_CLEAN(result) << kernel;
    return EstimateTime(result.counts, {32}, device_);
  }

  static constexpr uint32_t kThreads = 256, kBlocks = (1 << 22) / kThreads;
  const Device device_ = Device::Load(std::string(KGRPO_SOURCE_DIR) + "/plugins/interpreter/devices/h100.yaml");
};

// "... : about 7.2 times as fast"
double GainIn(const std::string& sentence) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(sentence, match, std::regex(": about ([0-9.]+) times as fast$"))) << sentence;
  return match.empty() ? 0 : std::stod(match[1]);
}

// Each step towards fewer atomics is advised when it is the next one, with about the gain of the changed kernel.
TEST_F(TimeSentenceTest, AdvisesFewerAtomicsStepByStep) {
  const TimeEstimate by_thread = Sum("SumByThread", kBlocks), by_warp = Sum("SumByWarp", kBlocks),
                     by_block = Sum("SumByBlock", kBlocks), by_few_blocks = Sum("SumByBlock", 8 * 132);
  EXPECT_THAT(by_thread.sentence, HasSubstr("Add up within each warp, for one atomic a warp instead of one a thread"));
  EXPECT_NEAR(GainIn(by_thread.sentence) / (by_thread.seconds / by_warp.seconds), 1, 0.1) << by_thread.sentence;
  EXPECT_THAT(by_warp.sentence, HasSubstr("Add up within each block before atomics to global memory"));
  EXPECT_NEAR(GainIn(by_warp.sentence) / (by_warp.seconds / by_block.seconds), 1, 0.2) << by_warp.sentence;
  EXPECT_THAT(by_block.sentence, HasSubstr("Give each block more elements, for fewer atomics"));
  // Fewer blocks save more than atomics: what it takes to start them, and to add up in each.
  EXPECT_LT(GainIn(by_block.sentence), by_block.seconds / by_few_blocks.seconds) << by_block.sentence;
  EXPECT_GT(GainIn(by_block.sentence), 1.5);
  EXPECT_THAT(by_few_blocks.sentence, Not(HasSubstr("atomics")));
}

// If each block adds to places of its own, fewer blocks would add as often.
TEST_F(TimeSentenceTest, AdvisesNoFewerBlocksWhereTheyDoNotMeet) {
  Counts counts = Bare();
  counts.grid_blocks = 1 << 20;
  counts.global_atomic_operations = counts.atomic_operations_by_block = 1e6;
  counts.busiest_atomic_turns = counts.fewer_atomic_turns.by_warp = counts.fewer_atomic_turns.by_block = 1e7;
  EXPECT_THAT(Says(counts), Not(HasSubstr("times as fast")));
  counts.fewer_atomic_turns.of_a_block = 10;
  EXPECT_THAT(Says(counts), HasSubstr("Give each block more elements"));
}

TEST_F(TimeSentenceTest, NamesArraysTogetherThatGainLittleAlone) {
  Counts counts = Bare();
  const auto add = [&](const char* name) {
    ArrayTraffic array;
    array.name = name;
    array.address = counts.arrays.size() + 1;
    array.bytes = 1 << 20;
    array.load_ideal_sectors = 1e6;
    array.load_sectors = 4e6;
    array.l1_miss_sectors = {4e6, 4e6, 4e6};
    counts.arrays.push_back(array);
  };
  add("a");
  add("b");
  EXPECT_THAT(Says(counts), HasSubstr(". Let neighbouring threads load neighbouring 16 bytes of a: about "));
  for (const char* name : {"c", "d", "e", "f", "g", "h", "i", "j", "k"}) add(name);
  const std::string sentence = Says(counts);
  EXPECT_THAT(sentence, HasSubstr(". Let neighbouring threads access neighbouring 16 bytes of a, b, c, d, e, f, g, h, "
                                  "i, j and k: about "));
  EXPECT_GT(GainIn(sentence), 2);
}

TEST_F(TimeSentenceTest, SaysWhatWarpsWaitFor) {
  Counts counts = Bare();
  BlockLatency block;
  block.miss.issue = 100;
  block.miss.steps[static_cast<size_t>(LatencyTerm::kDram)] = 10;
  block.miss.steps[static_cast<size_t>(LatencyTerm::kBarrier)] = 60;
  block.miss.steps[static_cast<size_t>(LatencyTerm::kAlu)] = 20;
  block.hit = block.miss;
  counts.latency = {block, block};
  const double dram = 10 * device_.latencies.dram,
               barriers = 60 * (device_.latencies.barrier + 8 * device_.barrier_warp_cycles),
               all = dram + barriers + 100 + 20 * device_.latencies.alu + 8 * device_.warp_start_cycles;
  char expected[200];
  std::snprintf(expected, sizeof expected,
                "bound by latency: %.0f%% waiting for DRAM, %.0f%% at barriers (about %.0f cycles a warp); occupancy",
                100 * dram / all, 100 * barriers / all, all);
  EXPECT_THAT(Says(counts), StartsWith(expected));
}

// A limit of 100% does not mean that the device is full.
TEST_F(TimeSentenceTest, SaysHowMuchOfTheDeviceTheGridFillsAndWhatTheLaunchCosts) {
  Counts counts = Bare();
  counts.issued = counts.thread_instructions = 1e6;
  EXPECT_THAT(Says(counts), HasSubstr("; occupancy limit 100%, but the grid's 132 blocks fill 12% of that"));
  counts.grid_blocks *= 8;
  EXPECT_THAT(Says(counts), Not(HasSubstr("fill")));
  for (const double issued : {1e6, 1e9}) {
    counts.issued = issued;
    counts.thread_instructions = 32 * issued;
    const TimeEstimate estimate = EstimateTime(counts, {32}, device_);
    const double share = estimate.launch_seconds / estimate.seconds;
    if (estimate.bound == "launch") {
      EXPECT_THAT(estimate.sentence, Not(HasSubstr("the launch costs")));
    } else if (share > 0.2) {
      EXPECT_THAT(estimate.sentence, HasSubstr(Print("; the launch costs %.0f%% of the time", 100 * share)));
    } else {
      EXPECT_THAT(estimate.sentence, Not(HasSubstr("launch")));
    }
  }
}

// Cycles an access are told only where fewer would do.
TEST_F(TimeSentenceTest, SaysWhatHelpsWhereSharedMemoryHasNoBankConflicts) {
  Counts counts = Bare();
  counts.shared_requests = counts.shared_ideal_wavefronts = counts.shared_wavefronts = 1e9;
  EXPECT_THAT(Says(counts), StartsWith("bound by the number of shared memory accesses, which have no bank conflicts: "
                                       "fewer or wider ones help; "));
  counts.shared_wavefronts = 2e9;
  EXPECT_THAT(Says(counts), StartsWith("bound by shared memory: 2.0 cycles an access where 1.0 would do; "));
}

// The shares are of the time that is modelled, however blocks, rounds and the L2 mix what is waited for.
TEST_F(TimeSentenceTest, SharesAreOfTheTimeThatIsModelled) {
  for (const uint32_t blocks : {1u, 132u, 3000u}) {
    Counts counts = Bare();
    counts.grid_blocks = blocks;
    counts.sampled_blocks = 3;
    for (int i = 1; i <= 3; ++i) {
      BlockLatency block;
      block.weight = i;
      block.hit.steps[static_cast<size_t>(LatencyTerm::kL2)] = 100 * i;
      block.miss.steps[static_cast<size_t>(LatencyTerm::kDram)] = 100 * i;
      counts.latency.push_back(block);
    }
    for (const double busiest : {0.0, 1.0 + blocks / 132}) {
      counts.busiest_blocks = busiest;
      const std::string sentence = Says(counts);
      double sum = 0;
      const std::regex share("([0-9]+)% (waiting|at|issuing|starting)");
      for (std::sregex_iterator at(sentence.begin(), sentence.end(), share), end; at != end; ++at)
        sum += std::stod((*at)[1]);
      EXPECT_NEAR(sum, 100, 10) << sentence;
      EXPECT_THAT(sentence, StartsWith("bound by latency: ")) << blocks;
    }
  }
}

}  // namespace
}  // namespace kgrpo::simt
