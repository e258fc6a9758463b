// The order in which ptxas would issue a region's instructions. Part of the scoreboard.
#include <algorithm>
#include <queue>

#include "simt/lower/cost.h"
#include "simt/state/handlers.h"
#include "simt/time/scoreboard.h"

namespace kgrpo::simt {
namespace {

bool IsStore(const Kernel& kernel, uint32_t pc) {
  return kernel.code[pc].run == &CommitCopies ||
         (kernel.costs[pc].pipe == Pipe::kMemory &&
          static_cast<LatencyClass>(kernel.costs[pc].latency) == LatencyClass::kNone);
}
bool IsLoad(const Kernel& kernel, uint32_t pc) {
  const auto latency = static_cast<LatencyClass>(kernel.costs[pc].latency);
  return latency == LatencyClass::kGlobal || latency == LatencyClass::kShared || latency == LatencyClass::kLocal;
}
// ptxas lets this many registers wait for loads of global memory before it delays further loads, to keep kernels within
// 32 registers. From the machine code of 260 kernels: in loops with sixteen loads, all of 4 bytes are under way, of 8
// bytes eight, of 16 bytes four. More only if nothing else can issue.
constexpr uint32_t kMostLoading = 16;
constexpr size_t kSpaces = static_cast<size_t>(Space::kGeneric);
// Calls f for each space that the access may be to: compilers know that the others do not alias.
template <typename Function>
void ForSpacesOf(const Kernel& kernel, uint32_t pc, Function f) {
  const size_t space = kernel.code[pc].space;
  if (space < kSpaces) return f(space);
  for (const Space any : {Space::kGlobal, Space::kShared, Space::kLocal}) f(static_cast<size_t>(any));
}
// Accesses to memory that others write do not move across these.
bool IsBarrierInstruction(const Kernel& kernel, uint32_t pc) {
  return static_cast<LatencyClass>(kernel.costs[pc].latency) == LatencyClass::kBarrier;
}
bool IsFixed(const Kernel& kernel, uint32_t pc) {  // nothing moves across these
  return static_cast<LatencyClass>(kernel.costs[pc].latency) == LatencyClass::kAtomic ||
         kernel.code[pc].run == &Fence || kernel.code[pc].run == &LoadBulk || kernel.code[pc].run == &MbarrierArrive;
}

}  // namespace

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
  int32_t last_fixed = -1, last_barrier = -1;
  std::vector<uint32_t> since_barrier;  // accesses to memory
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
    const bool read_only = (kernel_.code[pc].flags & kFlagReadOnly) != 0;
    if (IsBarrierInstruction(kernel_, pc) || IsStore(kernel_, pc) || (IsLoad(kernel_, pc) && !read_only)) {
      if (last_barrier >= 0) edge(static_cast<uint32_t>(last_barrier), i, 0);
      if (IsBarrierInstruction(kernel_, pc)) {
        for (const uint32_t access : since_barrier) edge(access, i, 0);
        since_barrier.clear();
        last_barrier = static_cast<int32_t>(i);
      } else {
        since_barrier.push_back(i);
      }
    }
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
    } else if (IsLoad(kernel_, pc) && !read_only) {
      ForSpacesOf(kernel_, pc, [&](size_t space) {
        if (last_store[space] >= 0) edge(static_cast<uint32_t>(last_store[space]), i, 0);
        loads[space].push_back(i);
      });
    }
  }
  // By load of global memory: the registers that it holds, and the number of their uses left.
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
    // What a later region may store to shared memory is loaded early too.
    if (fills_tiles_ && loading[i] > 0 && wanted[i] == 0) height[i] = Cycles(WaitOf(pcs[i], true, false));
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
    if (available.empty()) {  // only held loads are left: exceed the limit
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

}  // namespace kgrpo::simt
