// evaluator_cuda/occupancy.h against NVIDIA's occupancy calculator for compute capability 9.0.
#include "evaluator_cuda/occupancy.h"

#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr Multiprocessor kH100 = {2048, 32, 65536, 233472, 1024};

TEST(OccupancyTest, EachResourceMayBeShort) {
  const ResidentBlocks registers = CountResidentBlocks(kH100, {256, 128, 0});
  EXPECT_EQ(registers.by_registers, 2u);
  EXPECT_EQ(registers.by_threads, 8u);
  EXPECT_EQ(registers.Least(), 2u);
  EXPECT_EQ(registers.limit, "registers");

  const ResidentBlocks shared = CountResidentBlocks(kH100, {128, 32, 48 << 10});
  EXPECT_EQ(shared.by_shared_memory, 4u);  // 49 KiB each, of 228
  EXPECT_EQ(shared.limit, "shared memory");

  const ResidentBlocks threads = CountResidentBlocks(kH100, {768, 32, 0});
  EXPECT_EQ(threads.by_threads, 2u);
  EXPECT_EQ(threads.by_registers, 2u);
  EXPECT_EQ(threads.limit, "registers and threads");
  EXPECT_EQ(CountResidentBlocks(kH100, {768, 24, 0}).limit, "threads");

  const ResidentBlocks blocks = CountResidentBlocks(kH100, {32, 16, 0});
  EXPECT_EQ(blocks.Least(), 32u);
  EXPECT_EQ(blocks.limit, "blocks");
}

TEST(OccupancyTest, RoundsAsTheHardwareDoes) {
  // 33 threads are two warps; 33 registers a thread are 1280 a warp, of which 12 fit into a partition's 16384.
  const ResidentBlocks odd = CountResidentBlocks(kH100, {33, 33, 1});
  EXPECT_EQ(odd.by_threads, 32u);
  EXPECT_EQ(odd.by_registers, 24u);
  EXPECT_EQ(odd.by_shared_memory, 202u);  // 1152 bytes
  // 255 registers: two warps a partition.
  EXPECT_EQ(CountResidentBlocks(kH100, {256, 255, 0}).by_registers, 1u);
  EXPECT_EQ(CountResidentBlocks(kH100, {1024, 255, 0}).by_registers, 0u) << "cannot be launched at all";
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
