#include "policy_qwen/gpu/gpu_library.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>

#include <filesystem>

namespace kgrpo::policy {
namespace {

// Returns the library's path: beside the plugin or, for a program that links the policy (tests), in the build's plugin
// folder. If the library is missing, returns the path beside the plugin.
std::filesystem::path FindLibrary() {
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(&FindLibrary), &info) == 0) {
    throw Error(KGRPO_ERROR_INTERNAL, "device cuda: cannot tell where the policy was loaded from");
  }
  const std::filesystem::path folder = std::filesystem::absolute(info.dli_fname).parent_path();
  const char* const name = "policy_qwen/libkgrpo_gpu.so";
  for (const std::filesystem::path& place : {folder, folder.parent_path() / "lib/kgrpo"}) {
    if (std::filesystem::exists(place / name)) return place / name;
  }
  return folder / name;
}

}  // namespace

const void* OpenGpuTable(const char* entry, uint32_t bytes) {
  const std::string path = FindLibrary();
  if (!std::filesystem::exists(path)) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "device cuda: " + path +
                    " is missing: kgrpo was built without its GPU kernels. Build again with KGRPO_GPU=1 scripts/setup, "
                    "or use \"device\": \"cpu\"");
  }
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "device cuda: cannot load " + path + ": " + ::dlerror());
  }
  const auto open = reinterpret_cast<const void* (*)()>(::dlsym(handle, entry));
  const void* table = open == nullptr ? nullptr : open();
  if (table == nullptr || *static_cast<const uint32_t*>(table) != bytes) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "device cuda: " + path + " is from another build than this policy: build both again");
  }
  return table;
}

void CheckGpu(const char* what, const char* failure) {
  if (failure != nullptr) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string(what) + " on the GPU: " + failure);
}

void CheckCard(const std::string& what, at::Device device, const char* failure, const std::string& instead) {
  if (failure == nullptr) return;
  throw Error(KGRPO_ERROR_UNSUPPORTED,
              what + " cannot run on " + device.str() + " (" + failure + "); " + instead + " does without it");
}

KernelChoice ChooseEngine(bool wanted, at::Device device, const std::function<void()>& require) {
  if (device.is_cpu() && wanted) throw Error(KGRPO_ERROR_INVALID, "generation: engine needs a GPU, and device is cpu");
  if (device.is_cpu()) return {};
  try {
    require();
  } catch (const Error& error) {
    if (wanted || error.code() != KGRPO_ERROR_UNSUPPORTED) throw;
    return {false, error.what()};
  }
  return {true, ""};
}

}  // namespace kgrpo::policy
