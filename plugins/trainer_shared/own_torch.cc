#include "trainer_shared/own_torch.h"

#include <c10/core/CPUAllocator.h>
#include <dlfcn.h>
#include <kgrpo/sdk/error.h>
#include <torch/headeronly/version.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace kgrpo::trainer {
namespace {

// The release that a folder of libtorch states: version.py of a Python package, build-version of an archive; "" if
// none.
std::string StatedRelease(const std::filesystem::path& folder) {
  for (const char* name : {"version.py", "build-version"}) {
    std::ifstream file(folder / name);
    for (std::string line; std::getline(file, line);) {
      const size_t begin = line.find_first_of("0123456789");
      const bool states = line.starts_with("__version__") || name == std::string("build-version");
      if (states && begin != std::string::npos)
        return line.substr(begin, line.find_first_not_of("0123456789.", begin) - begin);
    }
  }
  return "";
}

}  // namespace

void RequireOwnTorch() {
  Dl_info info = {};
  // libc10.so, whose function this is, lies beside libtorch_cpu.so.
  if (dladdr(reinterpret_cast<const void*>(&c10::GetCPUAllocator), &info) == 0 || info.dli_fname == nullptr) return;
  const std::filesystem::path library(info.dli_fname);
  const std::string found = StatedRelease(library.parent_path().parent_path());
  const std::string own = std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR) + "." +
                          std::to_string(TORCH_VERSION_PATCH);
  if (!found.empty() && found != own)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "built for libtorch " + own + ", found " + found + " (" + library.string() +
                                             "): pip install torch==" + own);
}

}  // namespace kgrpo::trainer
