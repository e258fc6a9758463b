// Candidates in Triton: a Python file whose function `launch` takes the problem's parameters and launches @triton.jit
// kernels. Its launches are recorded, by the user's Python and Triton in the sandbox, as PTX with a launch table
// (interpreter/launch_table.h); from there on the candidate is one in PTX. Used by evaluator_sim.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "judge/compile/compiled_kernel.h"  // CompileOutcome
#include "judge/problem/cases.h"            // CorrectnessCase
#include "judge/sandbox/sandbox.h"          // Sandbox

namespace kgrpo::evaluator {

// Returns whether a source is a Python file that imports Triton and defines `launch`.
bool IsTriton(const std::string& source);

class TritonRecorder {
 public:
  struct Options {
    std::string python;            // the interpreter that has Triton; "": python3 of the PATH
    std::string helper_directory;  // holds triton/record_triton.py
    double seconds = 60;           // of processor time: limit for the recording of one candidate
    std::function<bool()> stop = {};
  };

  TritonRecorder(const Sandbox& sandbox, Options options) : sandbox_(sandbox), options_(std::move(options)) {}

  // Returns the PTX that stands for the source in calls of these cases and at the timing size, or "". Then *refused
  // says why: `unsupported` for what a launch function may not do, and where there is no Triton; `not_compiled`.
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) for an interpreter that was named and cannot be run. [any thread]
  std::string Record(const Problem& problem, const std::string& source, const std::vector<CorrectnessCase>& cases,
                     CompileOutcome* refused);

 private:
  // Folders of the interpreter and its packages, which the sandbox lets in.
  const std::vector<std::string>& Readable();

  const Sandbox& sandbox_;
  const Options options_;
  std::once_flag asked_;
  std::string python_;  // its path; "" where there is none
  std::vector<std::string> readable_;
};

}  // namespace kgrpo::evaluator
