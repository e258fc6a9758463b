// The state of a launch while it runs: grid, blocks, warps. Handlers work on it; run_grid.cc schedules it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt/state/launch.h"
#include "simt/state/lazy_bytes.h"
#include "simt/state/program.h"
#include "simt/state/race_shadow.h"

namespace kgrpo::simt {

struct Grid;
struct Block;
class AccessCounter;
class Waits;

enum class WarpState : uint8_t { kReady, kBarrier, kDone };

// Lanes of a warp at one pc. A parked group waits at a warp operation or barrier for the other lanes it names.
struct LaneGroup {
  uint32_t pc = 0;
  uint32_t mask = 0;
  bool parked = false;
};

// One cp.async of a lane that no wait has completed yet.
struct PendingCopy {
  uint8_t lane;
  uint8_t bytes;         // written to shared memory
  uint8_t source_bytes;  // bytes read; the rest is zero
  uint32_t shared_offset;
  uint32_t pc;
  std::array<std::byte, 16> data;
};

// One cp.async.bulk of a lane that is not complete; see bulk_copies.cc.
struct BulkCopy {
  bool loads = false;        // from global to shared memory; else the other way
  bool source_read = false;  // of a store: only its destination still waits
  uint8_t lane = 0;
  int warp = 0;
  uint32_t pc = 0;
  uint32_t bytes = 0;
  uint64_t shared_offset = 0;
  DeviceAddress global = 0;
  uint32_t barrier = 0;  // of a load: the offset of its mbarrier
  uint32_t group = 0;    // of a store: how many groups its thread had committed before
};

// What a warp knows of other warps' releases: of everything released until `acquired`, and of the releasing stores and
// atomics themselves until `observed`.
struct ReleaseTimes {
  uint64_t acquired = 0, observed = 0;
  void Join(const ReleaseTimes& others) {
    acquired = std::max(acquired, others.acquired);
    observed = std::max(observed, others.observed);
  }
};

// What is made known to other warps: the accesses before it, as Warp::known, and Warp::times.
struct Announced {
  std::vector<uint32_t> known;  // empty: nothing
  ReleaseTimes times;
  void Join(const std::vector<uint32_t>& others, const ReleaseTimes& of_others) {
    known.resize(std::max(known.size(), others.size()), 0);
    for (size_t w = 0; w < others.size(); ++w) known[w] = std::max(known[w], others[w]);
    times.Join(of_others);
  }
};

// A warp's part in check/waits.h.
struct WaitState {
  double now = 0;         // its clock, in cycles
  uint64_t at = 0;        // Warp::executed then
  uint64_t place = 0;     // the last access that may poll: its instruction and addresses, or 0
  uint64_t found = 0;     // the values there
  uint64_t executed = 0;  // Warp::executed, and `now`, when it first found them
  double began = 0;
  size_t traced = 0;  // what the counter had traced then
  bool polls = false;
};

struct Warp {
  std::byte* registers = nullptr;
  std::array<const std::byte*, 2> sources{};  // the registers and the constants
  uint32_t pc = 0;
  uint32_t limit = 0;   // pc at which the running group calls Reschedule: another group's pc, or 0 for "now"
  uint32_t active = 0;  // lanes of the running group
  uint32_t alive = 0;   // lanes that have not exited
  uint32_t carry = 0;   // the condition code of add.cc
  WarpState state = WarpState::kReady;
  uint8_t group_count = 0;  // waiting groups, without the running one
  std::array<LaneGroup, kLanes> groups;
  int id = 0;  // within the block
  Block* block = nullptr;
  Grid* grid = nullptr;
  // barrier at which it waits
  int barrier = -1;
  uint32_t barrier_pc = 0;
  uint32_t barrier_predicate = 0;
  // race detection: see race_shadow.h
  uint32_t clock = 1;
  // By agent (the block's warps and, with bulk copies, the copy engine): accesses with a lower clock happened before.
  // Then, again by agent, the accesses that a fence has covered. Then, with bulk copies, those that a fence.proxy.async
  // has covered.
  std::vector<uint32_t> known;
  bool fenced = false;        // a fence covers something
  Announced fenced_in_block;  // covered by the last fence of any scope
  ReleaseTimes times;
  uint32_t all_before = 0;                    // events of the block with lower numbers: a barrier of all was since
  uint32_t releases = 0;                      // the time of the release that the running instruction is, or 0
  std::array<uint32_t, kLanes> lane_known{};  // by lane: accesses of its warp with a lower clock happened before
  // Since lanes have synchronised without the rest of the warp: the same by lane * kLanes + the other lane.
  std::vector<uint32_t> pair_known;
  std::vector<uint32_t> events;  // by pc: the event noted last
  // cp.async: groups of pending copies; the last is the open one
  std::vector<std::vector<PendingCopy>> copies;
  std::array<uint32_t, kLanes> bulk_groups{};  // by lane: groups of bulk copies that it has committed
  std::vector<std::vector<uint64_t>> calls;    // by lane: saved state that returns restore (call_ops.cc)
  uint64_t executed = 0;
  uint64_t splits = 0;  // branches at which the lanes parted
  bool yield = false;   // ends the warp's turn
  WaitState wait;       // (counted)
  uint32_t waited = 0;  // (checked) lanes known to come after a griddepcontrol.wait
  // (checked) see unset_uses.h
  std::vector<UnsetRegister> unset;
  bool tainted = false;                                                // a register may be unset
  std::unordered_map<uint32_t, std::array<Suspect, kLanes>> suspects;  // by pc of the load: the last ones
  // Of the load that runs: lanes of suspects by element, and the load that they come from first.
  std::array<uint32_t, 8> loaded{};
  uint32_t loaded_at = 0;
  bool suspicious = false;  // any
};

struct BarrierState {
  uint32_t arrived_warps = 0;  // a bit a warp
  uint32_t arrived_threads = 0;
  uint32_t expected_threads = 0;  // 0: the whole block
  Announced announced;            // (checked) by bar.arrive
};

// An mbarrier: see mbarrier_ops.cc.
struct PhaseBarrier {
  uint64_t phase = 0;
  int64_t expected = 0, pending = 0;  // arrivals of a phase, and those that it still waits for
  int64_t bytes = 0;                  // that copies still have to bring
  uint32_t copies = 0;                // pending bulk copies
  Announced announced, complete;      // (checked) so far, and by the last complete phase
};

struct Block {
  uint64_t index = 0;
  Dim3 id{0, 0, 0};
  std::vector<Warp> warps;
  std::unique_ptr<std::byte[]> registers;
  std::byte* shared = nullptr;
  std::vector<std::byte> shared_bytes;
  std::vector<uint64_t> shared_written;  // a bit a byte (checked)
  std::vector<uint64_t> shared_pending;  // one bit per byte that a pending copy will write (checked)
  std::vector<uint32_t> shared_sources;  // by 16 bytes: how many bulk stores will read them (checked)
  uint32_t copies_pending = 0;           // number of pending copies; bulk copies count per 16 bytes (checked)
  std::vector<BulkCopy> bulk_copies;     // that are not complete, in order of issue
  std::unordered_map<uint64_t, Announced> published;  // (checked) by address: released to warps of this block
  std::vector<AccessCell> grid_waits;                 // (checked) one for each griddepcontrol.wait that a warp executed
  uint32_t bulk_clock = 0;                            // (checked) the clock of the copy engine
  RaceShadow shared_shadow;                           // (checked)
  LazyBytes local;                                    // lane-major within a warp, warps one after the other
  std::vector<uint64_t> local_written;                // a bit a byte (checked)
  std::unordered_map<uint64_t, Suspect>
      stored_suspects;  // (checked) by StoredKey of the unwritten bytes that they left
  std::array<BarrierState, 16> barriers{};
  std::unordered_map<uint32_t, PhaseBarrier> phase_barriers;  // by offset in shared memory
  uint32_t done_warps = 0;
  uint32_t next_warp = 0;  // round robin
  uint32_t polls = 0;      // atomics and volatile loads since the last yield: spinning blocks yield
};

struct RecentShadow {
  const Allocation* owner = nullptr;
  RaceShadow* shadow = nullptr;
};

// Thrown by handlers when the launch must end: the finding has been recorded.
struct Fault {};

struct Grid {
  ModuleInstance* instance = nullptr;
  DeviceMemory* memory = nullptr;
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  const Instruction* code = nullptr;      // that runs: the kernel's, or watched_code
  std::vector<Instruction> watched_code;  // (checked) the kernel's, with WatchUnset as handler of what is watched
  bool watches_loads = false;             // (checked) every instruction that may use an unset value is watched
  const LaunchConfig* config = nullptr;
  LaunchResult* result = nullptr;
  AccessCounter* counter = nullptr;  // kCounted
  Waits* waits = nullptr;            // kCounted, if warps may wait for one another
  bool checked = false;              // the block that runs is
  bool checks_global_order = false;  // (checked) races in global memory are findings
  Coverage coverage;
  std::vector<uint32_t> constants;  // patched
  std::vector<uint8_t> parameters;
  uint32_t shared_limit = 0;               // bytes of shared memory with red zones
  std::vector<SharedArray> shared_arrays;  // the kernel's and the dynamic one
  uint32_t warps_per_block = 0;
  uint32_t agents = 0;              // (checked) agents per block: see Warp::known
  uint32_t bulk_stores = 0;         // bulk copies to global memory that are not complete, of all blocks
  uint64_t budget = 0;              // warp instructions left
  uint64_t next_look = UINT64_MAX;  // the budget at which the launch looks at the time next; see LaunchConfig::look
  std::chrono::steady_clock::time_point next_look_time{};
  uint64_t time = 1;                                                          // ticks at releases
  uint64_t steps = 0;                                                         // instructions, for %clock
  std::vector<AccessEvent> events;                                            // (checked) see race_shadow.h
  std::unordered_map<const Allocation*, RaceShadow> shadows;                  // (checked) of global memory
  std::array<RecentShadow, 4> recent_shadows{};                               // the most recently used of these
  std::unordered_map<uint64_t, std::vector<std::vector<Released>>> released;  // (checked) by block and warp, in order
  std::unordered_map<DeviceAddress, uint64_t> release_times;                  // (checked) of the last release, by word
  bool lets_next_begin = false;         // griddepcontrol.launch_dependents was executed
  bool lets_next_begin_early = false;   // (checked) by a thread that had not waited for the launches before
  bool compares_launches = false;       // (checked) LaunchConfig::in_flight is set, and no event was forgotten
  bool hides_writes = false;            // (checked) see open_choices.h
  std::vector<Block*> resident;         // running blocks
  std::array<Allocation*, 8> recent{};  // most recently accessed allocations

  Allocation* workspace = nullptr;  // for grid.sync
};

// ---- operands ----

inline const std::byte* Source(const Warp& warp, Operand operand) {
  // Branch-free: the kind of operand cannot be predicted from the last instruction's.
  return warp.sources[static_cast<uint32_t>(operand) >> 31] + (operand ^ (operand >> 31));
}
template <typename T>
inline const T* SourceAs(const Warp& warp, Operand operand) {
  return reinterpret_cast<const T*>(Source(warp, operand));
}
template <typename T>
inline T* TargetAs(Warp& warp, Operand operand) {
  return reinterpret_cast<T*>(warp.registers + operand);
}
inline uint32_t PredicateOf(const Warp& warp, Operand operand) { return *SourceAs<uint32_t>(warp, operand); }
inline void SetPredicate(Warp& warp, Operand operand, uint32_t mask, uint32_t value) {
  uint32_t* target = TargetAs<uint32_t>(warp, operand);
  *target = (*target & ~mask) | (value & mask);
}

// Charges work beyond that of one instruction against the launch's budget.
inline void Charge(Grid& grid, uint64_t instructions) { grid.budget -= std::min(instructions, grid.budget); }
// Charges a walk through a list of copies.
inline void ChargeWalk(Grid& grid, size_t copies) { Charge(grid, copies / 16); }

// Notes edges that ran; `at`: index in Coverage::edges.
void CoverFirst(Warp& warp, uint32_t at, Edges edges);  // control_ops.cc
inline void Cover(Warp& warp, uint32_t at, Edges edges) {
  const Grid& grid = *warp.grid;
  if (grid.checked) edges |= static_cast<Edges>(edges << kCheckedShift);
  if ((grid.coverage.edges[at] & edges) != edges) [[unlikely]]
    CoverFirst(warp, at, edges);
}

// ---- starting (launch_start.cc) ----

// Fills in the constants that only the launch knows.
void PatchConstants(Grid& grid);
// The size of Coverage::edges.
inline size_t EdgePlaces(const Kernel& kernel) { return kernel.code.size() + kernel.branch_targets.size(); }
// Resets `block` to the start of the grid's block number `index`.
void StartBlock(Block& block, Grid& grid, uint64_t index);

// ---- control (control_ops.cc) ----

// Splits, merges and chooses the group of lanes to run next; called when warp.pc reaches warp.limit. False: none can
// run now (the warp waits at a barrier or is done).
bool Reschedule(Warp& warp);
// Completes those barriers of the block whose warps have all arrived (barrier_ops.cc).
void ReleaseBarriers(Block& block);

// ---- findings (findings.cc) ----

ThreadId IdOf(const Warp& warp, int lane);
ThreadId IdOf(const Grid& grid, uint64_t block, uint32_t thread);
// The line of the source that the instruction at `pc` comes from.
inline int LineAt(const Grid& grid, uint32_t pc) { return grid.kernel->lines[pc].line; }
// "block (1,0,0) thread (5,0,0)"
std::string NameThread(const ThreadId& id);
// Records a finding at the instruction `pc`; `text` is completed with the place. Throws Fault where it is fatal or too
// many.
void Report(Warp& warp, uint32_t pc, int lane, FindingCode code, bool fatal, DeviceAddress address, std::string array,
            const std::string& text, const ThreadId* other = nullptr, int other_line = 0);
// The finding that Report records.
Finding MakeFinding(const Grid& grid, uint32_t pc, const ThreadId& thread, FindingCode code, DeviceAddress address,
                    std::string array, const std::string& text);
// Records a finding unless one of its code and line is known. Throws Fault where it is fatal or too many.
void AddFinding(Grid& grid, Finding finding);
// Records a note (LaunchResult::notes), which is no accusation: the fact, and more about its first place.
void NoteFact(Grid& grid, const std::string& fact, const std::string& more);
// "at byte 4 of the thread's local arrays (32 bytes)"
std::string DescribeLocal(const Grid& grid, uint64_t offset);
// Describes the first thread of a block that has not ended: "kernel 'scan', line 12: thread ... still runs".
std::string DescribeUnfinished(const Block& block);
// "shared array 'tile' (4224 bytes)", or the place relative to the nearest array.
std::string DescribeShared(const Grid& grid, uint64_t offset, uint32_t size);

}  // namespace kgrpo::simt
