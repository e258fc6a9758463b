#include "interpreter/simt/scoreboard.h"

#include <algorithm>

#include "interpreter/simt/cost.h"
#include "interpreter/simt/handlers.h"

namespace kgrpo::simt {

Scoreboard::Scoreboard(const Kernel& kernel, const std::vector<Cost>& costs, const Latencies& latencies)
    : kernel_(kernel),
      costs_(costs),
      latencies_(latencies.ByTerm()),
      regions_(kernel),
      writer_(kernel.virtual_registers, -1) {}

Scoreboard::Wait Scoreboard::WaitOf(uint32_t pc, bool beyond_l1, bool dram) const {
  const auto issue = static_cast<double>(costs_[pc].issue);
  if (kernel_.code[pc].run == &LoadBulk && beyond_l1) return {dram ? LatencyTerm::kDram : LatencyTerm::kL2, 1};
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

// Records for each issued instruction the one that it waited for, and the reason.
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
  std::vector<Value> arrivals;  // of bulk loads
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
  Run::Step step{pc, entry.beyond_l1 != 0, run.dram && entry.first,
                 run.last_result ? Run::Why::kResult : Run::Why::kTurn, run.last};
  for (uint32_t o = i == 0 ? 0 : region.operands_end[i - 1]; o < region.operands_end[i]; ++o) {
    const int32_t operand = region.operands[o];
    const int32_t outside = ~operand;  // a value from before the region
    const Value& value = operand >= 0 ? done[static_cast<size_t>(operand)] : run.values[static_cast<size_t>(outside)];
    if (value.ready <= start) continue;
    start = value.ready;
    step.after = value.step;
    step.why = Run::Why::kResult;
  }
  if (entry.awaits != 0 && entry.awaits <= run.arrivals.size() && run.arrivals[entry.awaits - 1].ready > start) {
    start = run.arrivals[entry.awaits - 1].ready;
    step.after = run.arrivals[entry.awaits - 1].step;
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

// A bulk load, of this warp or another, is on its way from now on.
void Scoreboard::IssueCopy(Run& run, const TraceCopy& copy) const {
  const Run::Step step{copy.pc, true, run.dram && copy.first, run.last_result ? Run::Why::kResult : Run::Why::kTurn,
                       run.last};
  const auto index = static_cast<int32_t>(run.steps.size());
  run.steps.push_back(step);
  const double issued = run.now + static_cast<double>(costs_[copy.pc].issue);
  run.arrivals.push_back({issued + Cycles(WaitOf(copy.pc, true, step.dram)), index});
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

BlockLatency Scoreboard::Time(const std::vector<TraceEntry>& trace, const std::vector<TraceCopy>& copies,
                              std::vector<double>* chain) {
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
      for (const uint32_t i : region->order) {
        while (run->arrivals.size() < copies.size() && copies[run->arrivals.size()].position <= at + i)
          IssueCopy(*run, copies[run->arrivals.size()]);
        Issue(*run, *region, i, trace[at + i], done);
      }
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
