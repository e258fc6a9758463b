// The result of a compilation: the shared object with the host code, the PTX, and each kernel's resources by ptxas.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "judge/verdict/kernel_evaluation.h"  // Trouble

namespace kgrpo::evaluator {

// Limits for the __device__ and __constant__ variables of a source, for a problem that allows device_malloc and for the
// others, in which a kernel may keep counters and partial results.
inline constexpr uint64_t kMostVariableBytes = uint64_t{1} << 30, kMostWithoutMalloc = uint64_t{64} << 20;

// What is wrong with variables of `bytes`: a verdict and a sentence; nothing if they are within the limit.
Trouble CheckVariables(uint64_t bytes, bool device_malloc);

// Resources of one kernel, from the headers of its machine code for the target device (UsageOf).
struct KernelUsage {
  int registers = 0;
  int stack_bytes = 0;  // local memory of a thread: its own frame and those of the functions it calls
  int spill_bytes = 0;  // of its own frame beyond its local arrays: where registers are spilled
  int static_shared_bytes = 0;
  int constant_bytes = 0;  // __constant__ memory of the module and constants of its own; parameters not counted
};

struct CompiledKernel {
  std::string object;                        // an ELF shared object that defines kgrpo_call
  std::string ptx;                           // of all kernels
  std::string cubin;                         // fast route: their machine code; nvcc puts it into the object
  std::map<std::string, KernelUsage> usage;  // by the kernel's name in the PTX
  std::string route;                         // "nvcc" or "fast"
  std::vector<std::string> undefined;        // symbols that the object leaves to others; read by Compiler::Compile
  std::string source;                        // what it was compiled from; set by Compiler::Compile
};

struct CompileOutcome {
  // "" when it compiled; else a verdict: "not_compiled" or "forbidden".
  std::string verdict;
  // Then why: the compiler's words, trimmed and quoted line by line.
  std::string diagnosis;
  CompiledKernel kernel;
  bool transient = false;  // may be temporary: a busy machine, a full disk, a compiler that was killed
  bool cached = false;     // it was compiled before
  double seconds = 0;      // wall clock
  bool Succeeded() const { return verdict.empty(); }
};

// "k" of "_Z1kPKfi": what a person calls the kernel.
std::string KernelName(const std::string& linker_name);

// Metrics of a compiled kernel that every evaluation has: registers, spill_bytes, static_shared_bytes, stack_bytes and
// constant_bytes, each the most that any of its kernels takes; and where there are several kernels, those of each as
// "NAME of KERNEL", of at most eight.
std::vector<std::pair<std::string, double>> UsageMetrics(const std::map<std::string, KernelUsage>& usage);

// True if a compiler's output says that it failed for want of memory, disk, or processes, or was killed, in which case
// the same source may compile at another moment.
bool FailedForTheMoment(const std::string& output);

// Makes a compiler's output fit to be shown: errors first and few, paths of `scratch` removed, each line quoted with
// "| ", control characters dropped, at most about 1,500 characters.
std::string QuoteCompilerOutput(const std::string& output, const std::string& scratch);

}  // namespace kgrpo::evaluator
