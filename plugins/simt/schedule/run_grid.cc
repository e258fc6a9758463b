// GridRun as a scheduler: blocks take turns until they end. run_grid_counted.cc chooses the counted blocks.
#include "simt/schedule/run_grid.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "simt/lower/cost.h"
#include "simt/schedule/block_census.h"

namespace kgrpo::simt {
namespace {

// Limits of a block's turn, in warp instructions and in polls of memory.
struct Slices {
  uint32_t warp;  // per warp of the block
  uint64_t block;
  uint32_t polls;  // atomics that return a value and volatile loads: it may wait for another block
};
constexpr Slices kWorking = {8192, 1u << 22, 512};
// For a block that only polled in its last turn, and most likely still does.
constexpr Slices kPolling = {256, 1u << 22, 64};
// For blocks that may distribute work by atomics, piece by piece: short turns, as if they ran at once.
constexpr Slices kTaking = {64, 4096, 1};
constexpr uint32_t kLongestPause = 64;                   // rounds without a turn for a block that polls
constexpr uint64_t kMostBlockBytes = uint64_t{2} << 30;  // local arrays and registers of blocks that run at once
constexpr size_t kMostResident = 2112;                   // 16 blocks on each of 132 multiprocessors

// Runs a warp until it waits, ends, or has had its slice. Returns the instructions executed.
// kFollowed: Warp::executed is right at each instruction, for Waits.
template <bool kCounted, bool kFollowed>
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
    if constexpr (kCounted) static_cast<Counter*>(warp.grid->counter)->CountInstruction(warp, warp.pc, mask);
    ++warp.pc;
    --left;
    if constexpr (kFollowed) ++warp.executed;
    if (mask != 0) {
      in.run(warp, in, mask);
    } else {
      Cover(warp, in.index, kPassed);
    }
  }
  if constexpr (!kFollowed) warp.executed += slice - left;
  return slice - left;
}

// Calls LaunchConfig::look every so many instructions, if some time has passed. Returns false if the launch must end.
bool Looks(Grid& grid) {
  constexpr uint64_t kInstructions = 4096;
  constexpr std::chrono::milliseconds kTime{100};
  if (grid.budget > grid.next_look) return true;
  grid.next_look = grid.budget - std::min(grid.budget, kInstructions);
  const auto now = std::chrono::steady_clock::now();
  if (!grid.config->look || now < grid.next_look_time) return true;
  grid.next_look_time = now + kTime;
  return grid.config->look();
}

// Runs a block until it ends (true) or has had its turn.
bool RunBlock(Block& block, Grid& grid, const Slices& slices) {
  const auto warps = static_cast<uint32_t>(block.warps.size());
  uint64_t left = std::min(slices.block, grid.budget);
  block.polls = 0;
  while (block.done_warps < warps) {
    for (uint32_t i = 0; i < warps; ++i) {
      Warp& warp = block.warps[block.next_warp];
      block.next_warp = block.next_warp + 1 == warps ? 0 : block.next_warp + 1;
      if (warp.state != WarpState::kReady) continue;
      const auto slice = static_cast<uint32_t>(std::min<uint64_t>(slices.warp, left));
      const bool counted = grid.counter != nullptr, followed = grid.waits != nullptr;
      const uint32_t ran = counted    ? followed ? RunWarp<true, true>(warp, slice) : RunWarp<true, false>(warp, slice)
                              : followed ? RunWarp<false, true>(warp, slice)
                                      : RunWarp<false, false>(warp, slice);
      left -= ran;
      grid.budget -= std::min<uint64_t>(ran, grid.budget);  // handlers may have charged for more than an instruction
      grid.result->warp_instructions += ran;
      if (!Looks(grid)) grid.budget = 0;
      if (grid.budget == 0) return false;
      if (left == 0 || block.polls >= slices.polls) return false;
    }
    ReleaseBarriers(block);
  }
  return true;
}

// Returns the block that starts after `started` others, of `count`. No order is promised, except that a block may wait
// for any other one that is resident with it.
uint64_t NextBlock(uint64_t started, uint64_t count, bool last_first) {
  if (!last_first) return started;
  const uint64_t first = started / kMostResident * kMostResident;  // the first of those resident at once
  return first + std::min<uint64_t>(kMostResident, count - first) - 1 - (started - first);
}

uint64_t WorkOf(const Block& block) {
  return std::accumulate(block.warps.begin(), block.warps.end(), uint64_t{0},
                         [](uint64_t work, const Warp& warp) { return work + warp.executed; });
}

}  // namespace

bool MayPoll(const Kernel& kernel) {
  for (const Instruction& in : kernel.code) {
    const auto space = static_cast<Space>(in.space);
    if ((in.flags & kFlagVolatile) != 0 && (space == Space::kGlobal || space == Space::kGeneric)) return true;
  }
  return kernel.uses_grid_sync;
}

// True if warps may wait for others by what atomics return, too.
static bool MayWait(const Kernel& kernel) {
  return MayPoll(kernel) || std::any_of(kernel.costs.begin(), kernel.costs.end(), [&](const Cost& cost) {
           const size_t pc = static_cast<size_t>(&cost - kernel.costs.data());
           return cost.pipe == Pipe::kMemory && static_cast<LatencyClass>(cost.latency) == LatencyClass::kAtomic &&
                  kernel.code[pc].space != static_cast<uint8_t>(Space::kShared);
         });
}

GridRun::GridRun(Grid& grid)
    : grid_(grid),
      total_(grid.config->grid.Count()),
      counted_(grid.config->mode == Mode::kCounted),
      all_(counted_ ? grid.config->whole || MayPoll(*grid.kernel) : !grid.config->only_checked),
      turns_(counted_ && grid.config->whole && grid.kernel->control.tickets) {
  if (counted_ && MayWait(*grid.kernel)) waits_ = std::make_unique<Waits>(grid.config->latencies);
  grid_.waits = waits_.get();
  if (counted_) ChooseCounted();
  ChooseChecked();
  if (!all_ && !counted_) order_ = checked_;
}

// Runs the following turn with or without checks.
void GridRun::Check(bool on) {
  if (grid_.config->mode == Mode::kChecked) return;
  grid_.checked = on;
  grid_.code = on && !grid_.watched_code.empty() ? grid_.watched_code.data() : grid_.kernel->code.data();
}

// Ends the launch if one more block would take too much memory.
void GridRun::CheckRoom() const {
  const Kernel& kernel = *grid_.kernel;
  const uint64_t of_block = grid_.warps_per_block * (kernel.register_bytes + uint64_t{kLanes} * kernel.local_bytes);
  const uint64_t blocks = running_.size() + 1;
  if (of_block <= kMostBlockBytes / blocks) return;
  Finding finding;
  finding.code = FindingCode::kOutOfMemory;
  finding.fatal = true;
  finding.kernel = kernel.name;
  finding.message = "kernel '" + kernel.name + "' needs too much memory: " + std::to_string(blocks) +
                    " of its blocks run at once, each with " + std::to_string(of_block) +
                    " bytes of local arrays and registers; " + std::to_string(kMostBlockBytes) + " are available";
  AddFinding(grid_, std::move(finding));
  throw Fault{};
}

void GridRun::Start(uint64_t index) {
  CheckRoom();
  std::unique_ptr<Block> block;
  if (idle_.empty()) {
    block = std::make_unique<Block>();
  } else {
    block = std::move(idle_.back());
    idle_.pop_back();
  }
  const bool checked = std::binary_search(checked_.begin(), checked_.end(), index);
  Check(checked);
  StartBlock(*block, grid_, index);
  Counter* counter = counted_ ? CounterOf(index) : nullptr;
  if (counter != nullptr) counter->StartBlock(*block);
  running_.push_back({std::move(block), counter, 0, checked, 0, 0});
  grid_.resident.push_back(running_.back().block.get());
}

// Returns the number of a block's first instructions that are counted. They represent the rest of the block.
uint64_t GridRun::MostCounted() const {
  constexpr uint64_t kOfLaunch = 16'000'000, kOfBlock = 1'000'000;
  return std::max(kOfBlock, kOfLaunch / std::max<uint64_t>(1, counts_.size()));
}

// False: the block has not ended yet.
bool GridRun::Turn(Resident& resident) {
  const bool polled = resident.pause != 0;
  const Slices& slices = turns_ ? kTaking : polled ? kPolling : kWorking;
  const bool counts = resident.counter != nullptr && resident.counted < MostCounted();
  Slices slice = slices;
  grid_.counter = counts ? resident.counter : nullptr;
  if (counts) {
    resident.counter->Switch(*resident.block);
    slice.block = std::min(slice.block, MostCounted() - resident.counted);
  }
  const uint64_t ran = resident.checked ? WorkOf(*resident.block) : 0, most = grid_.config->checked_instructions;
  const bool checks = resident.checked && ran < most;
  if (grid_.config->only_checked && !checks) return true;  // the rest is of no use
  if (checks) slice.block = std::min(slice.block, most - ran);
  Check(checks);
  const bool ended = RunBlock(*resident.block, grid_, slice);
  if (counts) resident.counted = WorkOf(*resident.block);
  if (ended) return true;
  // Blocks that poll get turns ever more rarely. Otherwise a barrier made by the kernel itself would cost a slice of
  // polling for each waiting and each starting block, and a chain of blocks one for each pair of them.
  const bool polls = !turns_ && resident.block->polls >= slices.polls;
  resident.pause = polls ? std::min(std::max(1u, 2 * resident.pause), kLongestPause) : 0;
  resident.paused_for = resident.pause;
  return false;
}

void GridRun::End(Resident& resident) {
  Block& block = *resident.block;
  const uint64_t work = counted_ ? WorkOf(block) : 0;
  if (resident.counter != nullptr) {
    resident.counter->Switch(block);
    resident.counter->FinishBlock(block, resident.counted);
    if (resident.counter != further_.get()) sampled_work_.push_back(work);
  }
  if (counted_ && (all_ || counts_.size() == total_)) {
    grid_.result->work.resize(total_);
    grid_.result->work[block.index] = work;
  }
  ++grid_.result->blocks_run;
  grid_.resident.erase(std::find(grid_.resident.begin(), grid_.resident.end(), &block));
  idle_.push_back(std::move(resident.block));
}

void GridRun::Run() {
  const LaunchConfig& config = *grid_.config;
  // Each block executes at least one instruction, so a list for more blocks than the budget is never needed.
  if (counted_ && all_ && total_ > std::min<uint64_t>(grid_.budget, kMostListed)) {
    grid_.result->status = LaunchStatus::kBudgetExceeded;
    grid_.result->unfinished = "its grid has " + std::to_string(total_) + " blocks";
    return;
  }
  uint64_t count = all_ ? total_ : order_.size(), started = 0;
  bool extended = all_ || !grid_.kernel->scatters_atomics || groups_.size() != 1;
  const size_t most = turns_ ? std::max<size_t>(1, config.resident_blocks) : kMostResident;
  while (started < count || !running_.empty() || !extended) {
    if (started == count && running_.empty()) {
      ExtendGroup();
      count = order_.size();
      extended = true;
      continue;
    }
    // Each round gives the blocks that run a slice and starts one more. The blocks of a cooperative launch run at once
    // by contract and mostly wait for the last of them: they all start before any has its second turn.
    while (started < count && running_.size() < most) {
      Start(all_ ? NextBlock(started, count, config.last_block_first) : order_[started]);
      ++started;
      if (!config.cooperative && !turns_) break;
    }
    for (size_t i = 0; i < running_.size();) {
      if (running_[i].paused_for != 0) {
        --running_[i].paused_for;
        ++i;
        continue;
      }
      const bool ended = Turn(running_[i]);
      if (grid_.budget == 0 && !ended) {
        grid_.result->status = LaunchStatus::kBudgetExceeded;
        grid_.result->unfinished = DescribeUnfinished(*running_[i].block);
        return;
      }
      if (!ended) {
        ++i;
        continue;
      }
      End(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (counted_ && !all_) RunOthers();
}

// Runs a block to its end, while no other one runs. Throws Fault if the budget does not suffice.
void GridRun::RunAlone(uint64_t index, Counter* counter) {
  const bool checked = std::binary_search(checked_.begin(), checked_.end(), index);
  Slices slices = kWorking;
  if (checked) slices.block = grid_.config->checked_instructions;
  grid_.counter = counter;
  grid_.resident = {&alone_};
  Check(checked);
  StartBlock(alone_, grid_, index);
  if (counter != nullptr) counter->StartBlock(alone_);
  while (!RunBlock(alone_, grid_, slices)) {
    if (grid_.budget == 0) throw Fault{};
    Check(false);
    slices = kWorking;
  }
  if (counter != nullptr) counter->FinishBlock(alone_, WorkOf(alone_));
  grid_.counter = nullptr;
  grid_.resident.clear();
  ran_.insert(index);
  ++grid_.result->blocks_run;
}

// Runs the blocks that are compared or checked, but not counted.
void GridRun::RunOthers() {
  LaunchResult& result = *grid_.result;
  const size_t findings = result.findings.size();
  const uint64_t kept = grid_.budget;
  try {
    RunFurther();
    if (result.independent && grid_.config->further_blocks != 0) RunRepresentatives();
  } catch (const Fault&) {  // no finding: the block may read results of skipped blocks
    result.further_failed = true;
    result.findings.resize(findings);
    grid_.budget = kept;
  }
  try {
    for (const uint64_t index : checked_)
      if (result.independent && !counts_.contains(index) && !ran_.contains(index)) RunAlone(index, nullptr);
  } catch (const Fault&) {  // a finding, since the block is independent
    result.further_failed = result.further_failed || result.findings.size() == findings;
  }
  grid_.resident.clear();
}

// One block of each class or, if these do not show whether the others are right, as many as there is time for.
void GridRun::RunRepresentatives() {
  constexpr uint64_t kEnoughWork = 2'000'000;  // warp instructions
  const uint64_t before = grid_.budget;
  const auto run = [&](uint64_t index) {
    if (!counts_.contains(index) && !ran_.contains(index)) RunAlone(index, nullptr);
    return before - grid_.budget < kEnoughWork;
  };
  for (const uint64_t index : of_each_class_) run(index);
  if (grid_.result->shows_others) return;
  uint64_t stride = total_ - total_ / 3;  // visits every block once, those of any period evenly
  while (std::gcd(stride, total_) != 1) ++stride;
  uint64_t index = grid_.config->further_seed % total_;
  for (uint64_t i = 0; i < total_ && run(index); ++i) index = (index + stride) % total_;
}

// These may take as long as a multiple of the counted ones.
void GridRun::RunFurther() {
  constexpr size_t kFewest = 3;            // however long they take
  constexpr uint64_t kEnoughWork = 20000;  // warp instructions: a millisecond
  if (further_blocks_.empty()) return;
  constexpr uint64_t kMostTimesTheWork = 64;
  const uint64_t work = std::accumulate(sampled_work_.begin(), sampled_work_.end(), uint64_t{0});
  const uint64_t kept = grid_.budget, allowed = std::min(kept, kMostTimesTheWork * (work + 1000));
  grid_.budget = allowed;
  std::vector<uint64_t> ran;
  // The loop may end early, so the order of the blocks is secret too.
  const auto first = static_cast<std::ptrdiff_t>(grid_.config->further_seed % further_blocks_.size());
  std::rotate(further_blocks_.begin(), further_blocks_.begin() + first, further_blocks_.end());
  for (const uint64_t index : further_blocks_) {
    RunAlone(index, further_.get());
    ran.push_back(index);
    if (ran.size() >= kFewest && allowed - grid_.budget > kEnoughWork) break;
  }
  // The last block runs uncounted: most that goes wrong at a grid's end goes wrong there.
  if (!counts_.contains(total_ - 1) && std::find(ran.begin(), ran.end(), total_ - 1) == ran.end())
    RunAlone(total_ - 1, nullptr);
  further_blocks_ = std::move(ran);
  grid_.budget = kept - (allowed - grid_.budget);
}

}  // namespace kgrpo::simt
