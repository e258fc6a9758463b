#include "policy_qwen/gpu_training/gpu_kernels.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>

#include <filesystem>
#include <string>

namespace kgrpo::policy {
namespace {

// Beside the plugin; for a program that links the policy (tests), in the build's plugin folder.
std::filesystem::path FindLibrary() {
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(&FindLibrary), &info) == 0) {
    throw Error(KGRPO_ERROR_INTERNAL, "device cuda: cannot tell where the policy was loaded from");
  }
  const std::filesystem::path folder = std::filesystem::absolute(info.dli_fname).parent_path();
  const std::filesystem::path name = "policy_qwen/libkgrpo_gpu_training.so";
  for (const std::filesystem::path& place : {folder, folder.parent_path() / "lib/kgrpo"}) {
    if (std::filesystem::exists(place / name)) return place / name;
  }
  throw Error(
      KGRPO_ERROR_UNAVAILABLE,
      "device cuda: " + (folder / name).string() +
          " is missing: kgrpo was built without its GPU kernels. Build again with KGRPO_GPU=1 scripts/setup, or "
          "use \"device\": \"cpu\"");
}

const GpuKernels* Open() {
  const std::string path = FindLibrary();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "device cuda: cannot load " + path + ": " + ::dlerror());
  }
  const auto entry = reinterpret_cast<GpuKernelsEntry>(::dlsym(library, kGpuKernelsEntry));
  const GpuKernels* kernels = entry == nullptr ? nullptr : entry();
  if (kernels == nullptr || kernels->struct_size != sizeof(GpuKernels)) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "device cuda: " + path + " is of another build than this policy");
  }
  return kernels;
}

}  // namespace

const GpuKernels& LoadGpuKernels() {
  static const GpuKernels* const kernels = Open();
  return *kernels;
}

}  // namespace kgrpo::policy
