// Launches: sets up a grid and shares the interpreter among the warps of its blocks.
#include "interpreter/simt/launch.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "interpreter/simt/block_sample.h"
#include "interpreter/simt/counter.h"
#include "interpreter/simt/machine.h"

namespace kgrpo::simt {
namespace {

constexpr uint32_t kWarpSlice = 8192;       // instructions before the block's next warp has its turn
constexpr uint64_t kBlockSlice = 1u << 22;  // instructions before the next block has its turn
constexpr uint32_t kPollsToYield = 512;     // a block that polls memory may wait for another
constexpr uint32_t kPolledSlice = 256;      // both for a block that did so in its last turn and most likely still does
constexpr uint32_t kPolledToYield = 64;
constexpr uint32_t kLongestPause = 64;  // rounds without a turn for a block that polls
constexpr size_t kMostResident = 2112;  // 16 blocks on each of 132 multiprocessors

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
               std::to_string(kernel.static_shared_bytes + config.dynamic_shared_bytes) +
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

// Runs a warp until it waits, ends, or has had its slice. Returns the instructions executed.
template <bool kCounted>
uint32_t RunWarp(Warp& warp, uint32_t slice) {
  const Instruction* code = warp.grid->code;
  uint32_t left = slice;
  warp.yield = false;
  while (left != 0) {
    if (warp.pc >= warp.limit) [[unlikely]] {
      if (!Reschedule(warp)) break;
      if (warp.yield) break;
    }
    const Instruction& in = code[warp.pc];
    const uint32_t mask = warp.active & (PredicateOf(warp, in.predicate) ^ in.flip);
    if constexpr (kCounted) warp.grid->counter->CountInstruction(warp, warp.pc, mask);
    ++warp.pc;
    --left;
    if (mask != 0) in.run(warp, in, mask);
  }
  warp.executed += slice - left;
  return slice - left;
}

// Runs a block until it ends (true) or has had its slice. `polled`: that is all that it did last time.
bool RunBlock(Block& block, Grid& grid, bool polled = false) {
  const uint64_t warp_slice = polled ? kPolledSlice : kWarpSlice;
  const uint32_t most_polls = polled ? kPolledToYield : kPollsToYield;
  const auto warps = static_cast<uint32_t>(block.warps.size());
  uint64_t left = std::min(kBlockSlice, grid.budget);
  block.polls = 0;
  while (block.done_warps < warps) {
    for (uint32_t i = 0; i < warps; ++i) {
      Warp& warp = block.warps[block.next_warp];
      block.next_warp = block.next_warp + 1 == warps ? 0 : block.next_warp + 1;
      if (warp.state != WarpState::kReady) continue;
      const auto slice = static_cast<uint32_t>(std::min(warp_slice, left));
      const uint32_t ran = grid.counter != nullptr ? RunWarp<true>(warp, slice) : RunWarp<false>(warp, slice);
      left -= ran;
      grid.budget -= ran;
      grid.result->warp_instructions += ran;
      if (grid.budget == 0) return false;
      if (left == 0 || block.polls >= most_polls) return false;
    }
    ReleaseBarriers(block);
  }
  return true;
}

// Whether a block may wait for one that is not sampled: then all must run.
bool MayPoll(const Kernel& kernel) {
  for (const Instruction& in : kernel.code) {
    const auto space = static_cast<Space>(in.space);
    if ((in.flags & kFlagVolatile) != 0 && (space == Space::kGlobal || space == Space::kGeneric)) return true;
  }
  return kernel.uses_grid_sync;
}

// The block that starts after `started` others, of `count`. No order is promised, but that a block which waits for any
// other one of those that are resident with it gets what it waits for.
uint64_t NextBlock(uint64_t started, uint64_t count, bool last_first) {
  if (!last_first) return started;
  const uint64_t first = started / kMostResident * kMostResident;  // of those that are resident at once
  return first + std::min<uint64_t>(kMostResident, count - first) - 1 - (started - first);
}

uint64_t WorkOf(const Block& block) {
  return std::accumulate(block.warps.begin(), block.warps.end(), uint64_t{0},
                         [](uint64_t work, const Warp& warp) { return work + warp.executed; });
}

// Runs further blocks, uncounted. That one faults is no finding: it may work on what skipped blocks should have
// written.
void RunFurther(Grid& grid, const std::vector<uint64_t>& sample, uint64_t sampled_work) {
  constexpr uint64_t kMostTimesTheWork = 64;
  constexpr size_t kFewest = 3;            // however long they take
  constexpr uint64_t kEnoughWork = 20000;  // warp instructions: a millisecond
  const std::vector<uint64_t> chosen =
      SampleBlocks(grid.config->grid.Count(), grid.config->further_blocks, grid.config->further_seed);
  std::vector<uint64_t> work;
  const uint64_t kept = grid.budget, allowed = std::min(kept, kMostTimesTheWork * (sampled_work + 1000));
  const size_t findings = grid.result->findings.size();
  grid.budget = allowed;
  grid.counter = nullptr;
  Block block;
  grid.resident = {&block};
  try {
    for (size_t i = 0; i < chosen.size(); ++i) {
      const uint64_t index = chosen[(i + grid.config->further_seed) % chosen.size()];  // they may end early
      if (std::binary_search(sample.begin(), sample.end(), index)) continue;
      StartBlock(block, grid, index);
      while (!RunBlock(block, grid)) {
        if (grid.budget == 0) throw Fault{};
      }
      work.push_back(WorkOf(block));
      ++grid.result->blocks_run;
      if (work.size() >= kFewest && allowed - grid.budget > kEnoughWork) break;
    }
  } catch (const Fault&) {
    grid.result->further_failed = true;
    grid.result->findings.resize(findings);
  }
  grid.resident.clear();
  grid.budget = kept - (allowed - grid.budget);
  grid.result->further_work = Median(work);
}

void RunGrid(Grid& grid) {
  const uint64_t total = grid.config->grid.Count();
  std::vector<uint64_t> sample;
  const bool counted = grid.config->mode == Mode::kCounted;
  Counter* counter = grid.counter;
  if (counted) sample = SampleBlocks(total, grid.config->sampled_blocks, grid.config->sample_seed);
  const bool all = !counted || MayPoll(*grid.kernel);
  std::vector<uint64_t> order = sample;  // in which they run; where all do, NextBlock's
  uint64_t count = all ? total : order.size();
  bool extended = all || !grid.kernel->scatters_atomics;
  std::vector<std::unique_ptr<Block>> idle;
  std::vector<uint64_t> sampled_work;
  struct Resident {
    std::unique_ptr<Block> block;
    bool counted;
    uint32_t pause = 0;       // rounds for which it paused last
    uint32_t paused_for = 0;  // rounds before its next turn
  };
  std::deque<Resident> running;
  uint64_t started = 0;
  while (started < count || !running.empty() || !extended) {
    if (started == count && running.empty()) {
      // How often atomics meet at one address may be the data's chance: a small sample would order kernels by that.
      const std::vector<uint64_t> added = ExtendSample(total, grid.config->sample_seed, sampled_work, &sample);
      order.insert(order.end(), added.begin(), added.end());
      count = order.size();
      extended = true;
      continue;
    }
    // Each round gives the blocks that run a slice and starts one more. The blocks of a cooperative launch run at once
    // by contract and mostly wait for the last of them: they all start before any has its second turn.
    while (started < count && running.size() < kMostResident) {
      const uint64_t index = all ? NextBlock(started, count, grid.config->last_block_first) : order[started];
      ++started;
      std::unique_ptr<Block> block;
      if (idle.empty()) {
        block = std::make_unique<Block>();
      } else {
        block = std::move(idle.back());
        idle.pop_back();
      }
      StartBlock(*block, grid, index);
      const bool counts = counted && (!all || std::binary_search(sample.begin(), sample.end(), index));
      if (counts) counter->StartBlock(*block);
      running.push_back({std::move(block), counts});
      grid.resident.push_back(running.back().block.get());
      if (!grid.config->cooperative) break;
    }
    // Those that poll have their turns ever more rarely: a barrier that a kernel makes itself would else cost a slice
    // of polling for each block that waits and each that starts, and a chain of blocks one for each pair of them.
    for (size_t i = 0; i < running.size();) {
      if (running[i].paused_for != 0) {
        --running[i].paused_for;
        ++i;
        continue;
      }
      grid.counter = running[i].counted ? counter : nullptr;
      if (running[i].counted) counter->Switch(*running[i].block);
      const bool ended = RunBlock(*running[i].block, grid, running[i].pause != 0);
      if (grid.budget == 0 && !ended) {
        grid.result->status = LaunchStatus::kBudgetExceeded;
        grid.result->unfinished = DescribeUnfinished(*running[i].block);
        return;
      }
      if (!ended) {
        const bool polls = running[i].block->polls >= (running[i].pause != 0 ? kPolledToYield : kPollsToYield);
        running[i].pause = polls ? std::min(std::max(1u, 2 * running[i].pause), kLongestPause) : 0;
        running[i].paused_for = running[i].pause;
        ++i;
        continue;
      }
      Block& block = *running[i].block;
      if (running[i].counted) {
        counter->FinishBlock(block);
        sampled_work.push_back(WorkOf(block));
      }
      ++grid.result->blocks_run;
      grid.resident.erase(std::find(grid.resident.begin(), grid.resident.end(), &block));
      idle.push_back(std::move(running[i].block));
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  grid.result->sampled_work = Median(sampled_work);
  if (counted && !all && count < total && grid.config->further_blocks != 0)
    RunFurther(grid, sample, std::accumulate(sampled_work.begin(), sampled_work.end(), uint64_t{0}));
}

}  // namespace

LaunchResult Launch(ModuleInstance& instance, int kernel_index, const LaunchConfig& config) {
  const Module& module = instance.module();
  if (kernel_index < 0 || static_cast<size_t>(kernel_index) >= module.kernels().size()) {
    throw Error(KGRPO_ERROR_INVALID, "launch of kernel number " + std::to_string(kernel_index) + " of " +
                                         std::to_string(module.kernels().size()));
  }
  const Kernel& kernel = module.program().kernels[static_cast<size_t>(kernel_index)];
  LaunchResult result;
  if (!Valid(kernel, module.kernels()[static_cast<size_t>(kernel_index)], config, result)) return result;
  Grid grid;
  grid.instance = &instance;
  grid.memory = &instance.memory();
  grid.program = &module.program();
  grid.kernel = &kernel;
  grid.config = &config;
  grid.result = &result;
  grid.checked = config.mode == Mode::kChecked;
  grid.code = grid.checked && !kernel.watched_code.empty() ? kernel.watched_code.data() : kernel.code.data();
  result.independent = !MayPoll(kernel) && !kernel.global_atomics;
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
  std::unique_ptr<Counter> counter;
  if (config.mode == Mode::kCounted) {
    counter = std::make_unique<Counter>(grid);
    grid.counter = counter.get();
  }
  try {
    RunGrid(grid);
  } catch (const Fault&) {
    result.status = LaunchStatus::kFault;
  }
  if (workspace != 0) grid.memory->Free(workspace);
  if (counter != nullptr) result.counts = counter->Finish();
  return result;
}

}  // namespace kgrpo::simt
