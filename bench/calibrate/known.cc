#include "calibrate/known.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "calibrate/fit.h"

namespace kgrpo::bench {
namespace {

constexpr double kSamePlace = 1e-9;

class Measurements {
 public:
  explicit Measurements(const std::vector<Micro>& all) : all_(all) {}
  // NaN if it was not measured: comparisons with it are false, so nothing is derived from it.
  double At(const std::string& name, double at) const {
    for (const Micro& micro : all_) {
      if (micro.name == name && std::abs(micro.at - at) < kSamePlace) return micro.value;
    }
    return NAN;
  }
  double Most(const std::string& name) const {
    double most = NAN;
    for (const Micro& micro : all_) {
      if (micro.name == name && !(micro.value <= most)) most = micro.value;
    }
    return most;
  }
  // Growth of `value` for each step of `at`, between two points.
  double Slope(const std::string& name, double from, double to) const {
    return (At(name, to) - At(name, from)) / (to - from);
  }

 private:
  const std::vector<Micro>& all_;
};

}  // namespace

std::vector<Micro> ReadMicro(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(KGRPO_ERROR_NOT_FOUND, path + ": cannot be read");
  std::vector<Micro> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream text(line);
    Micro micro;
    std::string at, value;
    if (line.starts_with("name,") || !std::getline(text, micro.name, ',') || !std::getline(text, at, ',') ||
        !std::getline(text, value, ',') || !std::getline(text, micro.unit))
      continue;
    micro.at = std::stod(at);
    micro.value = std::stod(value);
    all.push_back(micro);
  }
  return all;
}

std::map<std::string, NewValue> KnownFrom(const std::vector<Micro>& measured, const simt::Device& device,
                                          const std::string& source) {
  const Measurements m(measured);
  std::map<std::string, NewValue> known;
  // Drops values that no device can have: the microbenchmark went wrong.
  const auto add = [&](const std::string& name, double value, double least, double most) {
    if (value >= least && value <= most) known[name] = {value, source};
  };
  add("clock_hz", m.At("clock", 0) * 1e6, 5e8, 4e9);
  add("dram_efficiency", m.At("dram_copy", 1024) * 1e9 / device.dram_bytes_per_second, 0.5, 1);
  add("l2_sectors_per_cycle", m.Most("l2_read"), 10, 500);
  // Cost of writing four bytes to each sector, relative to whole sectors.
  add("l2_partial_store", m.At("l2_stride_write", 1) / m.At("l2_stride_write", 8), 1, 20);
  add("alu_latency", m.At("fp32_latency", 0), 2, 10);
  add("fp64_latency", m.At("fp64_latency", 0), 2, 100);
  add("special_latency", m.At("special_latency", 0), 8, 60);
  add("shuffle_latency", m.At("shuffle_latency", 0), 8, 60);
  add("shared_latency", m.At("shared_latency", 0), 10, 60);
  add("l1_latency", m.At("l1_latency", 16), 15, 100);
  add("l2_latency", m.At("l2_latency", 4096), 100, 800);
  add("dram_latency", m.At("dram_latency", 128 * 1024), 300, 2000);
  add("barrier_warp_cycles", m.Slope("barrier_latency", 4, 32), 0.05, 20);
  add("barrier_latency", m.At("barrier_latency", 4) - 4 * m.Slope("barrier_latency", 4, 32), 4, 100);
  add("fp64_rate", m.At("fp64_rate", 0), 0.02, 4);
  add("half_rate", m.At("half_rate", 0), 0.5, 8);
  add("special_rate", m.At("special_rate", 0), 0.1, 2);
  add("tensor_flops_per_cycle", m.At("tensor", 0), 100, 20000);
  // A conflict of n ways costs 1 + (n - 1) c.
  add("shared_conflict_cycles", m.Slope("shared_conflict", 4, 32), 0.5, 4);
  add("l1_lines_per_cycle", 1 / m.Slope("l1_lines", 4, 32), 0.1, 4);
  // All lanes at one address.
  add("atomic_turn_cycles", m.At("atomic_one_sector", 1) / 32, 0.1, 100);
  add("l2_atomics_per_cycle", 32 / m.At("atomic_spread", 32), 1, 400);
  add("blocks_per_cycle", m.At("blocks_per_cycle", 128), 0.05, 10);
  return known;
}

void SetField(simt::Device& device, const std::string& name, double value) {
  if (name == "clock_hz") {
    device.clock_hz = value;
  } else if (name == "fp64_rate") {
    device.fp64_rate = value;
  } else if (name == "half_rate") {
    device.half_rate = value;
  } else if (name == "fp64_latency") {
    device.latencies.fp64 = value;
  } else {
    for (const FitParameter& parameter : FitParameters()) {
      if (parameter.name != name) continue;
      parameter.Of(device) = value;
      return;
    }
    throw Error(KGRPO_ERROR_INVALID, "no microbenchmark determines the field '" + name + "'");
  }
}

}  // namespace kgrpo::bench
