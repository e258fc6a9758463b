// The device files of the time model: each can be read, and its times of simple kernels agree with the data sheet.
#include <filesystem>

#include "harness.h"
#include "simt/simt.h"

namespace kgrpo::simt {
namespace {

std::string Folder() { return std::string(KGRPO_SOURCE_DIR) + "/plugins/interpreter/devices"; }

// Counts of adding two arrays of `n` floats.
Counts CountAdd(const Device& device, int n) {
  Bench bench("basic");
  DeviceAddress tensors[3];
  for (DeviceAddress& tensor : tensors) {
    tensor = bench.Reserve<float>(static_cast<size_t>(n), "tensor");
    bench.memory.Poison(tensor, 0);
  }
  LaunchConfig config = Config({static_cast<uint32_t>(n) / 256}, {256}, Mode::kCounted);
  config.latencies = device.latencies;
  config.sampled_blocks = 12;
  const LaunchResult result = bench.Run("Add", config, tensors[0], tensors[1], tensors[2], n);
  EXPECT_CLEAN(result);
  return result.counts;
}

TEST(DeviceFiles, EachStreamsNearItsBandwidth) {
  constexpr int kElements = 1 << 24;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    SCOPED_TRACE(entry.path());
    ++files;
    const Device device = Device::Load(entry.path());
    const Counts counts = CountAdd(device, kElements);
    const TimeEstimate estimate = EstimateTime(counts, {16, 0, 0, 0}, device);
    const double bandwidth = 12.0 * kElements / estimate.seconds;
    EXPECT_EQ(estimate.bound, "dram") << estimate.sentence;
    EXPECT_GT(bandwidth, 0.55 * device.dram_bytes_per_second);  // four bytes a load are not all that an H200 can do
    EXPECT_LT(bandwidth, 0.95 * device.dram_bytes_per_second);
  }
  EXPECT_GE(files, 5);
}

TEST(DeviceFiles, OrderTheGpusAsTheirBandwidthDoes) {
  double last = 0;
  for (const char* name : {"l4", "rtx4090", "a100", "h100", "h200"}) {
    const Device device = Device::Load(Folder() + "/" + name + ".yaml");
    const TimeEstimate estimate = EstimateTime(CountAdd(device, 1 << 24), {16, 0, 0, 0}, device);
    const double rate = 1 / estimate.seconds;
    EXPECT_GT(rate, last) << name;
    last = rate;
  }
}

// Data that a launch wrote and the L2 keeps need not be fetched by the next launch.
TEST(L2Contents, AreFoundByTheNextLaunch) {
  const Device device = Device::Load(Folder() + "/h100.yaml");
  const Counts counts = CountAdd(device, 1 << 20);  // three arrays of 4 MiB
  L2Contents contents;
  const TimeEstimate first = EstimateTime(counts, {16, 0, 0, 0}, device, &contents);
  const TimeEstimate second = EstimateTime(counts, {16, 0, 0, 0}, device, &contents);
  EXPECT_NEAR(first.dram_bytes, 12.0 * (1 << 20), 1e5);
  EXPECT_LT(second.dram_bytes, 0.01 * first.dram_bytes);
  EXPECT_LT(second.seconds, first.seconds);
  EXPECT_EQ(EstimateTime(counts, {16, 0, 0, 0}, device, nullptr, false).seconds, first.seconds);
}

// All of an array, of which `last` bytes are touched last.
L2Contents::Touched Array(uint64_t address, double bytes, double last = 0) { return {address, 0, 1000, bytes, last}; }

TEST(L2Contents, MakeRoomForWhatComesLater) {
  L2Contents contents;
  contents.Touch({Array(1, 30), Array(2, 30)}, 100);
  EXPECT_EQ(contents.BytesOf(Array(1, 1)), 30);
  contents.Touch({Array(3, 60)}, 100);  // 40 are left for the two
  EXPECT_EQ(contents.BytesOf(Array(3, 1)), 60);
  EXPECT_EQ(contents.BytesOf(Array(1, 1)) + contents.BytesOf(Array(2, 1)), 40);
  contents.Touch({Array(4, 400)}, 100);  // of what is larger than the cache it keeps a part, and nothing else
  EXPECT_EQ(contents.BytesOf(Array(4, 1)), 100);
  EXPECT_EQ(contents.BytesOf(Array(3, 1)), 0);
}

// The stores of the last blocks are kept whole; of the rest each array keeps its share.
TEST(L2Contents, KeepWhatComesLast) {
  L2Contents contents;
  contents.Touch({Array(1, 380), Array(2, 20, 20)}, 100);
  EXPECT_EQ(contents.BytesOf(Array(2, 1)), 20);
  EXPECT_EQ(contents.BytesOf(Array(1, 1)), 80);
  contents.Touch({Array(3, 100), Array(4, 400, 200)}, 100);  // more than fits comes last
  EXPECT_EQ(contents.BytesOf(Array(4, 1)), 100);
  EXPECT_EQ(contents.BytesOf(Array(3, 1)), 0);
}

// A launch over another part of an array finds nothing of it; one over half of the same finds half.
TEST(L2Contents, AreOfThePartThatWasTouched) {
  L2Contents contents;
  contents.Touch({{1, 0, 400, 40}}, 100);
  EXPECT_EQ(contents.BytesOf({1, 400, 1000}), 0);
  EXPECT_EQ(contents.BytesOf({1, 200, 1000}), 20);
  EXPECT_EQ(contents.BytesOf({1, 0, 1000}), 40);
  contents.Touch({{1, 400, 1000, 60}}, 100);
  EXPECT_EQ(contents.BytesOf({1, 0, 400}), 40);
  contents.Touch({{1, 0, 1000, 70}}, 100);  // again: in place of both
  EXPECT_EQ(contents.BytesOf({1, 0, 1000}), 70);
}

TEST(TimeEstimate, FurtherLaunchesOfACallCostLess) {
  const Device device = Device::Load(Folder() + "/h100.yaml");
  const Counts counts = CountAdd(device, 1 << 12);
  L2Contents contents;
  EXPECT_EQ(EstimateTime(counts, {16, 0, 0, 0}, device, &contents).launch_seconds, device.launch_seconds);
  EXPECT_EQ(EstimateTime(counts, {16, 0, 0, 0}, device, &contents).launch_seconds, device.next_launch_seconds);
  EXPECT_LT(device.next_launch_seconds, device.launch_seconds);
  // Also where the first one touches no memory.
  L2Contents nothing;
  Counts idle = counts;
  idle.arrays.clear();
  EXPECT_EQ(EstimateTime(idle, {16, 0, 0, 0}, device, &nothing).launch_seconds, device.launch_seconds);
  EXPECT_EQ(EstimateTime(counts, {16, 0, 0, 0}, device, &nothing).launch_seconds, device.next_launch_seconds);
}

// Warps that meet at barriers wait together: the fewer blocks, the less hides it. Blocks that meet at more barriers
// drift apart, and hide more.
TEST(TimeEstimate, OtherBlocksHideWhatBarriersWaitFor) {
  const Device device = Device::Load(Folder() + "/h100.yaml");
  Counts counts = CountAdd(device, 1 << 20);
  const auto estimate = [&](double barriers, uint32_t shared_bytes) {
    counts.barriers = barriers;
    return EstimateTime(counts, {16, shared_bytes, 0, 0}, device, nullptr, false);
  };
  // The exponent's distance from 1, as a share of the distance without barriers.
  const auto left = [&](double barriers, uint32_t shared_bytes) {
    return (estimate(barriers, shared_bytes).latency_norm - 1) / (estimate(0, shared_bytes).latency_norm - 1);
  };
  const double warps = static_cast<double>(counts.sampled_blocks) * counts.warps_per_block;
  for (const double barriers_a_warp : {1 / warps, 150.0}) {
    const double apart = device.overlap_blocks / (1 + barriers_a_warp / 150);
    EXPECT_NEAR(left(barriers_a_warp * warps, 0), 8 / (8 + apart), 1e-9);  // blocks that a multiprocessor holds
    EXPECT_NEAR(left(barriers_a_warp * warps, 100000), 2 / (2 + apart), 1e-9);
  }
  EXPECT_GT(estimate(1, 0).seconds, estimate(0, 0).seconds);
}

TEST(TimeEstimate, BlocksOfMoreWarpsTakeLongerToReplace) {
  const Device device = Device::Load(Folder() + "/h100.yaml");
  Counts counts = CountAdd(device, 1 << 12);  // all blocks at once
  const auto waited = [&](uint32_t warps) {
    counts.warps_per_block = warps;
    for (const TimeTerm& term : EstimateTime(counts, {16, 0, 0, 0}, device).terms) {
      if (term.name == "latency") return term.seconds * device.clock_hz;
    }
    return 0.0;
  };
  EXPECT_NEAR(waited(32) - waited(8), 24 * device.warp_start_cycles, 1e-3);
}

TEST(LatencyPath, IsTimedForOtherLatencies) {
  LatencyPath path;
  path.issue = 10;
  path.steps[static_cast<size_t>(LatencyTerm::kDram)] = 2;
  path.steps[static_cast<size_t>(LatencyTerm::kAlu)] = 3;
  Latencies latencies;
  latencies.dram = 500;
  latencies.alu = 4;
  EXPECT_EQ(path.Cycles(latencies), 10 + 1000 + 12);
}

}  // namespace
}  // namespace kgrpo::simt
