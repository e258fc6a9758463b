#include "policy_qwen/gpu_library.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>

#include <filesystem>

namespace kgrpo::policy {
namespace {

// Returns the library's path: beside the plugin or, for a program that links the policy (tests), in the build's plugin
// folder. If the library is missing, returns the path beside the plugin.
std::filesystem::path FindLibrary(const std::string& file) {
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(&FindLibrary), &info) == 0) {
    throw Error(KGRPO_ERROR_INTERNAL, "device cuda: cannot tell where the policy was loaded from");
  }
  const std::filesystem::path folder = std::filesystem::absolute(info.dli_fname).parent_path();
  const std::filesystem::path name = "policy_qwen/" + file;
  for (const std::filesystem::path& place : {folder, folder.parent_path() / "lib/kgrpo"}) {
    if (std::filesystem::exists(place / name)) return place / name;
  }
  return folder / name;
}

}  // namespace

GpuLibrary OpenGpuLibrary(const std::string& file) {
  const std::string path = FindLibrary(file);
  if (!std::filesystem::exists(path)) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "device cuda: " + path +
                    " is missing: kgrpo was built without its GPU kernels. Build again with KGRPO_GPU=1 scripts/setup, "
                    "or use \"device\": \"cpu\"");
  }
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "device cuda: cannot load " + path + ": " + ::dlerror());
  }
  return {path, handle};
}

bool HasGpuLibrary(const std::string& file) {
  return std::filesystem::exists(FindLibrary(file));
}

void* GpuLibrary::Symbol(const char* name) const {
  return ::dlsym(handle, name);
}

}  // namespace kgrpo::policy
