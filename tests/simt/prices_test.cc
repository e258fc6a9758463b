// What the time model has own prices for, against an H200 (bench/results/h200_prices.csv), and that nothing is left
// out.
#include <filesystem>
#include <regex>
#include <set>

#include "harness.h"
#include "simt/lower/cost.h"
#include "simt/simt.h"

namespace kgrpo::simt {
namespace {

Device H200() { return Device::Load(std::string(KGRPO_SOURCE_DIR) + "/plugins/interpreter/devices/h200.yaml"); }

TimeEstimate Model(const std::string& kernel, uint32_t blocks, uint32_t threads) {
  const Device device = H200();
  Bench bench("prices");
  LaunchConfig config = Config({blocks}, {threads}, Mode::kCounted);
  const KernelResources resources{32, 0, 0, 0};
  const Occupancy occupancy = ComputeOccupancy(device, resources, threads);
  config.latencies = LatenciesOf(device, occupancy, (threads + 31) / 32, blocks);
  config.l1_share = L1Share(device, resources, threads, blocks);
  config.multiprocessors = static_cast<uint32_t>(device.multiprocessors);
  config.resident_blocks = static_cast<uint32_t>(occupancy.blocks_per_multiprocessor * device.multiprocessors);
  config.cooperative = kernel == "GridSync";
  const DeviceAddress out = bench.Reserve<float>(size_t{blocks} * threads, "out");
  const LaunchResult result = bench.Run(kernel, config, out);
  EXPECT_CLEAN(result);
  EXPECT_EQ(result.counts.unpriced, 0) << kernel;
  return EstimateTime(result.counts, resources, device);
}

struct Measured {
  const char* kernel;
  uint32_t blocks, threads;
  double microseconds;
};

class Prices : public testing::TestWithParam<Measured> {};

TEST_P(Prices, AreThoseOfAnH200WithinAFactorOfOneAndAHalf) {
  const Measured& measured = GetParam();
  const TimeEstimate estimate = Model(measured.kernel, measured.blocks, measured.threads);
  const double factor = estimate.seconds * 1e6 / measured.microseconds;
  EXPECT_GT(factor, 1 / 1.5) << estimate.seconds * 1e6 << " us: " << estimate.sentence;
  EXPECT_LT(factor, 1.5) << estimate.seconds * 1e6 << " us: " << estimate.sentence;
}

INSTANTIATE_TEST_SUITE_P(Waiting, Prices,
                         testing::Values(Measured{"ChainOfFences", 1024, 32, 981},
                                         Measured{"ChainOfFlags", 1024, 32, 434},
                                         Measured{"ChainOfReleases", 1024, 32, 696}, Measured{"Lock", 132, 32, 122},
                                         Measured{"Lock", 528, 32, 515}, Measured{"Swap", 512, 32, 35300},
                                         Measured{"Swap", 64, 256, 28500}, Measured{"Swap", 32, 32, 348},
                                         Measured{"Tickets", 1056, 32, 1178}, Measured{"GridSync", 528, 256, 132},
                                         Measured{"GridSync", 132, 1024, 111}));
INSTANTIATE_TEST_SUITE_P(FencesAndSleeps, Prices,
                         testing::Values(Measured{"FencesOfBlock", 1056, 256, 31},
                                         Measured{"FencesOfDevice", 1056, 256, 51},
                                         Measured{"FencesOfDevice", 1, 32, 18},
                                         Measured{"FencesOfSystem", 1056, 256, 77}, Measured{"Sleep", 264, 256, 72}));
INSTANTIATE_TEST_SUITE_P(Memory, Prices,
                         testing::Values(Measured{"LocalTogether", 1056, 256, 164},
                                         Measured{"LocalApart", 1056, 256, 3975},
                                         Measured{"LocalTogether", 132, 256, 28}, Measured{"LocalApart", 132, 256, 328},
                                         Measured{"ConstantsOfAWord", 528, 512, 21},
                                         Measured{"ConstantsOf16Words", 528, 512, 1077},
                                         Measured{"ConstantsOf32Words", 528, 512, 2706}));
INSTANTIATE_TEST_SUITE_P(Operations, Prices,
                         testing::Values(Measured{"Switch", 528, 512, 520}, Measured{"Switch", 1, 32, 158},
                                         Measured{"MatchLanes", 528, 512, 532}, Measured{"Redux", 528, 512, 20},
                                         Measured{"DoubleProducts", 528, 256, 71},
                                         Measured{"ByteProducts", 528, 256, 12}));

// Every base that the sources of the interpreter name.
TEST(Prices, EveryInstructionHasASource) {
  const std::regex names("base == \"([a-z0-9_]+)\"");
  std::set<std::string> without;
  size_t bases = 0;
  for (const char* folder : {"lower", "ops", "alu"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(KGRPO_SOURCE_DIR) + "/plugins/simt/" + folder)) {
      std::ifstream file(entry.path());
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      for (std::sregex_iterator it(text.begin(), text.end(), names), end; it != end; ++it) {
        ++bases;
        if (PriceSource((*it)[1].str()).empty()) without.insert((*it)[1].str());
      }
    }
  }
  EXPECT_GT(bases, 200u);
  EXPECT_EQ(without, std::set<std::string>()) << "give each a row of kSources in simt/lower/cost.cc";
}

TEST(Prices, AnInstructionThatNobodyMeasuredHasNone) {
  EXPECT_FALSE(CostOf(Opcode("later.b32")).priced);
  EXPECT_TRUE(CostOf(Opcode("add.u32")).priced);
}

}  // namespace
}  // namespace kgrpo::simt
