// Finds the CUDA toolkit: nvcc, its headers, NVRTC, and the host's g++, and checks them before anything
// is judged. Both whole toolkits and the PyPI wheels' folder are supported. Called by each evaluator's
// create().
#pragma once

#include <string>
#include <vector>

namespace kgrpo::evaluator {

struct CudaToolkit {
  std::string home;                              // the folder that holds bin/nvcc
  std::string nvcc;                              // bin/nvcc
  std::string version;                           // "13.0, V13.0.88"
  std::vector<int> architectures;                // that nvcc compiles for: 90 for 9.0
  std::vector<std::string> include_directories;  // that hold cuda_fp16.h
  std::string nvrtc;                             // libnvrtc.so of the same toolkit, "" where there is none
  std::vector<std::string> readable;             // every folder that the compilers must be able to read

  // Looks at KGRPO_CUDA_HOME, CUDA_HOME, CUDA_PATH, nvcc on PATH, /usr/local/cuda, the nvidia/cu13 folder of
  // VIRTUAL_ENV and of .venv above the helper programs. Throws Error(KGRPO_ERROR_UNAVAILABLE) that lists every place
  // tried and why it would not do.
  static CudaToolkit Find();

  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where nvcc makes no code for a device of this compute capability (90
  // for 9.0).
  void CheckArchitecture(int compute_capability) const;

  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where there is no NVRTC, which the fast compile route needs.
  void CheckNvrtc() const;

  // Versions of nvcc and NVRTC: what compiled code depends on.
  std::string Identity() const;
};

// PATH of the compilers, beside the toolkit's own programs.
inline constexpr char kSystemPath[] = "/usr/local/bin:/usr/bin:/bin";

// "g++ (Debian 12.2.0-14+deb12u1) 12.2.0": the host compiler that nvcc and the fast route take from `path`. Throws
// Error(KGRPO_ERROR_UNAVAILABLE) where gcc or g++ is missing there or does not run.
std::string HostCompilerVersion(const std::string& path = kSystemPath);

}  // namespace kgrpo::evaluator
