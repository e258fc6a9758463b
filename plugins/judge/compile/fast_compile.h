// The fast compile route: device code by NVRTC, host code by g++ with headers of ours, both in long-lived sandboxed
// processes, some 50 ms a kernel where nvcc takes a second. Used by Compiler, which falls back to nvcc.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "judge/compile/compiled_kernel.h"  // CompileOutcome
#include "judge/compile/cuda_toolkit.h"     // CudaToolkit
#include "judge/problem/problem.h"          // Problem
#include "judge/sandbox/sandbox.h"          // Sandbox
#include "process/pool.h"                   // ProcessPool

namespace kgrpo::evaluator {

class FastCompiler {
 public:
  // Starts up to `processes` compile processes, the first at once. `toolkit.nvrtc` must not be empty. `stop`
  // and `count_host_code`: as in Compiler::Options.
  FastCompiler(const CudaToolkit& toolkit, const Sandbox& sandbox, std::string helper_directory, int compute_capability,
               size_t processes, double seconds, bool count_host_code, std::function<bool()> stop);
  ~FastCompiler();
  FastCompiler(const FastCompiler&) = delete;
  FastCompiler& operator=(const FastCompiler&) = delete;

  // Compiles a small kernel and its host code. Throws Error(KGRPO_ERROR_UNAVAILABLE) with the compilers' words where
  // that fails: what is wrong then is not a candidate's fault.
  void Check();

  // The outcome, or nothing where nvcc has to decide: the source is not understood, or the compilers refuse it for a
  // reason that nvcc might not share; `why` then says so. [any thread]
  std::optional<CompileOutcome> Compile(const Problem& problem, const std::string& source, std::string* why);

 private:
  struct Process;
  struct HostResult {
    std::string object;  // empty: failed
    std::string log;
    bool finished = true;  // false: exceeded its limits
  };

  HostResult CompileHost(const Problem& problem, const std::string& host_source);
  std::optional<std::vector<std::string>> Ask(const std::vector<std::string>& request);

  const CudaToolkit& toolkit_;
  const std::string helper_directory_;
  const double seconds_;
  const std::string count_option_;  // of g++, or ""
  const std::function<bool()> stop_;
  process::ProcessPool<Process> processes_;
  std::mutex mutex_;                                 // guards what follows
  std::map<std::string, std::string> host_objects_;  // by the digest of the host code's tokens
  std::deque<std::string> host_order_;               // oldest first
};

}  // namespace kgrpo::evaluator
