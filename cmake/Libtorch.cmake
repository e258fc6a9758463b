# Defines kgrpo_libtorch: libtorch's CPU libraries and headers. The wheel's own CMake config is not used: it wants a CUDA
# toolkit and a GPU's architecture at configure time, while our plugins link only libtorch_cpu and load libtorch_cuda
# at run time when a configuration asks for `device: cuda`.
#
# KGRPO_LIBTORCH names the folder that holds include/ and lib/ (in a wheel: site-packages/torch). Default: the one
# scripts/setup installs in .venv.
set(KGRPO_LIBTORCH "$ENV{KGRPO_LIBTORCH}" CACHE PATH "libtorch's folder, the one that holds include/ and lib/")
if(NOT KGRPO_LIBTORCH)
  file(GLOB candidates "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  if(candidates)
    list(GET candidates 0 KGRPO_LIBTORCH)
  endif()
endif()
if(NOT EXISTS "${KGRPO_LIBTORCH}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "libtorch not found at '${KGRPO_LIBTORCH}': run scripts/setup to the folder "
                      "that holds lib/libtorch_cpu.so (in a Python environment: site-packages/torch)")
endif()

add_library(kgrpo_libtorch INTERFACE)
target_include_directories(kgrpo_libtorch SYSTEM INTERFACE
  "${KGRPO_LIBTORCH}/include" "${KGRPO_LIBTORCH}/include/torch/csrc/api/include")
target_link_libraries(kgrpo_libtorch INTERFACE "${KGRPO_LIBTORCH}/lib/libtorch_cpu.so" "${KGRPO_LIBTORCH}/lib/libc10.so")
target_link_options(kgrpo_libtorch INTERFACE "LINKER:-rpath-link,${KGRPO_LIBTORCH}/lib" "LINKER:--allow-shlib-undefined")
# What the host says when a plugin does not find it, or finds one of another release.
file(WRITE "${CMAKE_BINARY_DIR}/lib/kgrpo/libtorch_cpu.so.hint"
  "built for PyTorch 2.11.0: pip install 'kgrpo[train]' or torch==2.11.0\n")
