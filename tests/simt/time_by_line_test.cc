// Time by source line: a launch's time is attributed to the lines that take it, and the parts sum to the whole.
#include <cmath>
#include <fstream>
#include <numeric>

#include "harness.h"
#include "simt/simt.h"
#include "simt/time/time_by_line.h"

namespace kgrpo::simt {
namespace {

constexpr uint32_t kSide = 1024;

struct ModelledLines {
  Counts counts;
  TimeEstimate estimate;
  std::vector<LineTime> lines;
};

class TimeByLineTest : public testing::Test {
 protected:
  // A kernel over kSide x kSide floats: two or three arrays, then the sides' length as often as the kernel asks.
  template <typename... Sizes>
  ModelledLines Model(const std::string& kernel, int arrays, Dim3 grid, Dim3 block, Sizes... sizes) {
    Bench bench("basic");
    const size_t count = size_t{kSide} * kSide;
    const DeviceAddress a = bench.Reserve<float>(count, "a"), b = bench.Reserve<float>(count, "b"),
                        out = bench.Reserve<float>(count, "out");
    bench.memory.Poison(a, 0);
    bench.memory.Poison(b, 0);
    LaunchConfig config = Config(grid, block, Mode::kCounted);
    config.latencies = device_.latencies;
    config.sampled_blocks = 12;
    LaunchResult result =
        arrays == 3 ? bench.Run(kernel, config, a, b, out, sizes...) : bench.Run(kernel, config, a, out, sizes...);
    EXPECT_CLEAN(result) << kernel;
    ModelledLines modelled;
    modelled.counts = result.counts;
    modelled.estimate = EstimateTime(result.counts, {}, device_);
    modelled.lines = TimeByLine(result.counts, modelled.estimate, device_);
    return modelled;
  }

  static std::string TextOf(const LineTime& line) {
    EXPECT_NE(line.file.find("basic.cu"), std::string::npos) << line.file;
    std::ifstream file(std::string(KGRPO_SOURCE_DIR) + "/tests/simt/kernels/basic.cu");
    std::string text;
    for (int i = 0; i < line.line; ++i) std::getline(file, text);
    return text;
  }

  const Device device_ = Device::Load(std::string(KGRPO_SOURCE_DIR) + "/plugins/interpreter/devices/h100.yaml");
};

TEST_F(TimeByLineTest, NamesTheExpensiveLine) {
  const ModelledLines matmul = Model("MatmulNaive", 3, {32, 32}, {32, 32}, int{kSide});
  ASSERT_FALSE(matmul.lines.empty());
  EXPECT_NE(TextOf(matmul.lines[0]).find("sum += a[row * n + k]"), std::string::npos) << TextOf(matmul.lines[0]);
  EXPECT_GT(matmul.lines[0].seconds, 0.8 * matmul.estimate.seconds);

  const ModelledLines conflicts = Model("TransposeTile", 2, {32, 32}, {32, 8}, int{kSide}, int{kSide});
  ASSERT_FALSE(conflicts.lines.empty());
  EXPECT_EQ(conflicts.lines[0].bound, "shared");
  EXPECT_NE(TextOf(conflicts.lines[0]).find("= tile[threadIdx.x]"), std::string::npos) << TextOf(conflicts.lines[0]);

  const ModelledLines stores = Model("TransposeNaive", 2, {32, 32}, {32, 8}, int{kSide}, int{kSide});
  ASSERT_FALSE(stores.lines.empty());
  EXPECT_EQ(stores.lines[0].bound, "l2");
  EXPECT_NE(TextOf(stores.lines[0]).find("out[x * rows"), std::string::npos) << TextOf(stores.lines[0]);
}

// A block of 32 warps would keep the L1 busy by itself.
TEST_F(TimeByLineTest, OneWarpWaitsForWhatItLoads) {
  const ModelledLines modelled = Model("MatmulNaive", 3, {1, 1}, {32, 1}, int{kSide});
  ASSERT_FALSE(modelled.lines.empty());
  EXPECT_EQ(modelled.lines[0].bound, "latency");
  EXPECT_NE(TextOf(modelled.lines[0]).find("sum += a[row * n + k]"), std::string::npos);
}

// All but the launch and what counts blocks is given to lines.
TEST_F(TimeByLineTest, LosesNothing) {
  const ModelledLines all[] = {Model("MatmulNaive", 3, {32, 32}, {32, 32}, int{kSide}),
                               Model("MatmulRegister", 3, {16, 16}, {16, 16}, int{kSide}),
                               Model("TransposePadded", 2, {32, 32}, {32, 8}, int{kSide}, int{kSide})};
  for (const ModelledLines& modelled : all) {
    SCOPED_TRACE(modelled.counts.kernel);
    const auto sum = [&](double Demand::*figure) {
      double total = 0;
      for (const LineDemand& line : modelled.counts.lines) total += line.*figure;
      return total;
    };
    const Counts& counts = modelled.counts;
    EXPECT_DOUBLE_EQ(sum(&Demand::issued) - counts.merged_loads, counts.issued);
    EXPECT_DOUBLE_EQ(sum(&Demand::l1_wavefronts), counts.l1_wavefronts);
    EXPECT_DOUBLE_EQ(sum(&Demand::shared_wavefronts), counts.shared_wavefronts);
    EXPECT_DOUBLE_EQ(sum(&Demand::shared_ideal_wavefronts), counts.shared_ideal_wavefronts);
    double sectors = 0, chain = 0, seconds = 0, powers = 0, of_blocks = 0, waited = 0;
    for (const ArrayTraffic& array : counts.arrays) sectors += array.load_sectors + array.store_sectors;
    EXPECT_DOUBLE_EQ(sum(&Demand::sectors), sectors);
    for (const LineDemand& line : counts.lines) chain += line.chain;
    EXPECT_GT(chain, 0);
    for (const TimeTerm& term : modelled.estimate.terms) {
      const double power = std::pow(term.seconds, modelled.estimate.norm);
      if (term.name == "blocks") of_blocks = power;
      if (term.name == "latency") waited = std::pow(term.seconds, modelled.estimate.latency_norm);
      if (term.name != "launch" && term.name != "latency") powers += power;
    }
    for (const LineTime& line : modelled.lines) seconds += line.seconds;
    const double busy = std::pow(powers, modelled.estimate.latency_norm / modelled.estimate.norm);
    const double expected = (modelled.estimate.seconds - modelled.estimate.launch_seconds) *
                            (1 - of_blocks / powers * busy / (busy + waited));
    EXPECT_NEAR(seconds, expected, 1e-9 * expected);
  }
}

}  // namespace
}  // namespace kgrpo::simt
