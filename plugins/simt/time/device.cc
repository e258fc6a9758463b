// Reads a device file and computes occupancy.
#include <kgrpo/sdk/error.h>
#include <kgrpo/support/yaml.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "simt/time/time_model.h"

namespace kgrpo::simt {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::ifstream stream(path);
    std::ostringstream text;
    text << stream.rdbuf();
    if (!stream)
      throw Error(KGRPO_ERROR_NOT_FOUND,
                  path + ": cannot be read; a device is described by a YAML file such as devices/h100.yaml");
    const YamlFile file = ReadYaml(text.str());
    if (file.error) Fail(file.error->at, file.error->message);
    if (!file.documents.empty()) root_ = file.documents[0];
    if (!root_.IsMapping()) Fail({1, 1}, "expected a mapping of fields");
  }

  const YamlNode& Field(const std::string& name) {
    known_.insert(name);
    const YamlNode* node = root_.Get(name);
    if (node == nullptr) Fail({1, 1}, "field '" + name + "' is missing");
    return *node;
  }
  void Get(const std::string& name, std::string& value) { value = Field(name).value; }
  void Get(const std::string& name, double& value) {
    const YamlNode& node = Field(name);
    value = ReadNumber(node).value_or(YamlNumber()).real;
    if (!(value > 0) || !std::isfinite(value)) Fail(node.at, "field '" + name + "' must be a positive number");
  }
  template <typename T>
  void GetInteger(const std::string& name, T& value) {
    double number = 0;
    Get(name, number);
    if (number != std::floor(number) || number > 2e9)
      Fail(Field(name).at, "field '" + name + "' must be a whole number");
    value = static_cast<T>(number);
  }
  void Finish() {
    for (const YamlNode& key : root_.keys) {
      if (!known_.contains(key.value)) Fail(key.at, "unknown field '" + key.value + "'");
    }
  }

 private:
  [[noreturn]] void Fail(const YamlPlace& at, const std::string& message) {
    throw Error(KGRPO_ERROR_INVALID, path_ + ":" + std::to_string(at.line) + ": " + message);
  }
  std::string path_;
  YamlNode root_;
  std::set<std::string> known_;
};

uint32_t RoundUp(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Device Device::Load(const std::string& path) {
  Reader reader(path);
  Device d;
  reader.Get("name", d.name);
  reader.GetInteger("multiprocessors", d.multiprocessors);
  reader.Get("clock_hz", d.clock_hz);
  reader.GetInteger("max_threads_per_multiprocessor", d.max_threads_per_multiprocessor);
  reader.GetInteger("max_blocks_per_multiprocessor", d.max_blocks_per_multiprocessor);
  reader.GetInteger("registers_per_multiprocessor", d.registers_per_multiprocessor);
  reader.GetInteger("register_allocation_unit", d.register_allocation_unit);
  reader.GetInteger("max_registers_per_thread", d.max_registers_per_thread);
  reader.GetInteger("shared_bytes_per_multiprocessor", d.shared_bytes_per_multiprocessor);
  reader.GetInteger("shared_bytes_per_block", d.shared_bytes_per_block);
  reader.GetInteger("shared_reserved_per_block", d.shared_reserved_per_block);
  reader.GetInteger("l1_bytes", d.l1_bytes);
  reader.GetInteger("schedulers", d.schedulers);
  reader.Get("issue_rate", d.issue_rate);
  reader.Get("fp32_rate", d.fp32_rate);
  reader.Get("int_rate", d.int_rate);
  reader.Get("half_rate", d.half_rate);
  reader.Get("fp64_rate", d.fp64_rate);
  reader.Get("special_rate", d.special_rate);
  reader.Get("memory_rate", d.memory_rate);
  reader.Get("tensor_flops_per_cycle", d.tensor_flops_per_cycle);
  reader.Get("l1_effective", d.l1_effective);
  reader.Get("l1_lines_per_cycle", d.l1_lines_per_cycle);
  reader.Get("shared_wavefronts_per_cycle", d.shared_wavefronts_per_cycle);
  reader.Get("shared_conflict_cycles", d.shared_conflict_cycles);
  reader.Get("l2_sectors_per_cycle", d.l2_sectors_per_cycle);
  reader.Get("l2_partial_store", d.l2_partial_store);
  reader.Get("l2_bytes", d.l2_bytes);
  reader.Get("l2_keeps", d.l2_keeps);
  reader.Get("dram_bytes_per_second", d.dram_bytes_per_second);
  reader.Get("dram_efficiency", d.dram_efficiency);
  reader.Get("l2_atomics_per_cycle", d.l2_atomics_per_cycle);
  reader.Get("atomic_turn_cycles", d.atomic_turn_cycles);
  reader.Get("shared_atomic_cycles", d.shared_atomic_cycles);
  reader.Get("launch_seconds", d.launch_seconds);
  reader.Get("next_launch_seconds", d.next_launch_seconds);
  reader.Get("warp_start_cycles", d.warp_start_cycles);
  reader.Get("barrier_warp_cycles", d.barrier_warp_cycles);
  reader.Get("blocks_per_cycle", d.blocks_per_cycle);
  reader.Get("norm", d.norm);
  reader.Get("latency_norm", d.latency_norm);
  reader.Get("overlap_warps", d.overlap_warps);
  reader.Get("overlap_blocks", d.overlap_blocks);
  Latencies& l = d.latencies;
  for (const auto& [name, value] : {std::pair{"alu", &l.alu},
                                    {"fp64", &l.fp64},
                                    {"special", &l.special},
                                    {"tensor", &l.tensor},
                                    {"shared", &l.shared},
                                    {"shuffle", &l.shuffle},
                                    {"constant", &l.constant},
                                    {"l1", &l.l1},
                                    {"l2", &l.l2},
                                    {"dram", &l.dram},
                                    {"atomic", &l.atomic},
                                    {"barrier", &l.barrier}}) {
    reader.Get(std::string(name) + "_latency", *value);
  }
  reader.Finish();
  return d;
}

Occupancy ComputeOccupancy(const Device& device, const KernelResources& resources, uint32_t threads_per_block) {
  Occupancy occupancy;
  if (threads_per_block == 0) return occupancy;
  const uint32_t warps = (threads_per_block + 31) / 32;
  struct Limit {
    uint32_t blocks;
    const char* name;
  };
  const uint32_t registers = RoundUp(static_cast<uint32_t>(std::max(1, resources.registers_per_thread)) * 32,
                                     static_cast<uint32_t>(device.register_allocation_unit));
  const uint32_t shared = RoundUp(resources.static_shared_bytes + resources.dynamic_shared_bytes, 128);
  const bool fits =
      shared <= device.shared_bytes_per_block && resources.registers_per_thread <= device.max_registers_per_thread;
  // Registers are handed out by scheduler, in whole warps.
  const auto schedulers = static_cast<uint32_t>(device.schedulers);
  const uint32_t warps_by_registers =
      static_cast<uint32_t>(device.registers_per_multiprocessor) / schedulers / registers * schedulers;
  const Limit limits[] = {
      {static_cast<uint32_t>(device.max_threads_per_multiprocessor) / 32 / warps, "threads"},
      {static_cast<uint32_t>(device.max_blocks_per_multiprocessor), "blocks"},
      {warps_by_registers / warps, "registers"},
      {shared == 0 ? UINT32_MAX : device.shared_bytes_per_multiprocessor / (shared + device.shared_reserved_per_block),
       "shared memory"}};
  occupancy.by_threads = static_cast<int>(limits[0].blocks);
  occupancy.by_blocks = static_cast<int>(limits[1].blocks);
  occupancy.by_registers = static_cast<int>(limits[2].blocks);
  if (shared > 0) occupancy.by_shared_memory = static_cast<int>(limits[3].blocks);
  uint32_t blocks = UINT32_MAX;
  for (const Limit& limit : limits) {
    if (limit.blocks < blocks) {
      blocks = limit.blocks;
      occupancy.limit = limit.name;
    }
  }
  if (!fits) {
    blocks = 0;
    occupancy.limit = shared > device.shared_bytes_per_block ? "shared memory" : "registers";
  }
  occupancy.blocks_per_multiprocessor = static_cast<int>(blocks);
  occupancy.warps_per_multiprocessor = static_cast<int>(blocks * warps);
  occupancy.fraction = blocks * warps * 32.0 / device.max_threads_per_multiprocessor;
  return occupancy;
}

}  // namespace kgrpo::simt
