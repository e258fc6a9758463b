// Candidates in Triton: a Python file whose function `launch` takes the problem's parameters and launches @triton.jit
// kernels. Its launches are recorded, by the user's Python and Triton in the sandbox, as PTX with a launch table
// (interpreter/launch_table.h); from there on the candidate is one in PTX. Used by evaluator_sim.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "judge/compile/compiled_kernel.h"  // CompileOutcome
#include "judge/problem/cases.h"            // CorrectnessCase
#include "judge/sandbox/sandbox.h"          // Sandbox

namespace kgrpo::evaluator {

class TritonRecorder {
 public:
  struct Options {
    std::string python;            // the interpreter that has Triton; "": python3 of the PATH
    std::string helper_directory;  // folder of triton/record_triton.py
    double seconds = 60;           // of processor time: limit for the recording of one candidate
    // Without namespaces the sandbox's filter for compilers lets a candidate's Python do too much, so there is none.
    bool needs_namespaces = true;
    std::string device;  // what the candidate is told of the device
    int multiprocessors = 0;
    uint32_t shared_bytes = 0;  // most of a block
    std::function<bool()> stop = {};
  };

  TritonRecorder(const Sandbox& sandbox, Options options) : sandbox_(sandbox), options_(std::move(options)) {}

  // Returns the PTX that stands for the source in calls of these cases and at the timing size, or "". Then *refused
  // says why: `unsupported` for what a launch function may not do, and if there is no Triton; `not_compiled`.
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) for an interpreter that cannot be run, in the sandbox or, if it was named, at
  // all; KGRPO_ERROR_CANCELLED. [any thread]
  std::string Record(const Problem& problem, const std::string& source, const std::vector<CorrectnessCase>& cases,
                     CompileOutcome* refused);

 private:
  // Finds the interpreter and the folders of its packages, which the sandbox lets in, and tries it there. The first
  // call that does not throw does it.
  const std::vector<std::string>& Readable();
  void ThrowIfStopped() const;
  SandboxCommand Command(const std::vector<std::string>& arguments) const;

  const Sandbox& sandbox_;
  const Options options_;
  std::once_flag asked_;
  std::string python_;  // its path; "" where there is none
  std::vector<std::string> readable_;
};

}  // namespace kgrpo::evaluator
