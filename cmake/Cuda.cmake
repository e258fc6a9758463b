# Finds the CUDA toolkit's compiler. KGRPO_CUDA_HOME names the folder that holds bin/nvcc; default: CUDA_HOME, nvcc on PATH,
# /usr/local/cuda, or what scripts/setup installs in .venv. Defines KGRPO_NVCC, empty where there is none.
set(KGRPO_CUDA_HOME "$ENV{CUDA_HOME}" CACHE PATH "the CUDA toolkit's folder, the one that holds bin/nvcc")
if(KGRPO_CUDA_HOME)
  find_program(KGRPO_NVCC nvcc PATHS "${KGRPO_CUDA_HOME}/bin" NO_DEFAULT_PATH)
else()
  file(GLOB wheels "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/bin")
  find_program(KGRPO_NVCC nvcc HINTS /usr/local/cuda/bin ${wheels})
endif()
