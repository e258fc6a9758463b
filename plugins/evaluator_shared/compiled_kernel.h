// What a compile yields: the shared object with the host code, the PTX, and what ptxas says each kernel needs.
#ifndef KGRPO_EVALUATOR_SHARED_COMPILED_KERNEL_H
#define KGRPO_EVALUATOR_SHARED_COMPILED_KERNEL_H

#include <map>
#include <string>

namespace kgrpo::evaluator {

// Resources of one kernel as ptxas -v reports them for the target device.
struct KernelUsage {
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int static_shared_bytes = 0;
};

struct CompiledKernel {
  std::string object;                        // an ELF shared object that defines kgrpo_call
  std::string ptx;                           // of all kernels
  std::string cubin;                         // fast route: their machine code; nvcc puts it into the object
  std::map<std::string, KernelUsage> usage;  // by the kernel's name in the PTX
  std::string route;                         // "nvcc" or "fast"
};

struct CompileOutcome {
  // "" when it compiled; else a verdict: "not_compiled" or "forbidden".
  std::string verdict;
  // Then why: the compiler's words, trimmed and quoted line by line.
  std::string diagnosis;
  CompiledKernel kernel;
  bool transient = false;  // it did not finish in time, which may be the fault of a busy machine
  double seconds = 0;      // wall clock
  bool Succeeded() const { return verdict.empty(); }
};

// Reads `ptxas -v` output: registers, stack, spills, shared memory of each entry function.
std::map<std::string, KernelUsage> ParsePtxasUsage(const std::string& text);

// Makes a compiler's output fit to be shown: errors first and few, paths of `scratch` removed, each line quoted with
// "| ", control characters dropped, at most about 1,500 characters.
std::string QuoteCompilerOutput(const std::string& output, const std::string& scratch);

}  // namespace kgrpo::evaluator

#endif
