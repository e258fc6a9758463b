#include "evaluator_shared/cuda_toolkit.h"

#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "evaluator_shared/sandbox.h"
#include "evaluator_shared/subprocess.h"

namespace kgrpo::evaluator {
namespace {

namespace fs = std::filesystem;

struct Place {
  std::string why;   // "CUDA_HOME"
  std::string path;  // may be empty: then `why` was not set
};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void AddPythonPlaces(const std::string& why, const fs::path& environment, std::vector<Place>& places) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(environment / "lib", code)) {
    const fs::path wheel = entry.path() / "site-packages" / "nvidia" / "cu13";
    if (fs::is_directory(wheel, code)) places.push_back({why, wheel.string()});
  }
}

std::vector<Place> PlacesToLook() {
  std::vector<Place> places;
  for (const char* name : {"KGRPO_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"}) places.push_back({name, Environment(name)});
  std::string path = Environment("PATH");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path program = fs::path(path.substr(begin, end - begin)) / "nvcc";
    std::error_code code;
    if (fs::exists(program, code)) {
      places.push_back({"PATH", fs::canonical(program, code).parent_path().parent_path().string()});
    }
    begin = end + 1;
  }
  places.push_back({"default", "/usr/local/cuda"});
  if (const std::string venv = Environment("VIRTUAL_ENV"); !venv.empty()) AddPythonPlaces("VIRTUAL_ENV", venv, places);
  // build/lib/kgrpo/evaluator lies below the checkout whose .venv scripts/setup fills.
  std::error_code code;
  for (fs::path folder = FindHelperDirectory(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::is_directory(folder / ".venv", code)) AddPythonPlaces(".venv", folder / ".venv", places);
  }
  return places;
}

// The nearest existing one of `candidates` below `home`.
std::string FirstExisting(const fs::path& home, const std::vector<std::string>& candidates) {
  std::error_code code;
  for (const std::string& candidate : candidates) {
    if (fs::exists(home / candidate, code)) return (home / candidate).string();
  }
  return "";
}

// Fills `toolkit` from a folder; returns what is wrong with it, or "".
std::string Examine(const std::string& home, CudaToolkit& toolkit) {
  std::error_code code;
  const fs::path root = fs::canonical(home, code);
  if (code) return "no such folder";
  toolkit = CudaToolkit();
  toolkit.home = root.string();
  toolkit.nvcc = (root / "bin" / "nvcc").string();
  if (access(toolkit.nvcc.c_str(), X_OK) != 0) return "no bin/nvcc";
  for (const char* folder : {"include", "targets/x86_64-linux/include"}) {
    if (fs::exists(root / folder / "cuda_fp16.h", code))
      toolkit.include_directories.push_back((root / folder).string());
  }
  if (toolkit.include_directories.empty()) return "no include/cuda_fp16.h";
  toolkit.nvrtc =
      FirstExisting(root, {"lib64/libnvrtc.so.13", "lib/libnvrtc.so.13", "targets/x86_64-linux/lib/libnvrtc.so.13",
                           "lib64/libnvrtc.so", "lib/libnvrtc.so"});
  toolkit.readable.push_back(toolkit.home);
  if (home != toolkit.home && !fs::equivalent(home, root, code)) toolkit.readable.push_back(home);
  // A toolkit may be spread over links (Debian's, /usr/local/cuda -> /etc/alternatives/...): follow what we use.
  for (const std::string& file : {toolkit.nvcc, toolkit.nvrtc, toolkit.include_directories.front() + "/cuda_fp16.h"}) {
    if (file.empty()) continue;
    const fs::path real = fs::canonical(file, code);
    if (code || real.string().rfind(toolkit.home + "/", 0) == 0 || real.string().rfind("/usr/", 0) == 0) continue;
    toolkit.readable.push_back(real.parent_path().parent_path().string());
  }
  const Subprocess::Result result = Subprocess::Run({{toolkit.nvcc, "--version"}}, 30, 8192);
  const size_t release = result.output.find("release ");
  if (!result.Succeeded() || release == std::string::npos) return "bin/nvcc --version does not run";
  toolkit.version = result.output.substr(release + 8, result.output.find('\n', release) - release - 8);
  return "";
}

}  // namespace

CudaToolkit CudaToolkit::Find(const std::string& configured) {
  const std::vector<Place> places = configured.empty() ? PlacesToLook() : std::vector<Place>{{"cuda_home", configured}};
  std::string tried;
  for (const Place& place : places) {
    if (place.path.empty()) {
      tried += "\n  " + place.why + ": not set";
      continue;
    }
    CudaToolkit toolkit;
    const std::string wrong = Examine(place.path, toolkit);
    if (wrong.empty()) return toolkit;
    tried += "\n  " + place.why + ": " + place.path + ": " + wrong;
  }
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "no CUDA toolkit with nvcc was found; run scripts/setup, or set KGRPO_CUDA_HOME to the folder that holds "
              "bin/nvcc; "
              "tried:" +
                  tried);
}

}  // namespace kgrpo::evaluator
