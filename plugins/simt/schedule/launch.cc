// Launches: refuses those that a device would refuse, and sets up a grid.
#include "simt/state/launch.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>

#include "simt/check/access.h"
#include "simt/check/earlier_launches.h"
#include "simt/lower/module.h"
#include "simt/schedule/run_grid.h"
#include "simt/state/machine.h"

namespace kgrpo::simt {
namespace {

void AddInvalid(LaunchResult& result, const Kernel& kernel, const std::string& text) {
  Finding finding;
  finding.code = FindingCode::kInvalidLaunch;
  finding.fatal = true;
  finding.kernel = kernel.name;
  finding.message = "kernel '" + kernel.name + "' cannot be launched: " + text;
  result.findings.push_back(std::move(finding));
  result.status = LaunchStatus::kFault;
}

bool Valid(const Kernel& kernel, const KernelInfo& info, const LaunchConfig& config, LaunchResult& result) {
  const Dim3 &grid = config.grid, &block = config.block;
  auto shape = [](const Dim3& d) {
    return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
  };
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) {
    AddInvalid(result, kernel, "the grid (" + shape(grid) + ") or the block (" + shape(block) + ") is empty");
  } else if (block.x > 1024 || block.y > 1024 || block.z > 64 || block.Count() > 1024) {
    AddInvalid(result, kernel, "a block of " + shape(block) + " threads exceeds the limit of 1024");
  } else if (grid.x > 0x7FFFFFFFu || grid.y > 65535 || grid.z > 65535) {
    AddInvalid(result, kernel, "a grid of " + shape(grid) + " blocks exceeds the limit of 2147483647 x 65535 x 65535");
  } else if (info.max_threads != 0 && block.Count() > info.max_threads) {
    AddInvalid(result, kernel,
               "a block of " + std::to_string(block.Count()) + " threads exceeds its __launch_bounds__(" +
                   std::to_string(info.max_threads) + ")");
  } else if (uint64_t{kernel.static_shared_bytes} + config.dynamic_shared_bytes > config.max_shared_bytes) {
    AddInvalid(result, kernel,
               std::to_string(uint64_t{kernel.static_shared_bytes} + config.dynamic_shared_bytes) +
                   " bytes of shared memory a block exceed the limit of " + std::to_string(config.max_shared_bytes));
  } else if (config.parameters.size() != kernel.parameter_bytes) {
    AddInvalid(result, kernel,
               std::to_string(config.parameters.size()) + " bytes of parameters were passed, it takes " +
                   std::to_string(kernel.parameter_bytes));
  } else {
    return true;
  }
  return false;
}

}  // namespace

LaunchResult Launch(ModuleInstance& instance, int kernel_index, const LaunchConfig& config) {
  const Module& module = instance.module();
  if (kernel_index < 0 || static_cast<size_t>(kernel_index) >= module.kernels().size()) {
    throw Error(KGRPO_ERROR_INVALID, "launch of kernel number " + std::to_string(kernel_index) + " of " +
                                         std::to_string(module.kernels().size()));
  }
  const Kernel& kernel = module.program().kernels[static_cast<size_t>(kernel_index)];
  const KernelInfo& info = module.kernels()[static_cast<size_t>(kernel_index)];
  LaunchResult result;
  if (!info.refused.empty()) {
    Finding finding;
    finding.code = FindingCode::kUnsupported;
    finding.fatal = true;
    finding.kernel = kernel.name;
    finding.message = "The simulated device cannot run it: " + info.refused;
    result.findings.push_back(std::move(finding));
    result.status = LaunchStatus::kFault;
    return result;
  }
  if (!Valid(kernel, info, config, result)) return result;
  Grid grid;
  grid.instance = &instance;
  grid.memory = &instance.memory();
  grid.program = &module.program();
  grid.kernel = &kernel;
  grid.config = &config;
  grid.result = &result;
  grid.checked = config.mode == Mode::kChecked;
  grid.compares_launches = grid.checked && config.in_flight != nullptr;
  grid.events.assign(1, {});  // event 0 is none
  grid.hides_writes = grid.checked && !config.other_choices &&
                      std::any_of(kernel.code.begin(), kernel.code.end(),
                                  [](const Instruction& in) { return (in.flags & kFlagVolatile) != 0; });
  const bool checks_some = !config.checked_blocks.empty() || config.choose_checked != 0;
  grid.code = kernel.code.data();
  grid.coverage.edges.resize(EdgePlaces(kernel));
  if ((grid.checked || checks_some) && !kernel.unset_uses.empty()) {
    grid.watched_code = kernel.code;
    if (grid.checked) grid.code = grid.watched_code.data();
    Watch(grid, false);
  }
  result.data_decides = kernel.control.by_data;
  result.reads_clock = kernel.control.reads_clock;
  result.independent = !MayPoll(kernel) && !kernel.global_atomics;
  grid.checks_global_order = grid.checked || result.independent;
  grid.budget = config.instruction_budget;
  grid.parameters = config.parameters;
  grid.warps_per_block = static_cast<uint32_t>((config.block.Count() + kLanes - 1) / kLanes);
  grid.agents = grid.warps_per_block + (kernel.bulk_copies ? 1 : 0);
  grid.shared_arrays = kernel.shared;
  grid.shared_limit = kernel.shared_layout_bytes;
  if (config.dynamic_shared_bytes != 0) {
    const uint32_t base = (kernel.shared_layout_bytes + 127) / 128 * 128;
    grid.shared_arrays.push_back({"(dynamic)", base, config.dynamic_shared_bytes});
    grid.shared_limit = base + config.dynamic_shared_bytes;
  }
  DeviceAddress workspace = 0;
  if (kernel.uses_grid_sync && config.cooperative) {
    workspace = grid.memory->Allocate(64, "the grid's barrier");
    if (workspace != 0) {
      grid.memory->Memset(workspace, 0, 64);
      grid.workspace = grid.memory->Find(workspace);
    }
  }
  grid.constants = instance.Constants(kernel_index);
  PatchConstants(grid);
  GridRun run(grid);
  try {
    run.Run();
  } catch (const Fault&) {
    result.status = LaunchStatus::kFault;
  }
  if (result.findings.empty() && !result.racing_reads.races.empty())
    result.findings.push_back(result.racing_reads.races.front());
  if (grid.checked && grid.lets_next_begin) result.accesses = TakeAccesses(grid);
  result.let_next_begin_early = grid.lets_next_begin_early;
  if (workspace != 0) grid.memory->Free(workspace);
  run.Finish();
  result.coverage = std::move(grid.coverage);
  result.coverage.parameters.push_back(config.parameters);
  return result;
}

}  // namespace kgrpo::simt
