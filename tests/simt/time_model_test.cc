// The time model against a real H100, and its parts against their expected values.
#include <algorithm>
#include <cmath>

#include "harness.h"
#include "simt/simt.h"

namespace kgrpo::simt {
namespace {

// Time between two events around a launch beside the kernel's; see devices/h100.yaml.
constexpr double kEventMicroseconds = 4.4;

std::string DeviceFile() { return std::string(KGRPO_SOURCE_DIR) + "/plugins/interpreter/devices/h100.yaml"; }

struct Measured {
  std::string group, kernel;
  Dim3 grid, block;
  int n = 0;
  uint32_t dynamic_shared = 0;
  int registers = 0;
  double microseconds = 0;
};

std::vector<Measured> ReadMeasured() {
  std::ifstream file(std::string(KGRPO_SOURCE_DIR) + "/tests/simt/measured_h100.csv");
  std::vector<Measured> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> fields;
    std::stringstream text(line);
    for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
    Measured m;
    m.group = fields.at(0);
    m.kernel = fields.at(1);
    m.grid = {static_cast<uint32_t>(std::stoul(fields.at(2))), static_cast<uint32_t>(std::stoul(fields.at(3)))};
    m.block = {static_cast<uint32_t>(std::stoul(fields.at(4))), static_cast<uint32_t>(std::stoul(fields.at(5)))};
    m.n = std::stoi(fields.at(6));
    m.dynamic_shared = static_cast<uint32_t>(std::stoul(fields.at(7)));
    m.registers = std::stoi(fields.at(8));
    m.microseconds = std::stod(fields.at(9));
    all.push_back(m);
  }
  return all;
}

struct Modelled {
  TimeEstimate estimate;
  Counts counts;
};

Modelled Model(const Measured& m, const Device& device, uint64_t sample_seed = 0) {
  Bench bench("basic");
  const auto n = static_cast<size_t>(m.n);
  const bool square = m.kernel.starts_with("Matmul") || m.kernel.starts_with("Transpose");
  const size_t count = square ? n * n : m.kernel == "SoftmaxRow" ? n * m.grid.x : n;
  const size_t bytes = m.kernel.starts_with("Histogram") ? count : 4 * count;
  const DeviceAddress a = bench.memory.Allocate(bytes, "a"), b = bench.memory.Allocate(bytes, "b");
  const DeviceAddress out = bench.memory.Allocate(m.kernel.starts_with("Histogram") ? 1024
                                                  : m.kernel.starts_with("Reduce")  ? 4
                                                                                    : bytes,
                                                  "out");
  bench.memory.Poison(a, 0);
  bench.memory.Poison(b, 0);
  LaunchConfig config = Config(m.grid, m.block, Mode::kCounted, m.dynamic_shared);
  config.latencies = device.latencies;
  config.sampled_blocks = 12;
  config.sample_seed = sample_seed;
  const KernelInfo& info = bench.module->kernels()[static_cast<size_t>(bench.module->FindKernel(m.kernel))];
  KernelResources resources;
  resources.registers_per_thread = m.registers;
  resources.static_shared_bytes = info.static_shared_bytes;
  resources.dynamic_shared_bytes = m.dynamic_shared;
  config.l1_share = L1Share(device, resources, static_cast<uint32_t>(m.block.Count()), m.grid.Count());
  LaunchResult result;
  if (m.kernel == "HalfAxpy") {
    result = bench.Run(m.kernel, config, a, b, uint32_t{0x40004000}, m.n);
  } else if (m.kernel == "AddGridStride4") {
    result = bench.Run(m.kernel, config, a, b, out, m.n / 4);
  } else if (m.kernel == "Add" || m.kernel.starts_with("Matmul")) {
    result = bench.Run(m.kernel, config, a, b, out, m.n);
  } else if (m.kernel.starts_with("Transpose")) {
    result = bench.Run(m.kernel, config, a, out, m.n, m.n);
  } else {
    result = bench.Run(m.kernel, config, a, out, m.n);
  }
  EXPECT_CLEAN(result) << m.kernel;
  return {EstimateTime(result.counts, resources, device), result.counts};
}

TEST(TimeModel, OrdersKernelsAsAnH100Does) {
  const Device device = Device::Load(DeviceFile());
  const std::vector<Measured> measured = ReadMeasured();
  ASSERT_GE(measured.size(), 40u);
  std::vector<double> modelled, factors;
  for (const Measured& m : measured) {
    modelled.push_back(Model(m, device).estimate.seconds * 1e6 + kEventMicroseconds);
    factors.push_back(std::max(modelled.back() / m.microseconds, m.microseconds / modelled.back()));
    EXPECT_LT(factors.back(), 2.5) << m.group << " " << m.kernel << ": measured " << m.microseconds << " us, modelled "
                                   << modelled.back();
  }
  int pairs = 0, correct = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double a = measured[i].microseconds, b = measured[j].microseconds;
      if (measured[i].group != measured[j].group || std::max(a / b, b / a) <= 1.1) continue;
      ++pairs;
      correct += (a < b) == (modelled[i] < modelled[j]);
    }
  }
  std::sort(factors.begin(), factors.end());
  RecordProperty("pairs", pairs);
  RecordProperty("correct", correct);
  EXPECT_GE(pairs, 40);
  EXPECT_GE(correct, 0.93 * pairs) << correct << " of " << pairs;
  EXPECT_LT(factors[factors.size() / 2], 1.2);
  EXPECT_LT(factors[factors.size() * 9 / 10], 1.7);
}

const Measured& Find(const std::vector<Measured>& all, const std::string& group, const std::string& kernel) {
  for (const Measured& m : all) {
    if (m.group == group && m.kernel == kernel) return m;
  }
  throw std::runtime_error(group + " " + kernel);
}

TEST(TimeModel, SaysWhatBinds) {
  const Device device = Device::Load(DeviceFile());
  const auto all = ReadMeasured();
  const auto transpose = Model(Find(all, "transpose 4096", "TransposeTile"), device);
  EXPECT_EQ(transpose.estimate.bound, "shared") << transpose.estimate.sentence;
  EXPECT_NEAR(transpose.counts.shared_wavefronts / transpose.counts.shared_requests, 16.5, 0.1);  // stores 1, loads 32
  const auto padded = Model(Find(all, "transpose 4096", "TransposePadded"), device);
  EXPECT_EQ(padded.estimate.bound, "dram") << padded.estimate.sentence;
  EXPECT_DOUBLE_EQ(padded.counts.shared_wavefronts, padded.counts.shared_requests);
  EXPECT_NEAR(padded.estimate.dram_bytes, 2.0 * 4096 * 4096 * 4, 1e5);
  const auto naive = Model(Find(all, "transpose 4096", "TransposeNaive"), device);
  EXPECT_NE(naive.estimate.sentence.find("(stores of out: "), std::string::npos) << naive.estimate.sentence;
  EXPECT_NE(naive.estimate.sentence.find("store neighbouring 16 bytes of out: about "), std::string::npos)
      << naive.estimate.sentence;
  EXPECT_EQ(padded.estimate.sentence.find("times as fast"), std::string::npos) << padded.estimate.sentence;
  const auto histogram = Model(Find(all, "Hist 1048576", "HistogramGlobal"), device);
  EXPECT_EQ(histogram.estimate.bound, "atomics") << histogram.estimate.sentence;
  // All zeros: the 32 lanes of each warp meet at one address.
  EXPECT_NEAR(histogram.counts.busiest_atomic_turns, 1048576, 1);
}

// 132 blocks that each read 4 MB from the L2 tile by tile, measured on an H100 on 2026-11-26 (medians of 15 calls).
TEST(TimeModel, FetchingAheadCostsWhatAnH100Takes) {
  struct Pipelined {
    const char* kernel;
    uint32_t stages;
    double microseconds;
  };
  constexpr int kTiles = 256;
  const Device device = Device::Load(DeviceFile());
  std::vector<Pipelined> all = {{"TilesOneStage", 1, 214.3},
                                {"TilesTwoStages", 2, 156.2},
                                {"TilesByRegisters", 1, 146.5},
                                {"TilesByMbarriers", 2, 134.3},
                                {"TilesThreeStages", 3, 103.2}};
  std::vector<double> modelled;
  for (const Pipelined& p : all) {
    Bench bench("pipelined");
    const DeviceAddress x = bench.Reserve<float>(size_t{kTiles} * 4096, "x"), y = bench.Reserve<float>(132, "y");
    bench.memory.Poison(x, 0);
    const KernelResources resources = {32, 1024, p.stages * 16384, 0};
    LaunchConfig config = Config({132}, {256}, Mode::kCounted, resources.dynamic_shared_bytes);
    config.sampled_blocks = 2;
    config.latencies = LatenciesOf(device, ComputeOccupancy(device, resources, 256), 8, 132);
    config.l1_share = L1Share(device, resources, 256, 132);
    const LaunchResult result = bench.Run(p.kernel, config, x, y, kTiles);
    EXPECT_CLEAN(result) << p.kernel;
    EXPECT_EQ(result.counts.shared_atomic_wavefronts, 0) << p.kernel;  // arrivals at mbarriers are not atomics
    modelled.push_back(EstimateTime(result.counts, resources, device).seconds * 1e6);
    EXPECT_LT(std::max(modelled.back() / p.microseconds, p.microseconds / modelled.back()), 1.3)
        << p.kernel << ": measured " << p.microseconds << " us, modelled " << modelled.back();
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (all[j].microseconds > 1.2 * all[i].microseconds) {
        EXPECT_GT(modelled[j], modelled[i]) << all[j].kernel << " " << all[i].kernel;
      }
    }
  }
}

TEST(TimeModel, SamplingMovesLittle) {
  const Device device = Device::Load(DeviceFile());
  const auto all = ReadMeasured();
  const Measured& m = Find(all, "matmul 512", "MatmulTiled16");
  const double a = Model(m, device, 0).estimate.seconds, b = Model(m, device, 1).estimate.seconds;
  EXPECT_NEAR(a / b, 1, 0.03);
  EXPECT_EQ(a, Model(m, device, 0).estimate.seconds);  // and the same sample gives the same time
}

TEST(TimeModel, Occupancy) {
  const Device device = Device::Load(DeviceFile());
  auto blocks = [&](int registers, uint32_t shared, uint32_t threads) {
    return ComputeOccupancy(device, {registers, shared, 0, 0}, threads).blocks_per_multiprocessor;
  };
  // from NVIDIA's occupancy rules for compute capability 9.0
  EXPECT_EQ(blocks(32, 0, 256), 8);
  EXPECT_EQ(blocks(33, 0, 256), 6);
  EXPECT_EQ(blocks(64, 0, 256), 4);
  EXPECT_EQ(blocks(128, 0, 256), 2);
  EXPECT_EQ(blocks(32, 0, 32), 32);
  EXPECT_EQ(blocks(32, 48 * 1024, 128), 4);
  EXPECT_EQ(blocks(32, 100 * 1024, 128), 2);
  EXPECT_EQ(blocks(32, 227 * 1024, 128), 1);
  EXPECT_EQ(blocks(32, 228 * 1024, 128), 0);
  EXPECT_EQ(blocks(255, 0, 1024), 0);
  Counts counts;
  counts.threads_per_block = 1024;
  counts.sampled_blocks = counts.grid_blocks = 1;
  const TimeEstimate estimate = EstimateTime(counts, {255, 0, 0, 0}, device);
  EXPECT_TRUE(std::isinf(estimate.seconds));
  EXPECT_EQ(estimate.sentence, "does not fit on the device: a block needs more registers than a multiprocessor has");
}

TEST(TimeModel, DeviceFilesAreChecked) {
  auto message = [](const std::string& text) {
    const std::string path = testing::TempDir() + "/device.yaml";
    std::ofstream(path) << text;
    try {
      Device::Load(path);
    } catch (const std::exception& error) {
      return std::string(error.what()).substr(path.size());
    }
    return std::string();
  };
  std::ifstream file(DeviceFile());
  std::stringstream whole;
  whole << file.rdbuf();
  EXPECT_EQ(message(whole.str()), "");
  EXPECT_EQ(message(whole.str() + "\nwarp_size: 32\n").substr(0, 1), ":");
  EXPECT_NE(message(whole.str() + "\nwarp_size: 32\n").find("unknown field 'warp_size'"), std::string::npos);
  EXPECT_EQ(message("name: x\nmultiprocessors: many\n"), ":2: field 'multiprocessors' must be a positive number");
  EXPECT_EQ(message("name: x\n"), ":1: field 'multiprocessors' is missing");
  EXPECT_THROW(Device::Load("/nonexistent.yaml"), std::exception);
}

// Of a launch of a block a multiprocessor that does nothing.
Counts Bare() {
  Counts counts;
  counts.grid_blocks = counts.sampled_blocks = 132;
  counts.threads_per_block = 256;
  counts.warps_per_block = 8;
  return counts;
}

// A sector that a launch leaves partly written is read from DRAM before it is written there; one that it fills is not.
TEST(TimeModel, FillsPartlyWrittenSectorsFromDram) {
  Bench bench("counted");
  const DeviceAddress out = bench.Reserve<float>(256, "out");
  const Device device = Device::Load(DeviceFile());
  const auto moved = [&](const char* kernel) {
    LaunchConfig config = Config({1}, {32}, Mode::kCounted);
    config.l1_share = 1 << 16;
    const LaunchResult result = bench.Run(kernel, config, out);
    EXPECT_CLEAN(result);
    return EstimateTime(result.counts, {32}, device).dram_bytes;
  };
  EXPECT_EQ(moved("StoreEight"), 1024);
  EXPECT_EQ(moved("StoreEighths"), 2 * 1024);
}

// Blocks that meet at many barriers drift apart, so that one computes while another waits.
TEST(TimeModel, ManyBarriersMixTheResources) {
  Counts counts = Bare();
  counts.issued = counts.shared_wavefronts = counts.shared_ideal_wavefronts = 1e9;
  counts.barriers = static_cast<double>(counts.sampled_blocks * counts.warps_per_block);
  const Device device = Device::Load(DeviceFile());
  const TimeEstimate few = EstimateTime(counts, {32}, device);
  counts.barriers *= 512;
  const TimeEstimate many = EstimateTime(counts, {32}, device);
  EXPECT_GT(many.norm, few.norm);
  EXPECT_LT(many.seconds, few.seconds);
}

// A kernel that does little but shuffle is told so.
TEST(TimeModel, NamesShufflesThatBindIt) {
  Counts counts = Bare();
  counts.exchange_wavefronts = 1e9;
  const Device device = Device::Load(DeviceFile());
  const TimeEstimate estimate = EstimateTime(counts, {32}, device);
  EXPECT_EQ(estimate.bound, "shared");
  EXPECT_EQ(estimate.sentence.find("bound by shuffles"), 0u) << estimate.sentence;
  counts.shared_requests = counts.shared_wavefronts = counts.shared_ideal_wavefronts = 2e9;
  EXPECT_EQ(EstimateTime(counts, {32}, device).sentence.find("bound by the number of shared memory accesses"), 0u);
  counts.shared_wavefronts = 4e9;
  EXPECT_EQ(EstimateTime(counts, {32}, device).sentence.find("bound by shared memory: 2.0 cycles"), 0u);
}

// Atomics that wait for one unit of the L2 are told from those that are many.
TEST(TimeModel, SaysWhatAtomicsWaitFor) {
  Counts counts = Bare();
  counts.global_atomic_operations = 1e9;
  const Device device = Device::Load(DeviceFile());
  const auto says = [&] { return EstimateTime(counts, {32}, device).sentence; };
  EXPECT_EQ(says().find("bound by the number of atomic operations"), 0u) << says();
  counts.busiest_atomic_turns = 1e9;
  EXPECT_EQ(says().find("bound by atomic operations on the same addresses"), 0u) << says();
}

}  // namespace
}  // namespace kgrpo::simt
