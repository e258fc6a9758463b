// NVRTC, loaded at run time: CUDA source to PTX and machine code in one go. Used by sim_vs_gpu.
#ifndef KGRPO_TOOLS_SIM_VS_GPU_NVRTC_COMPILER_H
#define KGRPO_TOOLS_SIM_VS_GPU_NVRTC_COMPILER_H

#include <string>
#include <vector>

namespace kgrpo::bench {

class NvrtcCompiler {
 public:
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where the library cannot be loaded.
  NvrtcCompiler(const std::string& library, std::vector<std::string> include_directories);

  struct Compiled {
    std::string ptx, cubin;
  };
  // Throws Error(KGRPO_ERROR_INVALID) with the compiler's log where the source is at fault.
  Compiled Compile(const std::string& source, std::vector<std::string> options) const;

 private:
  std::string Text(void* program, const char* size, const char* get) const;
  void* library_;
  std::vector<std::string> include_directories_;
};

}  // namespace kgrpo::bench
#endif  // KGRPO_TOOLS_SIM_VS_GPU_NVRTC_COMPILER_H
