// Runs a compiled candidate once under Nsight Compute (ncu), in the sandbox. ncu loads a library into the
// program and talks to it through sockets, which the candidates' system call filter forbids. So all of ncu runs inside
// bubblewrap's namespaces, with no network but the loopback device, under the compilers' filter with sockets allowed.
// Without namespaces that sandbox would be weaker than the candidates', so nothing is profiled unless it is off. Used
// by the evaluator, under the device's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evaluator_cuda/ncu_report.h"  // ProfiledKernel
#include "judge/sandbox/sandbox.h"      // Sandbox
#include "process/subprocess.h"         // Subprocess

namespace kgrpo::evaluator_cuda {

class Profiler {
 public:
  struct Options {
    std::string helper_directory;          // holds kgrpo_cuda_profile
    std::string cuda_home;                 // whose bin may hold ncu
    std::string runtime_library;           // libcudart.so.13
    std::string device_uuid, device_node;  // as a worker's
    int compute_capability = 0;
    bool sandbox_off = false;  // the user wants none
    double seconds = 120;      // limit for one run
  };

  // Finds ncu. Throws Error(KGRPO_ERROR_UNAVAILABLE) where there is none, or where it could not be run inside
  // `sandbox`, which outlives this.
  Profiler(const evaluator::Sandbox& sandbox, const Options& options);

  // "Nsight Compute 2025.3.0.0 (/usr/local/cuda/bin/ncu)"
  const std::string& Describe() const { return description_; }

  // Profiles the candidate that lies in `folder` as worker/profile_plan.h says: the kernels of its second call. Throws
  // Error(KGRPO_ERROR_UNAVAILABLE) with what ncu had to say, and what to do about it, where it profiled none.
  std::vector<ProfiledKernel> Run(const std::string& folder);

  // True once a run has succeeded: a later failure is then the candidate's, or temporary.
  bool has_worked() const { return has_worked_; }

 private:
  process::Subprocess::Spec CommandLine(const std::string& folder) const;

  const evaluator::Sandbox& sandbox_;
  const Options options_;
  std::string ncu_, description_;
  std::vector<std::string> metrics_;  // that are asked for
  bool has_worked_ = false;
};

}  // namespace kgrpo::evaluator_cuda
