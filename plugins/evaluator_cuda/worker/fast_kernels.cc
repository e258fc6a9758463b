#include "evaluator_cuda/worker/fast_kernels.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>

#include "evaluator_cuda/worker/registered_code.h"
#include "evaluator_cuda/worker/runtime.h"

namespace kgrpo::evaluator_cuda {
namespace {

cudaLibrary_t g_code = nullptr;

// Returns the name that an address was registered with, else its linker name; null where no symbol begins there.
const char* NameOf(const void* address) {
  const auto registered = Registered().names.find(address);
  if (registered != Registered().names.end()) return registered->second.c_str();
  Dl_info info = {};
  if (dladdr(address, &info) == 0 || info.dli_saddr != address) return nullptr;
  return info.dli_sname;
}

}  // namespace

RegisteredCode& Registered() {
  static RegisteredCode registered;
  return registered;
}

void UseDeviceCode(cudaLibrary_t code) { g_code = code; }

const void* KernelOf(const void* function) {
  static std::map<const void*, const void*> known;
  Registered().used = true;
  if (g_code == nullptr) return function;
  const auto [place, fresh] = known.try_emplace(function, function);
  const char* name = fresh ? NameOf(function) : nullptr;
  cudaKernel_t kernel = nullptr;
  if (name != nullptr && RUNTIME(cudaLibraryGetKernel)(&kernel, g_code, name) == cudaSuccess) place->second = kernel;
  return place->second;
}

void* VariableOf(const void* symbol) {
  Registered().used = true;
  const char* name = g_code != nullptr ? NameOf(symbol) : nullptr;
  void* address = nullptr;
  size_t bytes = 0;
  if (name == nullptr || RUNTIME(cudaLibraryGetGlobal)(&address, &bytes, g_code, name) != cudaSuccess) return nullptr;
  return address;
}

}  // namespace kgrpo::evaluator_cuda
