# Finds the CUDA toolkit's compiler. KGRPO_CUDA_HOME names the folder that holds bin/nvcc; default: CUDA_HOME, nvcc on PATH,
# /usr/local/cuda, or what scripts/setup installs in .venv. Defines KGRPO_NVCC, empty where there is none.
set(KGRPO_CUDA_HOME "$ENV{CUDA_HOME}" CACHE PATH "the CUDA toolkit's folder, the one that holds bin/nvcc")
if(KGRPO_CUDA_HOME)
  find_program(KGRPO_NVCC nvcc PATHS "${KGRPO_CUDA_HOME}/bin" NO_DEFAULT_PATH)
else()
  file(GLOB wheels "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/bin")
  find_program(KGRPO_NVCC nvcc HINTS /usr/local/cuda/bin ${wheels})
endif()

# KGRPO_GPU: whether to build the kernels that train and generate on a GPU (some minutes of nvcc). Default: where a GPU's driver
# is found, where the environment says KGRPO_GPU=1, and with the tests; -DKGRPO_GPU=ON or OFF decides otherwise. The default is
# not cached: a build for the quickstart becomes one with the tests.
find_library(KGRPO_GPU_DRIVER NAMES cuda libcuda.so.1 PATH_SUFFIXES nvidia)
mark_as_advanced(KGRPO_GPU_DRIVER)
if(NOT DEFINED KGRPO_GPU)
  if(KGRPO_NVCC AND (KGRPO_GPU_DRIVER OR "$ENV{KGRPO_GPU}" OR KGRPO_TESTS))
    set(KGRPO_GPU ON)
  else()
    set(KGRPO_GPU OFF)
  endif()
endif()
set(KGRPO_GPU_ARCHITECTURES
  -gencode arch=compute_80,code=sm_80 -gencode arch=compute_89,code=sm_89 -gencode arch=compute_90,code=sm_90
  -gencode arch=compute_90,code=compute_90)
