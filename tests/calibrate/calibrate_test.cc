// Results that the calibration computes from measurements: figures of agreement, fitted parameters, the device's file.
#include "calibrate/accuracy.h"
#include "calibrate/counted_kernel.h"
#include "calibrate/device_file.h"
#include "calibrate/fit.h"
#include "test.h"

namespace kgrpo::bench {
namespace {

std::string DeviceFile() { return std::string(KGRPO_SOURCE_DIR) + "/plugins/interpreter/devices/h100.yaml"; }

TEST(Accuracy, CountsPairsWithinAProblem) {
  // a: 1 < 2 < 4 predicted 1, 4, 2: two of three pairs correct; b: one pair, 5% apart, wrong; none between a and b.
  const Accuracy accuracy = Compare({{"a", 1, 1}, {"a", 2, 4}, {"a", 4, 2}, {"b", 1.00, 2.0}, {"b", 1.05, 1.9}});
  EXPECT_EQ(accuracy.pairs, 4u);
  EXPECT_EQ(accuracy.pairs_correct, 2u);
  EXPECT_EQ(accuracy.apart, 3u);
  EXPECT_EQ(accuracy.apart_correct, 2u);
  EXPECT_NEAR(accuracy.tau, (1.0 / 3 - 1) / 2, 1e-12);
  EXPECT_NEAR(accuracy.tau_beyond_noise, (1.0 / 3 - 1) / 2, 1e-12);
  // 2% apart may be noise: that pair is left out.
  EXPECT_NEAR(Compare({{"a", 1, 1}, {"a", 1.02, 0.9}, {"a", 2, 2}}).tau, 1.0 / 3, 1e-12);
  EXPECT_NEAR(Compare({{"a", 1, 1}, {"a", 1.02, 0.9}, {"a", 2, 2}}).tau_beyond_noise, 1, 1e-12);
  EXPECT_NEAR(accuracy.median_factor, 2, 0.01);  // 1, 1.81, 2, 2, 2
}

TEST(MeasuredKernels, HaveTheMedianOfTheirTimesAndWereAlwaysCorrect) {
  const std::string path = testing::TempDir() + "kgrpo_measured_kernels.csv";
  std::ofstream(path) << "problem,schedule,verdict,microseconds\na,map,correct,12\na,rows,correct,5\nb,map,right,1\n"
                         "c,map,correct,3\nc,map,wrong,\na,map,correct,10\na,rows,correct,6\na,map,correct,99\n";
  // "right" is the earlier word for "correct".
  const std::vector<MeasuredKernel> kernels = ReadMeasured(path);
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].problem + " " + kernels[0].schedule, "a map");
  EXPECT_EQ(kernels[0].microseconds, 12);
  EXPECT_EQ(kernels[1].microseconds, 5.5);
  EXPECT_EQ(kernels[2].problem, "b");
  std::filesystem::remove(path);
}

TEST(DeviceFile, HasItsValuesReplacedAndNothingElse) {
  const std::string text = "# A device.\nname: x\nnorm: 4                # E\nclock_hz: 2e9 # A\n";
  EXPECT_EQ(WithValues(text, {{"norm", {3.25, "measured"}}}),
            "# A device.\nname: x\nnorm: 3.25                                # measured\nclock_hz: 2e9 # A\n");
  EXPECT_ANY_THROW(WithValues(text, {{"nom", {3, "measured"}}}));
}

TEST(DeviceFile, CanBeLoadedAfterwards) {
  std::ostringstream text;
  text << std::ifstream(DeviceFile()).rdbuf();
  const std::string path = testing::TempDir() + "/fitted.yaml";
  std::ofstream(path) << WithValues(text.str(), {{"dram_latency", {812.5, "measured"}}});
  EXPECT_DOUBLE_EQ(simt::Device::Load(path).latencies.dram, 812.5);
}

// Kernels that stream more and more bytes, "measured" on a device with less of its bandwidth reached.
std::vector<CountedKernel> Streams(const simt::Device& truth) {
  std::vector<CountedKernel> kernels;
  for (int i = 1; i <= 12; ++i) {
    CountedKernel kernel;
    kernel.problem = kernel.family = i % 2 == 0 ? "even" : "odd";
    simt::Counts counts;
    counts.grid_blocks = counts.sampled_blocks = 16 * 1056;  // generations enough for DRAM alone to bind
    counts.threads_per_block = 256;
    counts.warps_per_block = 8;
    simt::ArrayTraffic array;
    array.bytes = static_cast<uint64_t>(i) << 24;
    array.load_sectors = array.load_ideal_sectors = array.unique_load_sectors = static_cast<double>(array.bytes) / 32;
    array.l1_miss_sectors.fill(array.load_sectors);
    counts.arrays.push_back(array);
    kernel.counts.push_back(counts);
    kernel.resources.push_back({});
    kernel.measured = kernel.Predict(truth);
    kernels.push_back(kernel);
  }
  return kernels;
}

TEST(Fit, FindsTheBandwidthThatKernelsReached) {
  const simt::Device start = simt::Device::Load(DeviceFile());
  simt::Device truth = start;
  truth.dram_efficiency = 0.7;
  const std::vector<CountedKernel> kernels = Streams(truth);
  std::vector<const CountedKernel*> all;
  for (const CountedKernel& kernel : kernels) all.push_back(&kernel);
  EXPECT_GT(Compare(Predict({start, 0}, all)).median_factor, 1.1);
  const Fitted fitted = Fit(start, 0, false, {}, all, 20);
  EXPECT_NEAR(fitted.device.dram_efficiency, 0.7, 0.04);
  EXPECT_LT(Compare(Predict(fitted, all)).percentile_90_factor, 1.04);
  // Parameters fitted to one family of kernels hold for the other.
  EXPECT_LT(Compare(CrossValidate(start, 0, false, {}, kernels, 2, 20)).percentile_90_factor, 1.04);
}

TEST(Sample, IsSpreadOverEachProblem) {
  std::vector<MeasuredKernel> all;
  for (int i = 0; i < 10; ++i) all.push_back({"p", std::to_string(i), 1});
  all.push_back({"q", "only", 1});
  const std::vector<MeasuredKernel> sample = Sample(all, 5);
  ASSERT_EQ(sample.size(), 6u);
  EXPECT_EQ(sample[1].schedule, "2");
  EXPECT_EQ(sample[4].schedule, "8");
  EXPECT_EQ(Sample(all, 0).size(), 11u);
}

}  // namespace
}  // namespace kgrpo::bench
