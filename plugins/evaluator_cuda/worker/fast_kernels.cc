#include "evaluator_cuda/worker/fast_kernels.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>

#include "evaluator_cuda/worker/runtime.h"

namespace kgrpo::evaluator_cuda {
namespace {

cudaLibrary_t g_code = nullptr;

// The name that the linker knows an address by; null where it begins nothing.
const char* NameOf(const void* address) {
  Dl_info info = {};
  if (dladdr(address, &info) == 0 || info.dli_saddr != address) return nullptr;
  return info.dli_sname;
}

}  // namespace

void UseDeviceCode(cudaLibrary_t code) {
  g_code = code;
}

const void* KernelOf(const void* function) {
  static std::map<const void*, const void*> known;
  if (g_code == nullptr) return function;
  const auto [place, fresh] = known.try_emplace(function, function);
  const char* name = fresh ? NameOf(function) : nullptr;
  cudaKernel_t kernel = nullptr;
  if (name != nullptr && RUNTIME(cudaLibraryGetKernel)(&kernel, g_code, name) == cudaSuccess) place->second = kernel;
  return place->second;
}

void* VariableOf(const void* symbol) {
  const char* name = g_code != nullptr ? NameOf(symbol) : nullptr;
  void* address = nullptr;
  size_t bytes = 0;
  if (name == nullptr || RUNTIME(cudaLibraryGetGlobal)(&address, &bytes, g_code, name) != cudaSuccess) return nullptr;
  return address;
}

}  // namespace kgrpo::evaluator_cuda
