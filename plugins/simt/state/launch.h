// Runs a kernel of a loaded module on the interpreter: checked, plain, or counted for the time model.
#pragma once

#include <array>    // Dim3 of a thread
#include <cstdint>  // counts
#include <functional>
#include <memory>  // accesses
#include <optional>
#include <string>  // findings
#include <unordered_map>
#include <unordered_set>
#include <vector>  // parameters

#include "simt/state/counts.h"
#include "simt/state/coverage.h"
#include "simt/state/memory.h"

namespace kgrpo::simt {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t Count() const { return uint64_t{x} * y * z; }
};

class ModuleInstance;  // lower/module.h

enum class Mode {
  kChecked,  // every check; all blocks
  kPlain,    // bounds and alignment only; all blocks
  kCounted,  // bounds and alignment; only a sample of the blocks runs, and LaunchResult::counts is filled
};

struct RacingReads;    // below
struct EarlierLaunch;  // check/earlier_launches.h

struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> parameters;  // laid out by KernelInfo::parameters
  Mode mode = Mode::kChecked;
  uint64_t instruction_budget = 2'000'000'000;  // warp instructions of the launch; more is kBudgetExceeded
  // kCounted: the number of blocks that run; a grid of no more blocks runs whole. Up to eight times as many if the
  // lanes of an atomic may go to different addresses (see ExtendSample). More if blocks are known to differ (see
  // Stratify).
  uint32_t sampled_blocks = 24;
  uint64_t sample_seed = 0;     // chooses the sampled blocks
  uint32_t further_blocks = 0;  // kCounted: up to this many other blocks run too, counted into LaunchResult::further
  uint64_t further_seed = 0;    // chooses the further blocks
  bool whole = false;           // kCounted: all blocks run, the others uncounted
  bool find_stored = false;     // kCounted: LaunchResult::stored is wanted
  // kCounted and `whole`: warp instructions by block, from an earlier launch like this one. Used to choose the counted
  // blocks. Empty: not known.
  std::vector<uint64_t> known_work;
  uint32_t multiprocessors = 132;  // kCounted: they share the blocks
  uint32_t resident_blocks = 264;  // kCounted: the blocks that run at once
  Latencies latencies;             // kCounted; see LatenciesOf in time_model.h
  uint32_t l1_share = 32 * 1024;   // kCounted; see L1Share in time_model.h
  // The initial byte of shared memory. If given, vector and matrix loads of unwritten bytes are no findings (kChecked):
  // a comparison of launches with several such bytes shows if these values matter.
  std::optional<uint8_t> unwritten_shared;
  // kChecked: of earlier launches like this one. Their values are unset.
  const RacingReads* racing_reads = nullptr;
  // kPlain and kCounted: these blocks run with every check, each for its first `checked_instructions`; in order. If
  // they may depend on other blocks, accesses to global memory are not checked for races, because the others' part in
  // their order is not known.
  std::vector<uint64_t> checked_blocks;
  uint64_t checked_instructions = 0;
  bool only_checked = false;    // kPlain: no other block runs
  uint32_t choose_checked = 0;  // kCounted: so many neighbours, chosen by further_seed, are checked, too
  // kChecked: earlier launches that may still run while this one does, until it waits for them. Null: none.
  const std::vector<std::shared_ptr<EarlierLaunch>>* in_flight = nullptr;
  bool last_block_first = false;  // among the blocks that can be resident at once; else the first
  // What CUDA leaves open. False: of the values that lanes of a warp store to one place by one instruction, the last
  // lane's stays; a volatile load does not see an unordered write the first time (kChecked). True: the first lane's
  // stays; loads see every write.
  bool other_choices = false;
  bool cooperative = false;                // cudaLaunchCooperativeKernel: grid.sync() works
  uint32_t max_shared_bytes = 227 * 1024;  // static + dynamic, a block
  uint32_t max_findings = 8;               // then the launch ends
  // Called about ten times per second. Returns false to end the launch as kBudgetExceeded; may throw. Empty: none.
  std::function<bool()> look;
};

// The kind of a finding. Verdicts are chosen by it.
enum class FindingCode {
  kInvalidLaunch,  // block too large, too much shared memory, wrong parameter bytes
  kOutOfBounds,    // or through a null, freed or host pointer
  kMisaligned,
  kUninitialised,     // a read of bytes that nobody wrote
  kRace,              // two threads, one location, no order between them, at least one write
  kDivergentBarrier,  // threads of a block wait at different barriers or for threads that never arrive
  kInvalidShuffle,    // a warp operation whose mask names threads that are elsewhere, or not the caller
  kTrap,              // assert failed, __trap(), write to constant memory
  kUnsupported,       // perhaps correct, but not supported here
  kOutOfMemory,       // the blocks that run at once need more than is available
};
const char* FindingName(FindingCode code);  // "out_of_bounds", "race", ...

struct ThreadId {
  Dim3 block{0, 0, 0};
  Dim3 thread{0, 0, 0};
};

struct Finding {
  FindingCode code = FindingCode::kTrap;
  // The launch ended here, as it would on a GPU (out of bounds, misaligned, trap) or must (deadlock).
  bool fatal = false;
  std::string kernel;
  std::string file;  // of the CUDA source where -lineinfo gave one, else empty
  int line = 0;      // 0 where unknown
  ThreadId thread;   // the thread that the finding is about
  bool has_other = false;
  ThreadId other;      // the other thread (races)
  int other_line = 0;  // the other's source line, 0 where unknown
  DeviceAddress address = 0;
  std::string array;    // "shared array 'tile'", "'x' (4096 bytes)"
  std::string message;  // one whole sentence that says all of this
  // A further launch decides if the kernel uses the value: kUninitialised with LaunchConfig::unwritten_shared, kRace
  // with LaunchConfig::racing_reads.
  bool may_be_unused = false;
  uint64_t times = 1;  // how often this code was seen at this line
};

// What a launch could not decide, and a further one like it can.
//
// Loads of values that another thread overwrites, with no order between the two: at the store it is not known if the
// loaded value is used. And allocations in which bytes were written that more threads had read than a checked launch
// keeps (RaceShadow): the further launch keeps all of them.
struct RacingReads {
  struct Read {
    uint32_t race = 0;  // index in `races`
    uint32_t apart =
        0;  // the lane of the read's warp (a bit) that overwrites it, if only one does: its read comes before
  };
  std::vector<Finding> races;                // one for each pair of instructions
  std::unordered_map<uint64_t, Read> reads;  // by RacingKey (race.cc)
  std::unordered_set<uint64_t> crowded;      // by Allocation::place
  // Adds what others found; returns false if that is nothing new.
  bool Add(const RacingReads& others);
};

enum class LaunchStatus {
  kCompleted,       // ran to its end; findings may still be there
  kFault,           // ended early by the last finding
  kBudgetExceeded,  // instruction budget used up: a time-out
};

// Addresses [begin, end).
struct StoredRange {
  DeviceAddress begin = 0, end = 0;
};

struct LaunchResult {
  LaunchStatus status = LaunchStatus::kCompleted;
  std::vector<Finding> findings;   // one a code and source line, in order of discovery
  std::vector<std::string> notes;  // kChecked: sentences, without a full stop, about correct but notable facts
  std::string unfinished;          // kBudgetExceeded: a sentence that says which thread was where
  RacingReads racing_reads;        // kChecked: new ones; the first is a finding that may be unused
  std::optional<Finding> choice;   // kChecked: the race that is the first of the open choices made, if any was
  uint64_t warp_instructions = 0;
  uint64_t blocks_run = 0;
  Coverage coverage;
  std::string printed;  // by printf, at most 64 KiB
  Counts counts;        // kCounted
  // kCounted: the counts of further_blocks; sampled_blocks is 0 if none ran.
  Counts further;
  // kChecked, if the kernel let the next launch begin: its accesses, and whether it did so before it had itself waited
  // for the launches before.
  std::shared_ptr<EarlierLaunch> accesses;
  bool let_next_begin_early = false;
  bool further_failed = false;  // a further block faulted, or took many times as long as the sampled ones
  // kCounted: data, or too many other causes, decide how much each block does, so no sample represents the rest: all
  // blocks must run.
  bool must_run_whole = false;
  // kCounted, if all blocks ran: the warp instructions by block, and true if the counted blocks represent the others.
  std::vector<uint64_t> work;
  bool sample_stands = true;
  // kCounted: the blocks that ran show that the others are right if they are: see ControlFlow::alike.
  bool shows_others = true;
  // kCounted, if some blocks did not run and `find_stored`: what all blocks together store to global memory, in order
  // and apart; nothing if that depends on data.
  std::optional<std::vector<StoredRange>> stored;
  bool data_decides = false;  // data decides how much each block does; known from the kernel's code alone
  bool reads_clock = false;   // also known from the code alone
  bool independent = false;   // no block can observe the work of the launch's other blocks
};

// Runs kernel `kernel` (an index in instance.module().kernels()). Deterministic: same module, memory contents and
// configuration, same result. Reads and writes instance.memory(). Several launches may run at once in different threads
// on different memories. A fault of the kernel is a finding; throws kgrpo::Error(KGRPO_ERROR_INVALID) only for a kernel
// index that does not exist.
LaunchResult Launch(ModuleInstance& instance, int kernel, const LaunchConfig& config);

}  // namespace kgrpo::simt
