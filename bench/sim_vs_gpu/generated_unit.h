// A translation unit of generated kernels, compiled and interpreted: what a worker process of sim_vs_gpu makes and
// leaves in a file for the process that has the GPU.
#ifndef KGRPO_TOOLS_SIM_VS_GPU_GENERATED_UNIT_H
#define KGRPO_TOOLS_SIM_VS_GPU_GENERATED_UNIT_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim_vs_gpu/nvrtc_compiler.h"

namespace kgrpo::bench {

inline constexpr uint64_t kUnitKernels = 26;  // two of each kind

// The interpreter's result for one kernel.
struct Interpreted {
  uint64_t number = 0;
  std::string trouble;  // "" if it ran to its end, else a verdict, a colon and the message
  std::vector<uint64_t> out, scratch;
};

struct GeneratedUnit {
  std::string cubin;
  std::vector<Interpreted> kernels;

  void Save(const std::string& path) const;
  static GeneratedUnit Load(const std::string& path);
};

// NVRTC's options for the unit: every fourth one flushes subnormal floats. None fuses multiplications with additions of
// its own accord, as ptxas may do that where the PTX does not.
std::vector<std::string> OptionsOf(uint64_t unit);
// The machine code of one kernel from the same PTX, but not optimised by ptxas.
std::string UnoptimisedCubin(const NvrtcCompiler& compiler, uint64_t number);
// Compiles kernels [first, end) of the unit and interprets each, with every check and without: both must agree.
// `starting` is told each kernel's number before it runs.
GeneratedUnit MakeUnit(const NvrtcCompiler& compiler, uint64_t unit, uint64_t first, uint64_t end,
                       const std::function<void(uint64_t)>& starting);

}  // namespace kgrpo::bench
#endif  // KGRPO_TOOLS_SIM_VS_GPU_GENERATED_UNIT_H
