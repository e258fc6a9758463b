#include "evaluator_sim/simt/scoreboard.h"

#include <algorithm>
#include <queue>

#include "evaluator_sim/simt/cost.h"
#include "evaluator_sim/simt/handlers.h"

namespace kgrpo::simt {
namespace {

bool IsStore(const Kernel& kernel, uint32_t pc) {
  return kernel.costs[pc].pipe == Pipe::kMemory &&
         static_cast<LatencyClass>(kernel.costs[pc].latency) == LatencyClass::kNone;
}
bool IsLoad(const Kernel& kernel, uint32_t pc) {
  const auto latency = static_cast<LatencyClass>(kernel.costs[pc].latency);
  return latency == LatencyClass::kGlobal || latency == LatencyClass::kShared || latency == LatencyClass::kLocal;
}
// ptxas lets so many registers wait for loads of global memory before it issues another, so that a kernel that can do
// with 32 registers does: by the machine code of 260 kernels, where loops with sixteen loads of 4 bytes have all of
// them under way, of 8 bytes eight, of 16 bytes four. More only where nothing else is left to issue.
constexpr uint32_t kMostLoading = 16;
constexpr size_t kSpaces = static_cast<size_t>(Space::kGeneric);
// Calls f for each space that the access may be to: compilers know that the others do not alias.
template <typename Function>
void ForSpacesOf(const Kernel& kernel, uint32_t pc, Function f) {
  const size_t space = kernel.code[pc].space;
  if (space < kSpaces) return f(space);
  for (const Space any : {Space::kGlobal, Space::kShared, Space::kLocal}) f(static_cast<size_t>(any));
}
bool IsFixed(const Kernel& kernel, uint32_t pc) {  // nothing moves across these
  const auto latency = static_cast<LatencyClass>(kernel.costs[pc].latency);
  return latency == LatencyClass::kBarrier || latency == LatencyClass::kAtomic || kernel.code[pc].run == &Fence;
}

}  // namespace

Scoreboard::Scoreboard(const Kernel& kernel, const std::vector<Cost>& costs, const Latencies& latencies)
    : kernel_(kernel),
      costs_(costs),
      latencies_(latencies.ByTerm()),
      regions_(kernel),
      writer_(kernel.virtual_registers, -1) {}

Scoreboard::Wait Scoreboard::WaitOf(uint32_t pc, bool beyond_l1, bool dram) const {
  const auto issue = static_cast<double>(costs_[pc].issue);
  switch (static_cast<LatencyClass>(costs_[pc].latency)) {
    case LatencyClass::kNone:
      return {};
    case LatencyClass::kAlu:
      return {LatencyTerm::kAlu, 1};
    case LatencyClass::kSpecial:
      return {LatencyTerm::kSpecial, 1, 2.0 * issue};
    case LatencyClass::kFp64:
      return {LatencyTerm::kFp64, std::max(1.0, issue / 2)};
    case LatencyClass::kTensor:
      return {LatencyTerm::kTensor, 1};
    case LatencyClass::kShared:
      return {LatencyTerm::kShared, 1};
    case LatencyClass::kShuffle:
      return {LatencyTerm::kShuffle, 1};
    case LatencyClass::kGlobal:
      return {!beyond_l1 ? LatencyTerm::kL1 : dram ? LatencyTerm::kDram : LatencyTerm::kL2, 1};
    case LatencyClass::kLocal:
      return {LatencyTerm::kL1, 1};
    case LatencyClass::kConstant:
      return {LatencyTerm::kConstant, 1};
    case LatencyClass::kAtomic:
      return {LatencyTerm::kAtomic, 1};
    case LatencyClass::kBarrier:
      break;
  }
  return {LatencyTerm::kBarrier, 1};
}

double Scoreboard::Cycles(const Wait& wait) const {
  return wait.term == LatencyTerm::kCount ? 0 : wait.times * latencies_[static_cast<size_t>(wait.term)] + wait.extra;
}

// Longest path first, one instruction a cycle.
Scoreboard::Region Scoreboard::Schedule(const std::vector<uint32_t>& pcs) {
  const auto n = static_cast<uint32_t>(pcs.size());
  struct Edge {
    uint32_t to;
    double latency;
  };
  std::vector<std::vector<Edge>> successors(n);
  std::vector<uint32_t> waiting(n, 0);
  std::vector<int32_t>& writer = writer_;  // by register; -1 outside of this function
  Region region;
  auto edge = [&](uint32_t from, uint32_t to, double latency) {
    successors[from].push_back({to, latency});
    ++waiting[to];
  };
  int32_t last_fixed = -1;
  // By space; a generic address may lie in any.
  std::array<int32_t, kSpaces> last_store;
  last_store.fill(-1);
  std::array<std::vector<uint32_t>, kSpaces> loads;  // since the last store
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t pc = pcs[i];
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      const uint32_t reg = kernel_.mentions[m] / 2;
      if ((kernel_.mentions[m] & 1u) != 0) continue;
      region.operands.push_back(writer[reg] < 0 ? ~static_cast<int32_t>(reg) : writer[reg]);
      if (writer[reg] < 0) continue;
      const auto from = static_cast<uint32_t>(writer[reg]);
      edge(from, i, Cycles(WaitOf(pcs[from], true, false)));
    }
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      if ((kernel_.mentions[m] & 1u) != 0) writer[kernel_.mentions[m] / 2] = static_cast<int32_t>(i);
    }
    region.operands_end.push_back(static_cast<uint32_t>(region.operands.size()));
    if (last_fixed >= 0) edge(static_cast<uint32_t>(last_fixed), i, 0);
    if (IsFixed(kernel_, pc) || i + 1 == n) {
      for (uint32_t j = static_cast<uint32_t>(last_fixed + 1); j < i; ++j) edge(j, i, 0);
      last_fixed = static_cast<int32_t>(i);
    } else if (IsStore(kernel_, pc)) {
      ForSpacesOf(kernel_, pc, [&](size_t space) {
        for (const uint32_t load : loads[space]) edge(load, i, 0);
        if (last_store[space] >= 0) edge(static_cast<uint32_t>(last_store[space]), i, 0);
        loads[space].clear();
        last_store[space] = static_cast<int32_t>(i);
      });
    } else if (IsLoad(kernel_, pc) && (kernel_.code[pc].flags & kFlagReadOnly) == 0) {
      ForSpacesOf(kernel_, pc, [&](size_t space) {
        if (last_store[space] >= 0) edge(static_cast<uint32_t>(last_store[space]), i, 0);
        loads[space].push_back(i);
      });
    }
  }
  // Registers that wait for each load of global memory, and how many instructions still want them.
  std::vector<uint32_t> loading(n, 0), wanted(n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    if (static_cast<LatencyClass>(kernel_.costs[pcs[i]].latency) != LatencyClass::kGlobal) continue;
    const Instruction& in = kernel_.code[pcs[i]];
    loading[i] = std::max<uint32_t>(1, in.count * std::max<uint32_t>(4, in.size) / 4);
  }
  for (const int32_t from : region.operands) {
    if (from >= 0) ++wanted[static_cast<uint32_t>(from)];
  }
  uint32_t waiting_registers = 0;
  std::vector<uint32_t> held;  // loads that are ready, but for registers
  std::vector<double> height(n, 0);
  for (uint32_t i = n; i-- > 0;) {
    for (const Edge& e : successors[i]) height[i] = std::max(height[i], height[e.to] + e.latency + 1);
  }
  struct Ready {
    double key;
    uint32_t index;
    bool operator<(const Ready& other) const { return key != other.key ? key < other.key : index > other.index; }
  };
  std::priority_queue<Ready> available;  // by height
  std::priority_queue<Ready> future;     // by -time
  std::vector<double> time(n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    if (waiting[i] == 0) available.push({height[i], i});
  }
  std::vector<uint32_t>& order = region.order;
  double now = 0;
  while (order.size() < n) {
    if (available.empty() && !future.empty()) now = std::max(now, -future.top().key);
    while (!future.empty() && -future.top().key <= now) {
      available.push({height[future.top().index], future.top().index});
      future.pop();
    }
    uint32_t i = 0;
    if (available.empty()) {  // only more registers help
      i = held.front();
      held.erase(held.begin());
    } else {
      i = available.top().index;
      available.pop();
      if (loading[i] > 0 && waiting_registers > 0 && waiting_registers + loading[i] > kMostLoading) {
        held.push_back(i);
        continue;
      }
    }
    order.push_back(i);
    now += static_cast<double>(costs_[pcs[i]].issue);
    if (wanted[i] > 0) waiting_registers += loading[i];
    for (uint32_t o = i == 0 ? 0 : region.operands_end[i - 1]; o < region.operands_end[i]; ++o) {
      if (region.operands[o] < 0) continue;
      const auto from = static_cast<uint32_t>(region.operands[o]);
      if (--wanted[from] > 0 || loading[from] == 0) continue;
      waiting_registers -= loading[from];
      for (const uint32_t load : held) available.push({height[load], load});
      held.clear();
    }
    for (const Edge& e : successors[i]) {
      time[e.to] = std::max(time[e.to], now + e.latency);
      if (--waiting[e.to] == 0) future.push({-time[e.to], e.to});
    }
  }
  for (const uint32_t pc : pcs) {
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      const uint32_t reg = kernel_.mentions[m] / 2;
      if ((kernel_.mentions[m] & 1u) == 0 || writer[reg] < 0) continue;
      region.left.emplace_back(reg, static_cast<uint32_t>(writer[reg]));
      writer[reg] = -1;
    }
  }
  return region;
}

// Of each instruction issued: the one that it had to wait for, and whether for its result or only for its turn.
struct Scoreboard::Run {
  enum class Why : uint8_t { kTurn, kResult, kPipe };  // to issue after it, for its result, for its pipe
  struct Step {
    uint32_t pc;
    bool beyond_l1, dram;
    Why why;        // it waited for `after`
    int32_t after;  // index of a step, or -1
  };
  Run(size_t registers, bool misses) : dram(misses), values(registers) { pipe_step.fill(-1); }
  const bool dram;
  double now = 0, end = 0;
  int32_t last = -1, end_step = -1;  // the step that `now` and `end` are due to
  bool last_result = false;          // `now` waits for the result of `last`, a barrier
  std::vector<Value> values;         // by register
  std::array<double, static_cast<size_t>(Pipe::kCount)> pipe_free{};
  std::array<int32_t, static_cast<size_t>(Pipe::kCount)> pipe_step{};
  std::vector<Step> steps;
};

// Cycles for which an instruction keeps its pipe from the warp's next one: a scheduler has 32 lanes of float units, 16
// of integer units, 4 of special ones (CUDA C++ Programming Guide, throughput of arithmetic instructions, 9.0).
double Scoreboard::Occupies(uint32_t pc) const {
  const auto use = static_cast<double>(costs_[pc].pipe_use);
  switch (costs_[pc].pipe) {
    case Pipe::kInt:
    case Pipe::kFp64:
    case Pipe::kMemory:
      return 2 * use;
    case Pipe::kSpecial:
      return 8 * use;
    default:
      return use;
  }
}

// Issues instruction `i` of a region; `done` holds what is known of the region's instructions so far.
void Scoreboard::Issue(Run& run, const Region& region, uint32_t i, const TraceEntry& entry,
                       std::vector<Value>& done) const {
  const uint32_t pc = entry.pc;
  double start = run.now;
  Run::Step step{pc, entry.beyond_l1, run.dram && entry.first, run.last_result ? Run::Why::kResult : Run::Why::kTurn,
                 run.last};
  for (uint32_t o = i == 0 ? 0 : region.operands_end[i - 1]; o < region.operands_end[i]; ++o) {
    const int32_t operand = region.operands[o];
    const Value& value = operand >= 0 ? done[static_cast<size_t>(operand)] : run.values[static_cast<size_t>(~operand)];
    if (value.ready <= start) continue;
    start = value.ready;
    step.after = value.step;
    step.why = Run::Why::kResult;
  }
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
  done[i] = {start + cost + Cycles(WaitOf(pc, step.beyond_l1, step.dram)), index};
  if (cost > 0) {  // else it passes its operand's readiness on and does not wait itself
    run.now = start + cost;
    run.last = index;
    run.last_result = false;
  }
  if (static_cast<LatencyClass>(costs_[pc].latency) == LatencyClass::kBarrier) {
    run.now = done[i].ready;
    run.last = index;
    run.last_result = true;
  }
  if (done[i].ready > run.end) {
    run.end = done[i].ready;
    run.end_step = index;
  }
}

LatencyPath Scoreboard::Follow(const Run& run, std::vector<double>* chain) const {
  LatencyPath path;
  auto why = Run::Why::kResult;
  for (int32_t at = run.end_step; at >= 0;) {
    const Run::Step& step = run.steps[static_cast<size_t>(at)];
    const double issue = why == Run::Why::kPipe ? Occupies(step.pc) : static_cast<double>(costs_[step.pc].issue);
    path.issue += issue;
    if (chain != nullptr) (*chain)[step.pc] += issue;
    if (why == Run::Why::kResult) {
      const Wait wait = WaitOf(step.pc, step.beyond_l1, step.dram);
      if (wait.term != LatencyTerm::kCount) path.steps[static_cast<size_t>(wait.term)] += wait.times;
      path.issue += wait.extra;
      if (chain != nullptr) (*chain)[step.pc] += Cycles(wait);
    }
    why = step.why;
    at = step.after;
  }
  return path;
}

BlockLatency Scoreboard::Time(const std::vector<TraceEntry>& trace, std::vector<double>* chain) {
  BlockLatency latency;
  Run hit(kernel_.virtual_registers, false), miss(kernel_.virtual_registers, true);
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
    for (Run* run : {&hit, &miss}) {
      done.assign(stop - at, Value());
      for (const uint32_t i : region->order) Issue(*run, *region, i, trace[at + i], done);
      for (const auto& [reg, writer] : region->left) run->values[reg] = done[writer];
    }
    for (size_t i = at; i < stop; ++i) latency.instructions += static_cast<double>(costs_[trace[i].pc].issue);
    at = stop;
  }
  latency.hit = Follow(hit, nullptr);
  latency.miss = Follow(miss, chain);
  return latency;
}

}  // namespace kgrpo::simt
