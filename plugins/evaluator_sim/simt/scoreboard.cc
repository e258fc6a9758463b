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
bool IsFixed(const Kernel& kernel, uint32_t pc) {  // nothing moves across these
  const auto latency = static_cast<LatencyClass>(kernel.costs[pc].latency);
  return latency == LatencyClass::kBarrier || latency == LatencyClass::kAtomic || kernel.code[pc].run == &Fence;
}

}  // namespace

Scoreboard::Scoreboard(const Kernel& kernel, const std::vector<Cost>& costs, const Latencies& latencies)
    : kernel_(kernel),
      costs_(costs),
      latencies_(latencies),
      block_of_(kernel.code.size() + 1),
      orders_(kernel.blocks.size()) {
  for (size_t i = 0; i < kernel.blocks.size(); ++i) block_of_[kernel.blocks[i].first] = static_cast<uint32_t>(i + 1);
}

double Scoreboard::LatencyOf(uint32_t pc, bool beyond_l1, bool dram) const {
  switch (static_cast<LatencyClass>(costs_[pc].latency)) {
    case LatencyClass::kNone:
      return 0;
    case LatencyClass::kAlu:
      return latencies_.alu;
    case LatencyClass::kSpecial:
      return latencies_.special + 2.0 * static_cast<double>(costs_[pc].issue);
    case LatencyClass::kFp64:
      return latencies_.fp64 * std::max(1.0, static_cast<double>(costs_[pc].issue) / 2);
    case LatencyClass::kTensor:
      return latencies_.tensor;
    case LatencyClass::kShared:
      return latencies_.shared;
    case LatencyClass::kShuffle:
      return latencies_.shuffle;
    case LatencyClass::kGlobal:
      return beyond_l1 ? (dram ? latencies_.dram : latencies_.l2) : latencies_.l1;
    case LatencyClass::kLocal:
      return latencies_.l1;
    case LatencyClass::kConstant:
      return latencies_.constant;
    case LatencyClass::kAtomic:
      return latencies_.atomic;
    case LatencyClass::kBarrier:
      return latencies_.barrier;
  }
  return 0;
}

// Longest path first, one instruction a cycle.
void Scoreboard::Schedule(const BasicBlock& block) {
  const uint32_t n = block.last - block.first;
  struct Edge {
    uint32_t to;
    double latency;
  };
  std::vector<std::vector<Edge>> successors(n);
  std::vector<uint32_t> waiting(n, 0);
  std::vector<int32_t> writer(kernel_.virtual_registers, -1);
  auto edge = [&](uint32_t from, uint32_t to, double latency) {
    successors[from].push_back({to, latency});
    ++waiting[to];
  };
  int32_t last_store = -1, last_fixed = -1;
  std::vector<uint32_t> loads;  // since the last store
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t pc = block.first + i;
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      const uint32_t reg = kernel_.mentions[m] / 2;
      if ((kernel_.mentions[m] & 1u) != 0 || writer[reg] < 0) continue;
      const auto from = static_cast<uint32_t>(writer[reg]);
      edge(from, i, LatencyOf(block.first + from, true, false));
    }
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      if ((kernel_.mentions[m] & 1u) != 0) writer[kernel_.mentions[m] / 2] = static_cast<int32_t>(i);
    }
    if (last_fixed >= 0) edge(static_cast<uint32_t>(last_fixed), i, 0);
    if (IsFixed(kernel_, pc) || i + 1 == n) {
      for (uint32_t j = static_cast<uint32_t>(last_fixed + 1); j < i; ++j) edge(j, i, 0);
      last_fixed = static_cast<int32_t>(i);
    } else if (IsStore(kernel_, pc)) {
      for (const uint32_t load : loads) edge(load, i, 0);
      if (last_store >= 0) edge(static_cast<uint32_t>(last_store), i, 0);
      loads.clear();
      last_store = static_cast<int32_t>(i);
    } else if (IsLoad(kernel_, pc) && (kernel_.code[pc].flags & kFlagReadOnly) == 0) {
      if (last_store >= 0) edge(static_cast<uint32_t>(last_store), i, 0);
      loads.push_back(i);
    }
  }
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
  std::vector<uint32_t>& order = orders_[block_of_[block.first] - 1];
  double now = 0;
  while (order.size() < n) {
    if (available.empty()) now = std::max(now, -future.top().key);
    while (!future.empty() && -future.top().key <= now) {
      available.push({height[future.top().index], future.top().index});
      future.pop();
    }
    const uint32_t i = available.top().index;
    available.pop();
    order.push_back(block.first + i);
    now += static_cast<double>(costs_[block.first + i].issue);
    for (const Edge& e : successors[i]) {
      time[e.to] = std::max(time[e.to], now + e.latency);
      if (--waiting[e.to] == 0) future.push({-time[e.to], e.to});
    }
  }
}

BlockLatency Scoreboard::Time(const std::vector<TraceEntry>& trace, std::vector<double>* waits) {
  BlockLatency result;
  std::vector<double> ready_hit(kernel_.virtual_registers, 0), ready_miss(kernel_.virtual_registers, 0);
  std::vector<uint8_t> beyond(kernel_.code.size(), 0);
  std::vector<uint32_t> maker(kernel_.virtual_registers, 0);  // the pc of what a register waits for
  uint32_t last_maker = 0;
  double hit = 0, miss = 0, end_hit = 0, end_miss = 0;
  auto issue = [&](uint32_t pc) {
    double start_hit = hit, start_miss = miss;
    uint32_t awaited = pc;
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      if ((kernel_.mentions[m] & 1u) != 0) continue;
      start_hit = std::max(start_hit, ready_hit[kernel_.mentions[m] / 2]);
      if (ready_miss[kernel_.mentions[m] / 2] > start_miss) {
        start_miss = ready_miss[kernel_.mentions[m] / 2];
        awaited = maker[kernel_.mentions[m] / 2];
      }
    }
    const auto cost = static_cast<double>(costs_[pc].issue);
    // An instruction that costs nothing passes its operand's readiness on and does not wait itself.
    if (cost > 0) {
      (*waits)[awaited] += start_miss - miss;
      hit = start_hit + cost;
      miss = start_miss + cost;
    }
    const double done_hit = start_hit + cost + LatencyOf(pc, beyond[pc] != 0, false);
    const double done_miss = start_miss + cost + LatencyOf(pc, beyond[pc] != 0, true);
    const auto latency = static_cast<LatencyClass>(costs_[pc].latency);
    if (latency == LatencyClass::kBarrier) {
      (*waits)[pc] += done_miss - miss;
      hit = done_hit;
      miss = done_miss;
    }
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      if ((kernel_.mentions[m] & 1u) == 0) continue;
      ready_hit[kernel_.mentions[m] / 2] = done_hit;
      ready_miss[kernel_.mentions[m] / 2] = done_miss;
      maker[kernel_.mentions[m] / 2] = cost > 0 ? pc : awaited;
    }
    if (done_miss > end_miss) last_maker = cost > 0 ? pc : awaited;
    end_hit = std::max(end_hit, done_hit);
    end_miss = std::max(end_miss, done_miss);
    result.instructions += cost;
  };
  for (size_t at = 0; at < trace.size();) {
    const uint32_t index = block_of_[trace[at].pc];
    size_t stop = at + 1;
    while (stop < trace.size() && trace[stop].pc == trace[stop - 1].pc + 1 && block_of_[trace[stop].pc] == 0) ++stop;
    for (size_t i = at; i < stop; ++i) beyond[trace[i].pc] = trace[i].beyond_l1 ? 1 : 0;
    const bool whole = index != 0 && stop - at == kernel_.blocks[index - 1].last - kernel_.blocks[index - 1].first;
    if (whole) {
      if (orders_[index - 1].empty()) Schedule(kernel_.blocks[index - 1]);
      for (const uint32_t pc : orders_[index - 1]) issue(pc);
    } else {
      for (size_t i = at; i < stop; ++i) issue(trace[i].pc);
    }
    at = stop;
  }
  if (end_miss > miss) (*waits)[last_maker] += end_miss - miss;
  result.cycles_hit = std::max(hit, end_hit);
  result.cycles_miss = std::max(miss, end_miss);
  return result;
}

}  // namespace kgrpo::simt
