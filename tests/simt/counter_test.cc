// Figures of the counter and the scoreboard for single accesses.
#include <fstream>
#include <set>
#include <string>

#include "harness.h"
#include "simt/lower/cost.h"
#include "simt/simt.h"

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

// Stores of few lines that follow one another reach the L2 as one, as on an H100: 44 us for 67 MB by one, two or four
// neighbours a thread, 145 us by eight.
TEST(Counter, CombinesStoresThatFollowOneAnother) {
  Bench bench("counted");
  const DeviceAddress out = bench.Reserve<float>(256, "out");
  const auto stored = [&](const char* kernel) {
    const LaunchResult result = bench.Run(kernel, Counted(32), out);
    EXPECT_CLEAN(result);
    return result.counts.arrays.at(0);
  };
  const ArrayTraffic four = stored("StoreFour"), eight = stored("StoreEight"), eighths = stored("StoreEighths");
  EXPECT_EQ(four.store_requests, 4);
  EXPECT_EQ(four.store_sectors, 16);
  EXPECT_EQ(four.store_partial_sectors, 0);
  EXPECT_EQ(four.whole_store_sectors, 16);
  EXPECT_EQ(eight.store_sectors, 8 * 32);
  EXPECT_EQ(eight.store_partial_sectors, 8 * 32);
  EXPECT_EQ(eight.whole_store_sectors, 32);
  EXPECT_EQ(eight.unique_store_bytes, 1024);
  EXPECT_EQ(eighths.whole_store_sectors, 0);
  EXPECT_EQ(eighths.unique_store_bytes, 128);
}

// A 16 x 16 fragment of halves from global memory takes four loads of 4 bytes a lane, each of 8 lines, and one of
// floats four whole stores of 8 bytes a lane, as in sm_90's machine code.
TEST(Counter, CountsFragmentsAsMachineCodeLoadsThem) {
  Bench bench("pipelined");
  const DeviceAddress a = bench.Reserve<uint16_t>(16 * 64, "a"), b = bench.Reserve<uint16_t>(16 * 64, "b"),
                      c = bench.Reserve<float>(16 * 32, "c");
  bench.memory.Poison(a, 0);
  bench.memory.Poison(b, 0);
  const LaunchResult result = bench.Run("FragmentsFromGlobal", Counted(32), a, b, c);
  EXPECT_CLEAN(result);
  EXPECT_EQ(result.counts.l1_wavefronts, 2 * 4 * 8 + 4 * 2 * 4);
  for (const ArrayTraffic& array : result.counts.arrays) {
    EXPECT_EQ(array.load_sectors, array.name == "c" ? 0 : 32) << array.name;
    EXPECT_EQ(array.store_sectors, array.name == "c" ? 32 : 0) << array.name;
    EXPECT_EQ(array.store_partial_sectors, 0) << array.name;
  }
  EXPECT_EQ(result.counts.pipe[static_cast<size_t>(Pipe::kTensor)], 2);
}

// The turns of the L2's unit: lanes at one address need one each, and floats wait 2.39 times as long for one another;
// the addresses of a sector share one. As measured on an H200: 45.7, 109.4, 4.9 and 3.5 cycles, at 1.43 a turn.
TEST(Counter, CountsTheTurnsOfAtomics) {
  Bench bench("counted");
  const DeviceAddress x = bench.Upload(std::vector<int>(32, 5), "x"), sums = bench.Reserve<float>(32, "sums");
  const auto turns = [&](const LaunchResult& result) {
    EXPECT_CLEAN(result);
    return result.counts.busiest_atomic_turns;
  };
  EXPECT_NEAR(turns(bench.Run("AddAtOne", Counted(32), x, sums)), 32, 1e-9);
  EXPECT_NEAR(turns(bench.Run("AddFloatsAtOne", Counted(32), x, sums)), 2.39 * 32, 1e-9);
  EXPECT_NEAR(turns(bench.Run("AddSideBySide", Counted(32), sums)), 4, 1e-9);
  EXPECT_NEAR(turns(bench.Run("AddOneLane", Counted(32), sums)), 2.39, 1e-9);
}

// 256 counters of four bytes: at even multiples of 512 bytes two units of the L2 serve them, at odd ones four. The mean
// of both counts, wherever the tensor lies here.
TEST(Counter, AtomicsAreOfBothPlacements) {
  Bench bench("counted");
  const DeviceAddress sums = bench.Reserve<int>(256, "sums");
  const LaunchResult result = bench.Run("AddSideBySide", Counted(256), sums);
  EXPECT_CLEAN(result);
  EXPECT_NEAR(result.counts.busiest_atomic_turns, (16 + 8) / 2.0, 1e-9);  // of 32 sectors
}

// Accesses by copies of a class count for the lines that copy, and not for the class's definition.
TEST(Counter, CopiesAreOfTheLinesThatCopy) {
  std::ifstream source(std::string(KGRPO_SOURCE_DIR) + "/tests/simt/kernels/counted.cu");
  std::set<int> copying, accessing;
  int number = 0;
  for (std::string line; std::getline(source, line);) {
    ++number;
    if (line.ends_with("// copied here")) copying.insert(number);
  }
  ASSERT_EQ(copying.size(), 2u);
  Bench bench("counted");
  const DeviceAddress in = bench.Upload(NoiseVector(128), "in"), out = bench.Reserve<float>(128, "out");
  const LaunchResult result = bench.Run("CopyPacks", Counted(32), in, out);
  EXPECT_CLEAN(result);
  for (const LineDemand& line : result.counts.lines) {
    if (line.sectors > 0) accessing.insert(line.line);
  }
  EXPECT_EQ(accessing, copying);
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

// Each shuffle, and each part of threadIdx that is read, passes through the data path of shared memory once.
TEST(Counter, ShufflesAndReadsOfThreadIdxPassThroughSharedMemory) {
  Bench bench("counted");
  const DeviceAddress x = bench.Upload(NoiseVector(64), "x"), out = bench.Reserve<float>(64, "out");
  LaunchConfig config = Config({1}, {32, 2}, Mode::kCounted);
  config.l1_share = 1 << 16;
  const LaunchResult result = bench.Run("ShuffleTwice", config, x, out);
  EXPECT_CLEAN(result);
  EXPECT_EQ(result.counts.exchange_wavefronts, 2 * 2 + 2 * 2);  // of two warps
  EXPECT_EQ(result.counts.shared_wavefronts, 0);
  double of_lines = 0;
  for (const LineDemand& line : result.counts.lines) of_lines += line.exchange_wavefronts;
  EXPECT_EQ(of_lines, result.counts.exchange_wavefronts);
}

// More blocks are sampled if the data decides which lanes meet at an atomic than if the program does.
TEST(Counter, LooksAtMoreBlocksWhereLanesOfAnAtomicMayPart) {
  constexpr uint32_t kBlocks = 1000;
  Bench bench("counted");
  std::vector<int> values(kBlocks * 32);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 2654435761u >> 7);
  const DeviceAddress x = bench.Upload(values, "x"), bins = bench.Reserve<int>(16, "bins");
  LaunchConfig config = Config({kBlocks}, {32}, Mode::kCounted);
  config.l1_share = 1 << 16;
  EXPECT_EQ(bench.Run("CountBins", config, x, bins).counts.sampled_blocks, 8u * config.sampled_blocks);
  EXPECT_EQ(bench.Run("CountAll", config, x, bins).counts.sampled_blocks, config.sampled_blocks);
}

// The parts of which ptxas makes an instruction keep other pipes busy than the instruction's own.
TEST(Cost, PartsOfAnInstructionHaveTheirPipes) {
  const auto busy = [](const char* opcode) {
    std::array<double, static_cast<size_t>(Pipe::kCount)> pipes{};
    AddPipes(CostOf(Opcode(opcode)), 2, pipes);
    return std::array{pipes[static_cast<size_t>(Pipe::kFp32)], pipes[static_cast<size_t>(Pipe::kInt)],
                      pipes[static_cast<size_t>(Pipe::kSpecial)]};
  };
  EXPECT_EQ(busy("ex2.approx.ftz.f32"), (std::array{0.0, 0.0, 2.0}));
  EXPECT_EQ(busy("ex2.approx.f32"), (std::array{4.0, 2.0, 2.0}));  // MUFU, FSETP and two FMUL
  EXPECT_EQ(busy("sin.approx.f32"), (std::array{2.0, 0.0, 2.0}));  // FMUL by 1 / 2 pi, and MUFU
  EXPECT_EQ(busy("div.approx.ftz.f32"), (std::array{2.0, 0.0, 2.0}));
  EXPECT_EQ(busy("cvt.rn.f32.s32"), (std::array{0.0, 0.0, 0.5}));
  EXPECT_EQ(busy("fma.rn.f32"), (std::array{2.0, 0.0, 0.0}));
  EXPECT_EQ(busy("div.rn.f32"), (std::array{16.0, 4.0, 2.0}));  // MUFU.RCP, then steps that refine it
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

// The way out of a loop is a branch in machine code too, though it skips little: loads behind it begin when it is known
// that it is not taken. (Short branches that skip no branch become predicates.)
TEST(Scoreboard, LoadsDoNotPassTheWayOutOfALoop) {
  Bench bench("counted");
  const DeviceAddress x = bench.Upload(NoiseVector(512), "x"), out = bench.Reserve<float>(32, "out");
  const LaunchResult result = bench.Run("SumStrided", Counted(32), x, out, 512);
  EXPECT_CLEAN(result);
  EXPECT_EQ(FromMemory(result.counts.latency.at(0).miss), 512 / 32);
}

}  // namespace
}  // namespace kgrpo::simt
