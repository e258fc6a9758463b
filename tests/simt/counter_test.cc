// What the counter and the scoreboard say of single accesses.
#include "evaluator_sim/simt/simt.h"
#include "harness.h"

namespace kgrpo::simt {
namespace {

LaunchConfig Counted(uint32_t threads) {
  LaunchConfig config = Config({1}, {threads}, Mode::kCounted);
  config.l1_share = 1 << 16;
  return config;
}

// A sector that a store leaves with gaps is filled in part, however many bytes the instruction writes in all.
TEST(Counter, CountsTheSectorsThatAStoreFillsInPart) {
  Bench bench("counted");
  const DeviceAddress out = bench.Reserve<float>(256, "out");
  const auto partial = [&](const char* kernel) {
    const LaunchResult result = bench.Run(kernel, Counted(32), out);
    EXPECT_CLEAN(result);
    return result.counts.arrays.at(0).store_partial_sectors;
  };
  EXPECT_EQ(partial("StoreEighths"), 32);
  EXPECT_EQ(partial("StoreHalves"), 32);
  EXPECT_EQ(partial("StoreWhole"), 0);
}

// 16 bytes that all lanes load take two cycles to return, 16 of each lane's own four.
TEST(Counter, LanesThatLoadTheSameTakeHalfAsLong) {
  Bench bench("counted");
  const DeviceAddress x = bench.Upload(NoiseVector(128), "x"), out = bench.Reserve<float>(128, "out");
  const LaunchResult one = bench.Run("LoadOne", Counted(32), x, out), own = bench.Run("LoadOwn", Counted(32), x, out);
  EXPECT_CLEAN(one);
  EXPECT_CLEAN(own);
  EXPECT_EQ(own.counts.l1_wavefronts - one.counts.l1_wavefronts, 2);

  const LaunchResult shared = bench.Run("LoadOneShared", Counted(32), out, 7);
  EXPECT_CLEAN(shared);
  EXPECT_EQ(shared.counts.shared_wavefronts, 4 + 2);  // stored by all, loaded by all
  EXPECT_EQ(shared.counts.shared_ideal_wavefronts, 4 + 2);
}

double FromMemory(const LatencyPath& path) {
  return path.steps[static_cast<size_t>(LatencyTerm::kDram)] + path.steps[static_cast<size_t>(LatencyTerm::kL2)];
}

// ptxas moves loads of what no thread writes up past barriers, so that a warp waits for all of them at once.
TEST(Scoreboard, ReadOnlyLoadsPassBarriers) {
  Bench bench("counted");
  const DeviceAddress x = bench.Upload(NoiseVector(256), "x"), out = bench.Reserve<float>(64, "out");
  const LaunchResult free = bench.Run("MeetReadOnly", Counted(64), x, out),
                     ordered = bench.Run("MeetVolatile", Counted(64), x, out);
  EXPECT_CLEAN(free);
  EXPECT_CLEAN(ordered);
  EXPECT_EQ(FromMemory(free.counts.latency.at(0).miss), 1);
  EXPECT_EQ(FromMemory(ordered.counts.latency.at(0).miss), 4);
  EXPECT_EQ(free.counts.barriers, ordered.counts.barriers);
}

}  // namespace
}  // namespace kgrpo::simt
