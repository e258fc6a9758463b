#include "simt/time/scoreboard.h"

#include <algorithm>
#include <utility>

#include "simt/lower/cost.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

template <typename Value>
Value Later(const Value& a, const Value& b) {
  return b.ready > a.ready ? b : a;
}

}  // namespace

Scoreboard::Scoreboard(const Kernel& kernel, const std::vector<Cost>& costs, const Latencies& latencies)
    : kernel_(kernel),
      costs_(costs),
      latencies_(latencies.ByTerm()),
      regions_(kernel),
      writer_(kernel.virtual_registers, -1) {
  for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) fills_tiles_ |= FillsTile(pc);
}

bool Scoreboard::FillsTile(uint32_t pc) const {
  return costs_[pc].pipe == Pipe::kMemory && static_cast<LatencyClass>(costs_[pc].latency) == LatencyClass::kNone &&
         kernel_.code[pc].space == static_cast<uint8_t>(Space::kShared) && kernel_.code[pc].run != &CopyAsync;
}

// `times`: see TraceEntry.
Scoreboard::Wait Scoreboard::WaitOf(uint32_t pc, bool beyond_l1, bool dram, uint32_t times) const {
  // Until a poll sees what another thread has stored ("grid.sync"). Of branches through a table and branches that split
  // the warp (h200_prices.csv, "switch" and "branches"), and for each word that lanes read of constants.
  constexpr double kSwitch = 80, kWay = 100, kSplit = 60, kWord = 40, kHandOver = 500;
  const auto waits = static_cast<double>(costs_[pc].waits) * times;
  const auto issue = static_cast<double>(costs_[pc].issue);
  const Handler run = kernel_.code[pc].run;
  if (run == &LoadBulk || run == &CopyAsync)
    return {!beyond_l1 ? LatencyTerm::kL1 : dram ? LatencyTerm::kDram : LatencyTerm::kL2, 1};
  if (run == &WaitCopies) return {};
  // Measured on an H100: 89 to 101 cycles.
  if (run == &MbarrierWait) return {LatencyTerm::kShared, 3.2};
  if (run == &BranchIndexed) return {LatencyTerm::kAlu, 0, kSwitch + kWay * times};
  if (run == &Branch && times > 1) return {LatencyTerm::kAlu, 1, kSplit * (times - 1)};
  if (run == &NanoSleep) return {LatencyTerm::kAlu, 0, static_cast<double>(times)};
  switch (static_cast<LatencyClass>(costs_[pc].latency)) {
    case LatencyClass::kNone: return {};
    case LatencyClass::kAlu: return {LatencyTerm::kAlu, 1};
    case LatencyClass::kSpecial: return {LatencyTerm::kSpecial, 1, 2.0 * issue};
    case LatencyClass::kFp64: return {LatencyTerm::kFp64, std::max(1.0, issue / 2)};
    case LatencyClass::kTensor: return {LatencyTerm::kTensor, waits};
    case LatencyClass::kShared: return {LatencyTerm::kShared, 1};
    case LatencyClass::kShuffle: return {LatencyTerm::kShuffle, waits};
    case LatencyClass::kGlobal:
      return {!beyond_l1 ? LatencyTerm::kL1 : dram ? LatencyTerm::kDram : LatencyTerm::kL2, 1, kHandOver * (times - 1)};
    case LatencyClass::kLocal: return {beyond_l1 ? LatencyTerm::kL2 : LatencyTerm::kL1, 1};
    case LatencyClass::kConstant: return {LatencyTerm::kConstant, 1, kWord * (times - 1)};
    case LatencyClass::kAtomic: return {LatencyTerm::kAtomic, waits};
    case LatencyClass::kBarrier: break;
  }
  return {LatencyTerm::kBarrier, 1};
}

double Scoreboard::Cycles(const Wait& wait) const {
  return wait.term == LatencyTerm::kCount ? 0 : wait.times * latencies_[static_cast<size_t>(wait.term)] + wait.extra;
}

// Records for each issued instruction the one that it waited for, and the reason.
struct Scoreboard::Run {
  // To issue after it, for its result, for its pipe, for the multiprocessor's port to the L2.
  enum class Why : uint8_t { kTurn, kResult, kPipe, kPort };
  struct Step {
    uint32_t pc;
    bool beyond_l1, dram;
    Why why;               // it waited for `after`
    int32_t after;         // index of a step, or -1
    double sectors = 0;    // of a transfer of what the instruction loads, which is a step beside its issue
    uint32_t times = 1;    // see TraceEntry
    bool counted = false;  // the transfer, in `ahead`
  };
  Run(size_t registers, bool misses, bool all_fetched = false) : dram(misses), fetched(all_fetched), values(registers) {
    pipe_step.fill(-1);
  }
  const bool dram, fetched;  // fetched: see BlockLatency
  double now = 0, end = 0;
  int32_t last = -1, end_step = -1;  // the step that `now` and `end` are due to
  bool last_result = false;          // `now` waits for the result of `last`, a barrier
  std::vector<Value> values;         // by register
  std::array<double, static_cast<size_t>(Pipe::kCount)> pipe_free{};
  std::array<int32_t, static_cast<size_t>(Pipe::kCount)> pipe_step{};
  std::vector<Step> steps;
  std::vector<Value> arrivals;  // of bulk loads, and of cp.async before an arrival at an mbarrier
  std::vector<Value> groups;    // of cp.async that were committed and not awaited: when all have arrived
  Value open, copied;           // the same of the group that is not committed, and of all
  double port_free = 0;
  int32_t port_step = -1;
  uint32_t tile_reads = 0;       // loads of shared memory so far
  uint32_t stored_after = 0;     // of these, at the last store of what was loaded ahead
  double loaded = 0, ahead = 0;  // sectors; ahead: see BlockLatency
  double tiles_awaited = 0;
};

// Cycles for which an instruction keeps its pipe from the warp's next one: a scheduler has 32 lanes of float units, 16
// of integer units, 4 of special ones (CUDA C++ Programming Guide, throughput of arithmetic instructions, 9.0).
double Scoreboard::Occupies(uint32_t pc) const {
  const auto use = static_cast<double>(costs_[pc].pipe_use);
  switch (costs_[pc].pipe) {
    case Pipe::kInt:
    case Pipe::kFp64:
    case Pipe::kMemory: return 2 * use;
    case Pipe::kSpecial: return 8 * use;
    case Pipe::kTensor: return 6.1 * use;  // an m16n8k16 with float16 operands: 6.1 cycles on an H100
    default: return use;
  }
}

// What an instruction, the last step, loads passes the multiprocessor's port to the L2 from time `now` on, behind what
// was loaded earlier.
Scoreboard::Value Scoreboard::Transfer(Run& run, uint32_t pc, bool dram, double now, double sectors) const {
  const auto index = static_cast<int32_t>(run.steps.size());
  Run::Step step{pc, true, dram, Run::Why::kTurn, index - 1, sectors};
  if (run.port_free > now) {
    now = run.port_free;
    step.after = run.port_step;
    step.why = Run::Why::kPort;
  }
  run.steps.push_back(step);
  run.port_free = now + sectors * latencies_[static_cast<size_t>(LatencyTerm::kTransfer)];
  run.port_step = index;
  run.loaded += sectors;
  const LatencyTerm term = dram ? LatencyTerm::kDram : LatencyTerm::kL2;
  return {run.port_free + latencies_[static_cast<size_t>(term)], index};
}

// When the groups have arrived that a cp.async.wait waits for.
Scoreboard::Value Scoreboard::AwaitedGroups(Run& run, const Instruction& wait) const {
  Value latest;
  const size_t left = wait.size == 1 ? 0 : std::min(run.groups.size(), static_cast<size_t>(wait.offset));
  const auto end = run.groups.end() - static_cast<std::ptrdiff_t>(left);
  for (auto group = run.groups.begin(); group != end; ++group) latest = Later(latest, *group);
  run.groups.erase(run.groups.begin(), end);
  return wait.size == 1 ? Later(latest, std::exchange(run.open, {})) : latest;
}

// Issues instruction `i` of a region; `done` holds what is known of the region's instructions so far.
void Scoreboard::Issue(Run& run, const Region& region, uint32_t i, const TraceEntry& entry,
                       std::vector<Value>& done) const {
  const uint32_t pc = entry.pc;
  const Instruction& in = kernel_.code[pc];
  const auto latency = static_cast<LatencyClass>(costs_[pc].latency);
  double start = run.now;
  Run::Step step{pc, entry.beyond_l1 != 0, run.dram && entry.first,
                 run.last_result ? Run::Why::kResult : Run::Why::kTurn, run.last};
  const auto wait_for = [&](double ready, int32_t after) {
    if (ready <= start) return;
    start = ready;
    step.after = after;
    step.why = Run::Why::kResult;
  };
  const auto wait_for_tile = [&](const Value& arrival) {
    if (run.fetched) return;
    run.tiles_awaited += arrival.step >= 0 ? 1 : 0;
    wait_for(arrival.ready, arrival.step);
  };
  Value moved;  // the operand of an instruction that only names it again
  const bool fills_tile = FillsTile(pc);
  for (uint32_t o = i == 0 ? 0 : region.operands_end[i - 1]; o < region.operands_end[i]; ++o) {
    const int32_t operand = region.operands[o];
    const int32_t outside = ~operand;  // a value from before the region
    const Value& value = operand >= 0 ? done[static_cast<size_t>(operand)] : run.values[static_cast<size_t>(outside)];
    if (costs_[pc].issue == 0 && value.transfer >= 0) moved = value;
    // The warp may have read an earlier tile after it issued the load.
    const bool ahead = fills_tile && value.transfer >= 0 && value.tile_reads != run.tile_reads;
    if (ahead && run.fetched) continue;
    wait_for(value.ready, value.step);
    if (!ahead) continue;
    Run::Step& transfer = run.steps[static_cast<size_t>(value.transfer)];
    wait_for(value.transferred, value.transfer);
    run.ahead += std::exchange(transfer.counted, true) ? 0 : transfer.sectors;
    run.tiles_awaited += std::exchange(run.stored_after, run.tile_reads) == run.tile_reads ? 0 : 1;
  }
  if (in.run != &MbarrierWait) {
    step.times = std::max(1u, entry.awaits);
  } else if (entry.awaits != 0 && entry.awaits <= run.arrivals.size()) {
    wait_for_tile(run.arrivals[entry.awaits - 1]);
  }
  if (in.run == &WaitCopies) wait_for_tile(AwaitedGroups(run, in));
  const auto pipe = static_cast<size_t>(costs_[pc].pipe);
  if (run.pipe_free[pipe] > start) {
    start = run.pipe_free[pipe];
    step.after = run.pipe_step[pipe];
    step.why = Run::Why::kPipe;
  }
  const auto index = static_cast<int32_t>(run.steps.size());
  run.steps.push_back(step);
  if (const double occupied = Occupies(pc); occupied > 0) {
    run.pipe_free[pipe] = start + occupied;
    run.pipe_step[pipe] = index;
  }
  const auto cost = static_cast<double>(costs_[pc].issue);
  done[i] = {start + cost + Cycles(WaitOf(pc, step.beyond_l1, step.dram, step.times)), index, moved.transfer,
             moved.transferred, moved.tile_reads};
  if (cost > 0) {  // else it passes its operand's readiness on and does not wait itself
    run.now = start + cost;
    run.last = index;
    run.last_result = false;
  }
  if ((latency == LatencyClass::kBarrier && in.run != &WaitCopies) || in.run == &Fence || in.run == &BranchIndexed ||
      (in.run == &Branch && step.times > 1)) {
    run.now = done[i].ready;
    run.last = index;
    run.last_result = true;
  }
  if (done[i].ready > run.end) {
    run.end = done[i].ready;
    run.end_step = index;
  }
  run.tile_reads += latency == LatencyClass::kShared && in.run != &MbarrierWait && in.run != &MbarrierArrive ? 1 : 0;
  if (step.beyond_l1 && (latency == LatencyClass::kGlobal || in.run == &CopyAsync)) {
    // A lane's bytes are the warp's sectors.
    const double sectors = in.size * (in.run == &CopyAsync ? 1 : std::max<uint32_t>(1, in.count));
    const Value arrival = Transfer(run, pc, step.dram, start + cost, sectors);
    done[i].transfer = arrival.step;
    done[i].transferred = arrival.ready;
    done[i].tile_reads = run.tile_reads;
    if (in.run == &CopyAsync) {
      done[i].ready = arrival.ready;
      done[i].step = arrival.step;
      run.ahead += sectors;
    }
  }
  if (in.run == &CopyAsync) {
    run.open = Later(run.open, done[i]);
    run.copied = Later(run.copied, done[i]);
  } else if (in.run == &CommitCopies) {
    run.groups.push_back(std::exchange(run.open, {}));
  }
}

// A bulk load, of this warp or another, is on its way from now on; or the warp arrives at an mbarrier when its earlier
// cp.async have arrived, as the block's other warps do.
void Scoreboard::IssueCopy(Run& run, const TraceCopy& copy) const {
  if (kernel_.code[copy.pc].run != &LoadBulk) {
    run.arrivals.push_back(run.copied);
    return;
  }
  const Run::Step step{copy.pc, true, run.dram && copy.first, run.last_result ? Run::Why::kResult : Run::Why::kTurn,
                       run.last};
  run.steps.push_back(step);
  const double issued = run.now + static_cast<double>(costs_[copy.pc].issue);
  run.arrivals.push_back(Transfer(run, copy.pc, step.dram, issued, static_cast<double>(copy.sectors)));
  run.ahead += static_cast<double>(copy.sectors);
}

LatencyPath Scoreboard::Follow(const Run& run, std::vector<double>* chain) const {
  LatencyPath path;
  auto why = Run::Why::kResult;
  for (int32_t at = run.end_step; at >= 0;) {
    const Run::Step& step = run.steps[static_cast<size_t>(at)];
    const double issue = step.sectors > 0         ? 0
                         : why == Run::Why::kPipe ? Occupies(step.pc)
                                                  : static_cast<double>(costs_[step.pc].issue);
    path.issue += issue;
    path.steps[static_cast<size_t>(LatencyTerm::kTransfer)] += step.sectors;
    if (chain != nullptr)
      (*chain)[step.pc] += issue + step.sectors * latencies_[static_cast<size_t>(LatencyTerm::kTransfer)];
    if (why == Run::Why::kResult) {
      const Wait wait = WaitOf(step.pc, step.beyond_l1, step.dram, step.times);
      if (wait.term != LatencyTerm::kCount) path.steps[static_cast<size_t>(wait.term)] += wait.times;
      path.issue += wait.extra;
      if (chain != nullptr) (*chain)[step.pc] += Cycles(wait);
    }
    why = step.why;
    at = step.after;
  }
  return path;
}

// Runs through the trace.
void Scoreboard::Play(const std::vector<TraceEntry>& trace, const std::vector<TraceCopy>& copies,
                      const std::vector<Run*>& runs) {
  std::vector<uint32_t> key, pcs;
  std::vector<Value> done;
  for (size_t at = 0; at < trace.size();) {
    bool whole = false;
    const size_t stop = regions_.End(trace, at, &whole, &key);
    const auto found = orders_.find(key);
    Region fresh;
    const Region* region = &fresh;
    if (whole && found != orders_.end()) {
      region = &found->second;
    } else {
      pcs.clear();
      for (size_t i = at; i < stop; ++i) pcs.push_back(trace[i].pc);
      fresh = Schedule(pcs);
      if (whole) region = &(orders_[key] = std::move(fresh));
    }
    for (Run* run : runs) {
      done.assign(stop - at, Value());
      for (const uint32_t i : region->order) {
        while (run->arrivals.size() < copies.size() && copies[run->arrivals.size()].position <= at + i)
          IssueCopy(*run, copies[run->arrivals.size()]);
        Issue(*run, *region, i, trace[at + i], done);
      }
      for (const auto& [reg, writer] : region->left) run->values[reg] = done[writer];
    }
    at = stop;
  }
}

BlockLatency Scoreboard::Time(const std::vector<TraceEntry>& trace, const std::vector<TraceCopy>& copies,
                              std::vector<double>* chain) {
  BlockLatency latency;
  Run hit(kernel_.virtual_registers, false), miss(kernel_.virtual_registers, true);
  Play(trace, copies, {&hit, &miss});
  for (const TraceEntry& entry : trace) latency.instructions += static_cast<double>(costs_[entry.pc].issue);
  latency.hit = Follow(hit, nullptr);
  latency.miss = Follow(miss, chain);
  if (miss.tiles_awaited <= 1 || miss.ahead <= 0) return latency;
  latency.ahead = miss.ahead / miss.loaded * (1 - 1 / miss.tiles_awaited);
  Run fetched(kernel_.virtual_registers, false, true);
  Play(trace, copies, {&fetched});
  latency.fetched = Follow(fetched, nullptr);
  return latency;
}

}  // namespace kgrpo::simt
