// Splits a CUDA source into what NVRTC compiles (device code) and what g++ compiles (host code), as nvcc's front end
// does inside. Both keep the line numbers. Understands the declarations that people write; says so when it does not,
// and nvcc takes over.
#pragma once

#include <string>
#include <vector>

namespace kgrpo::evaluator {

struct SplitSource {
  bool understood = false;
  std::string why_not;  // "line 12: ..." when not understood

  // Host functions blanked. Kernels, device functions, types, constants and directives stay.
  std::string device;

  // Device functions blanked, kernels turned into empty functions (a distinct address and a linker name each), launches
  // `k<<<g, b>>>(a)` turned into calls. Device variables stay as host variables whose addresses name them.
  std::string host;

  std::vector<std::string> kernel_templates;  // names of the __global__ templates: NVRTC must be told their instances
};

SplitSource Split(const std::string& source);

}  // namespace kgrpo::evaluator
