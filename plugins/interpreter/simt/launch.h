// Runs a kernel of a loaded module on the interpreter: checked, plain, or counted for the time model.
#ifndef KGRPO_INTERPRETER_SIMT_LAUNCH_H_
#define KGRPO_INTERPRETER_SIMT_LAUNCH_H_

#include <array>    // Dim3 of a thread
#include <cstdint>  // counts
#include <optional>
#include <string>  // findings
#include <vector>  // parameters

#include "interpreter/simt/counts.h"
#include "interpreter/simt/module.h"

namespace kgrpo::simt {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t Count() const { return uint64_t{x} * y * z; }
};

enum class Mode {
  kChecked,  // every check; all blocks
  kPlain,    // bounds and alignment only; all blocks
  kCounted,  // bounds and alignment; only a sample of the blocks runs, and LaunchResult::counts is filled
};

struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> parameters;  // laid out by KernelInfo::parameters
  Mode mode = Mode::kChecked;
  uint64_t instruction_budget = 2'000'000'000;  // warp instructions of the launch; more is kBudgetExceeded
  // kCounted: so many, or up to eight times as many where the lanes of an atomic may go to different addresses (see
  // ExtendSample); a grid of no more blocks runs whole. More where blocks are known to differ: see Stratify.
  uint32_t sampled_blocks = 24;
  uint64_t sample_seed = 0;     // which ones
  uint32_t further_blocks = 0;  // kCounted: up to so many others run too, counted into LaunchResult::further
  uint64_t further_seed = 0;    // which ones
  bool whole = false;           // kCounted: all blocks run, the others uncounted
  // kCounted and `whole`: by block, warp instructions that an earlier launch like this one has found them to execute.
  // Used to choose the counted blocks. Empty: not known.
  std::vector<uint64_t> known_work;
  uint32_t multiprocessors = 132;  // kCounted: who share the blocks
  uint32_t resident_blocks = 264;  // kCounted: as many run at once
  Latencies latencies;             // kCounted; Device::latencies
  uint32_t l1_share = 32 * 1024;   // kCounted; see L1Share in time_model.h
  // The initial byte of shared memory. If it is given, vector and matrix loads of what no thread has written
  // are no findings (kChecked): whether their values matter shows where launches with several such bytes differ.
  std::optional<uint8_t> unwritten_shared;
  bool last_block_first = false;           // of all that can be resident; else the first one
  bool cooperative = false;                // cudaLaunchCooperativeKernel: grid.sync() works
  uint32_t max_shared_bytes = 227 * 1024;  // static + dynamic, a block
  uint32_t max_findings = 8;               // then it stops looking
};

// The kind of a finding. A code a kind, so that a verdict can be chosen by it.
enum class FindingCode {
  kInvalidLaunch,  // block too large, too much shared memory, wrong parameter bytes
  kOutOfBounds,    // or through a null, freed or host pointer
  kMisaligned,
  kUninitialised,     // a read of bytes that nobody wrote
  kRace,              // two threads, one location, no order between them, at least one write
  kDivergentBarrier,  // threads of a block wait at different barriers or for threads that never arrive
  kInvalidShuffle,    // a warp operation whose mask names threads that are elsewhere, or not the caller
  kTrap,              // assert failed, __trap(), write to constant memory
  kUnsupported,       // correct perhaps, but beyond what can be followed here
};
const char* FindingName(FindingCode code);  // "out_of_bounds", "race", ...

struct ThreadId {
  Dim3 block{0, 0, 0};
  Dim3 thread{0, 0, 0};
};

struct Finding {
  FindingCode code = FindingCode::kTrap;
  bool fatal =
      false;  // the launch ended here, as it would on a GPU (out of bounds, misaligned, trap) or must (deadlock)
  std::string kernel;
  std::string file;  // of the CUDA source where -lineinfo gave one, else empty
  int line = 0;      // 0 where unknown
  ThreadId thread;   // who
  bool has_other = false;
  ThreadId other;      // with whom (races)
  int other_line = 0;  // the other's source line, 0 where unknown
  DeviceAddress address = 0;
  std::string array;           // "shared array 'tile'", "'x' (4096 bytes)"
  std::string message;         // one whole sentence that says all of this
  bool may_be_unused = false;  // kUninitialised: of a vector or matrix in shared memory, of which some may be ignored
  uint64_t times = 1;          // how often this code was seen at this line
};

enum class LaunchStatus {
  kCompleted,       // ran to its end; findings may still be there
  kFault,           // ended early by the last finding
  kBudgetExceeded,  // instruction budget used up: a time-out
};

struct LaunchResult {
  LaunchStatus status = LaunchStatus::kCompleted;
  std::vector<Finding> findings;   // one a code and source line, in order of discovery
  std::vector<std::string> notes;  // kChecked: sentences, without a full stop, of what is correct and yet worth a word
  std::string unfinished;          // kBudgetExceeded: a sentence that says which thread was where
  uint64_t warp_instructions = 0;
  uint64_t blocks_run = 0;
  std::string printed;  // by printf, at most 64 KiB
  Counts counts;        // kCounted
  // kCounted: what further_blocks were counted to do; sampled_blocks is 0 where there were none.
  Counts further;
  bool further_failed = false;  // a further block faulted, or took many times as long as the sampled ones
  // kCounted: data, or too much else, decides how much each block does: unless all run, none stand for the others.
  bool must_run_whole = false;
  // kCounted, where all blocks ran: what each of them executed, by block; and whether those counted stand for them.
  std::vector<uint64_t> work;
  bool sample_stands = true;
  bool data_decides = false;  // how much each block does: known from the kernel's code alone
  bool reads_clock = false;   // likewise
  bool independent = false;   // no block can tell what the launch's other blocks have done
};

// Runs kernel `kernel` (an index in instance.module().kernels()). Deterministic: same module, memory contents and
// configuration, same result. Reads and writes instance.memory(). Several launches may run at once in different threads
// on different memories. A fault of the kernel is a finding; throws kgrpo::Error(KGRPO_ERROR_INVALID) only for a kernel
// index that does not exist.
LaunchResult Launch(ModuleInstance& instance, int kernel, const LaunchConfig& config);

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_LAUNCH_H_
