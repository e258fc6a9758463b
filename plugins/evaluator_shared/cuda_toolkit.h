// Finds the CUDA toolkit: nvcc, its headers, NVRTC. Whole toolkits and the PyPI wheels' folder are both understood.
// Called once by each evaluator's create().
#ifndef KGRPO_EVALUATOR_SHARED_CUDA_TOOLKIT_H
#define KGRPO_EVALUATOR_SHARED_CUDA_TOOLKIT_H

#include <string>
#include <vector>

namespace kgrpo::evaluator {

struct CudaToolkit {
  std::string home;                              // the folder that holds bin/nvcc
  std::string nvcc;                              // bin/nvcc
  std::string version;                           // "13.0, V13.0.88"
  std::vector<std::string> include_directories;  // that hold cuda_fp16.h
  std::string nvrtc;                             // libnvrtc.so of the same toolkit, "" where there is none
  std::vector<std::string> readable;             // every folder that the compilers must be able to read

  // Looks at `configured` (the option cuda_home) alone when it is not empty; otherwise at KGRPO_CUDA_HOME, CUDA_HOME,
  // CUDA_PATH, nvcc on PATH, /usr/local/cuda, the nvidia/cu13 folder of VIRTUAL_ENV and of .venv above the helper
  // programs. Throws Error(KGRPO_ERROR_UNAVAILABLE) that lists every place tried and why it would not do.
  static CudaToolkit Find(const std::string& configured);
};

}  // namespace kgrpo::evaluator

#endif
