// One candidate's device: its memory, its module, and the answers to its host code's questions. Made by the evaluator
// for one evaluation; lives beside the worker that asks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/worker_pool.h"          // Worker
#include "judge/compile/compiled_kernel.h"    // KernelUsage
#include "judge/verdict/kernel_evaluation.h"  // Trouble
#include "simt/simt.h"                        // Module, DeviceMemory, Device

namespace kgrpo::interpreter {

using evaluator::Trouble;

// The host and the device in a call of the launch function: the device takes up work when the host has submitted it.
class HostClock {
 public:
  void Spend(double seconds) { host_ += seconds; }
  // The device works; the launch's own cost includes that the host is so far ahead.
  void Submit(double seconds);
  // The host waits for the device, at a cost that is part of the work.
  void CatchUp() { host_ = std::max(host_, device_); }
  // The host waits for the device. `submitted`: there was something to wait for.
  void Wait(bool submitted);
  // The seconds of the call beyond those of the device's work.
  double Idle() const;

 private:
  static constexpr double kAhead = 2e-6;
  double host_ = 0, device_ = 0, idle_ = 0, ahead_ = kAhead;
};

// The record of one call of the launch function. Fields named as in simt::LaunchResult combine all launches.
struct CallRecord {
  uint64_t launches = 0;
  uint64_t warp_instructions = 0;
  bool reads_back = false;                               // host code copied device data to the host
  bool out_of_budget = false;                            // ended by Limits::warp_instructions
  bool data_decides = false;                             // of any launch
  bool reads_clock = false;                              // of any launch
  bool must_run_whole = false;                           // of any launch; when counted
  bool sample_stands = true;                             // of every launch; when counted
  bool independent = true;                               // of every launch
  bool host_writes = false;                              // host code wrote to device memory, or copied within it
  bool may_be_unused = false;                            // simt::Finding's, of the one that ended the call
  bool host_timed_out = false;                           // host code exceeded its limit of wall clock
  bool further_failed = false;                           // of any launch
  uint64_t blocks_run = 0, blocks = 0;                   // when counted
  std::optional<std::vector<simt::StoredRange>> stored;  // of the only launch, when counted
  std::vector<simt::RacingReads> racing_reads;           // by launch, when checked
  std::string choice;                                    // the first launch's LaunchResult::choice, a sentence
  std::vector<std::vector<uint64_t>> work;               // by launch and block, when counted and all blocks ran
  double host_seconds = 0;                               // modelled: the device waits for the host
  double unexplained_seconds = 0;                        // of the host code's processor time: no price explains it
  double copy_seconds = 0;                               // modelled time of copies, memsets and allocations
  double interpreting_seconds = 0;                       // CPU time that the launches took here
  // By launch: the kernel, and the blocks that took an edge of its control flow first.
  std::vector<std::pair<uint32_t, std::vector<simt::Coverage::First>>> firsts;
  std::vector<std::string> notes;                // of every launch, without duplicates
  std::vector<simt::Counts> counts;              // by launch, when counted
  std::vector<simt::TimeEstimate> estimates;     // by launch, when counted
  std::vector<simt::KernelResources> resources;  // by launch, when counted
};

// The choice of blocks and checks of a call's launches: counted and further blocks, order, unwritten bytes. See
// simt::LaunchConfig.
struct BlockChoice {
  uint32_t blocks = 0;
  uint64_t seed = 0;
  uint32_t further_blocks = 0;
  uint64_t further_seed = 0;
  bool whole = false;
  uint64_t warp_instructions = 0;                                  // of the call; 0: Limits::warp_instructions
  const std::vector<std::vector<uint64_t>>* known_work = nullptr;  // CallRecord::work of an earlier call
  bool last_block_first = false;
  std::optional<uint8_t> unwritten_shared = {};
  const std::vector<simt::RacingReads>* racing_reads = nullptr;  // by launch: of earlier calls like this one
  bool other_choices = false;
  uint32_t choose_checked = 0;
  uint64_t checked_instructions = 0;
  const std::vector<std::vector<uint64_t>>* checked_blocks = nullptr;  // by launch
  bool only_checked = false;
};

// CPU time of this thread.
double ThreadSeconds();

class DeviceSession {
 public:
  struct Limits {
    uint64_t warp_instructions = 400'000'000;  // of one call of the launch function
    uint64_t device_bytes = uint64_t{8} << 30;
    bool device_malloc = false;  // whether host code may allocate device memory
    // Host code's processor time in a call. Only code that waits is limited by the wall clock, to ten times that: a
    // verdict must not depend on what else the machine does.
    double host_seconds = 10;
    double processor_seconds = 120;        // of kernels, copies and memsets, for all calls of a session together
    std::function<bool()> cancelled = {};  // asked about ten times per second; then calls throw KGRPO_ERROR_CANCELLED
  };

  // `source`: the compiled source, quoted in messages.
  DeviceSession(std::shared_ptr<const simt::Module> module, std::map<std::string, evaluator::KernelUsage> usage,
                std::string source, const simt::Device& device, const Limits& limits);

  simt::DeviceMemory& memory() { return memory_; }
  const simt::Module& module() const { return *module_; }
  // By kernel: the edges of control flow that any call took.
  const std::vector<simt::Coverage>& coverage() const { return coverage_; }

  // Hands the shared object to a fresh worker and waits until it is loaded.
  Trouble Load(Worker& worker, const std::string& object);

  // Calls the launch function once with these argument values (8 bytes each) and serves the worker until it returns.
  // `mode` and `choice` are how its kernels run.
  Trouble Call(Worker& worker, const std::vector<uint64_t>& arguments, simt::Mode mode, const BlockChoice& choice,
               CallRecord* record);

  // Where there is no host code: makes the device as it is at a program's start.
  void Reset();
  // Makes the launches in place of a launch function: each a LaunchRequest and its kernel's parameter block. A kernel
  // may use all of a block's shared memory.
  Trouble Play(const std::vector<std::vector<uint8_t>>& launches, simt::Mode mode, const BlockChoice& choice,
               CallRecord* record);

  // Remembers the contents of the candidate's own device memory (its variables and allocations), before a call in which
  // only some blocks run. Call it while no tensors are allocated.
  void KeepState();
  // Restores that state, so that the next call starts from it. Returns false if the state was larger than 32 MiB or
  // memory was allocated or freed since.
  bool RestoreState();

 private:
  void BeginCall(simt::Mode mode, const BlockChoice& choice, CallRecord* record);
  // Serves requests until the worker sends `wanted`.
  Trouble ServeUntil(Worker& worker, Operation wanted, Request* request, std::vector<uint8_t>* payload);
  void Serve(Worker& worker, const Request& request, const std::vector<uint8_t>& payload);
  Reply Launch(const std::vector<uint8_t>& payload);
  simt::TimeEstimate TimeOf(simt::LaunchResult& result, const simt::KernelResources& resources);
  Reply Allocate(uint64_t bytes, bool is_array);
  Trouble EndOf(Worker& worker, Worker::Event event);
  void BeginHost(double seconds);
  void Copy(double seconds, bool waits);
  bool HostUsedItsTime(const Worker& worker);
  void ThrowIfCancelled() const;
  void Stop(const std::string& code, const std::string& sentence);
  simt::KernelResources ResourcesOf(int kernel, uint32_t dynamic_shared_bytes) const;

  std::shared_ptr<const simt::Module> module_;
  std::map<std::string, evaluator::KernelUsage> usage_;
  const std::string source_;
  const simt::Device& device_;
  const Limits limits_;
  simt::DeviceMemory memory_;
  simt::ModuleInstance instance_;
  std::vector<simt::Coverage> coverage_;  // by kernel
  std::vector<uint32_t> shared_limits_;   // dynamic shared bytes, by kernel
  bool pins_host_memory_ = false;  // the host code may allocate pinned host memory, which a GPU's kernels can access
  std::map<simt::DeviceAddress, bool> owned_by_candidate_;

  double processor_seconds_ = 0;  // spent on answering the worker

  bool state_kept_ = false;
  std::map<simt::DeviceAddress, bool> kept_owned_;
  std::map<simt::DeviceAddress, std::vector<uint8_t>> kept_;

  // Of the call in progress.
  simt::Mode mode_ = simt::Mode::kChecked;
  BlockChoice block_choice_;
  uint64_t instructions_left_ = 0, instructions_of_call_ = 0;
  double host_seconds_left_ = 0, host_wall_ = 0;  // of wall clock: left, and at the call's beginning
  std::optional<double> host_processor_;          // the worker's processor time when it had run for kLookSeconds
  double copying_seconds_ = 0;                    // CPU time spent here on answers other than launches
  CallRecord* record_ = nullptr;
  simt::L2Contents l2_;  // for the time model
  HostClock clock_;
  simt::LaunchesInFlight in_flight_;
  Trouble trouble_;
};

}  // namespace kgrpo::interpreter
