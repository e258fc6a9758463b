// The reference compile route: nvcc, in the sandbox, to a shared object that carries PTX and a cubin. About a second.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "judge/compile/compiled_kernel.h"  // CompileOutcome
#include "judge/compile/cuda_toolkit.h"     // CudaToolkit
#include "judge/sandbox/sandbox.h"          // Sandbox

namespace kgrpo::evaluator {

// A compile has a limit of processor time, so that a busy machine changes no verdict; and, against one that sleeps,
// this many times that of wall clock.
inline constexpr double kWallOfProcessorTime = 10;

// The host compiler's option that makes each basic block call the counter of interpreter/client/host_code.cc.
inline constexpr char kCountHostCode[] = "-fsanitize-coverage=trace-pc";
inline constexpr char kHostCodeCounter[] = "__sanitizer_cov_trace_pc";

// A candidate's source and what is put around it.
struct NvccSource {
  std::string prologue, text, epilogue;
  std::vector<std::string> arguments;  // of nvcc, beside its usual ones
  std::vector<std::string> readable;   // folders that they name
};

// Compiles a candidate, which has passed CheckIncludes, for the variant of the architecture (sm_90a) if it needs that.
// `library_directory` holds the libcudart.so that the object is linked against; `compute_capability` is 90 for 9.0.
// `as_nvrtc`: the machine code is that of the fast route; otherwise what nvcc makes by itself. `seconds`: processor
// time of each program that nvcc runs. Throws Error only where nvcc itself cannot be run, or where `stop`
// (Compiler::Options) says so. [any thread]
CompileOutcome CompileWithNvcc(const CudaToolkit& toolkit, const Sandbox& sandbox, const std::string& library_directory,
                               int compute_capability, const NvccSource& source, double seconds, bool as_nvrtc,
                               const std::function<bool()>& stop = {});

// Assembles PTX by ptxas, for its kernels' resources and machine code. The outcome has no object. Otherwise as
// CompileWithNvcc.
CompileOutcome AssemblePtx(const CudaToolkit& toolkit, const Sandbox& sandbox, int compute_capability,
                           const std::string& ptx, double seconds, const std::function<bool()>& stop);

}  // namespace kgrpo::evaluator
