#include "judge/compile/cuda_toolkit.h"

#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

#include "judge/sandbox/sandbox.h"
#include "process/subprocess.h"

namespace kgrpo::evaluator {
namespace {

using process::Subprocess;

namespace fs = std::filesystem;

constexpr int kCudaMajor = 13;

struct ToolkitPlace {
  std::string why;     // "CUDA_HOME"
  std::string path;    // may be empty: then `why` was not set
  bool named = false;  // by the user, for this: if it is broken, no other is taken
};

constexpr char kOwnVariable[] = "KGRPO_CUDA_HOME";
constexpr char kOfOtherVersion[] = "nvcc is of CUDA ";  // a sound toolkit that is not for us

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void AddPythonPlaces(const std::string& why, const fs::path& environment, std::vector<ToolkitPlace>& places) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(environment / "lib", code)) {
    const fs::path wheel = entry.path() / "site-packages" / "nvidia" / "cu13";
    if (fs::is_directory(wheel, code)) places.push_back({why, wheel.string(), false});
  }
}

std::vector<ToolkitPlace> PlacesToLook() {
  std::vector<ToolkitPlace> places;
  for (const char* name : {kOwnVariable, "CUDA_HOME", "CUDA_PATH"}) places.push_back({name, Environment(name), true});
  std::string path = Environment("PATH");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path program = fs::path(path.substr(begin, end - begin)) / "nvcc";
    std::error_code code;
    if (fs::exists(program, code)) {
      places.push_back({"PATH", fs::canonical(program, code).parent_path().parent_path().string(), false});
    }
    begin = end + 1;
  }
  places.push_back({"default", "/usr/local/cuda", false});
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

// The output of a program within some seconds; nothing if it cannot be started or fails.
std::optional<std::string> OutputOf(const std::vector<std::string>& argv) {
  constexpr double kSeconds = 30;
  try {
    Subprocess::Spec spec{argv};
    // As when it compiles: what the caller's PATH lacks is not missed there.
    spec.environment = {"PATH=" + std::string(kSystemPath), "TMPDIR=" + TemporaryDirectory(), "LC_ALL=C"};
    Subprocess::Result result = Subprocess::Run(spec, kSeconds, 65536);
    if (result.Succeeded()) return std::move(result.output);
  } catch (const Error&) {
    // cannot be started
  }
  return std::nullopt;
}

// "90 of compute_90", from `nvcc --list-gpu-arch`; variants with a letter are no devices of their own.
std::vector<int> Architectures(const std::string& text) {
  constexpr char kPrefix[] = "compute_";
  std::vector<int> architectures;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::string digits = word.rfind(kPrefix, 0) == 0 ? word.substr(sizeof kPrefix - 1) : "";
    const bool plain =
        !digits.empty() && digits.size() < 5 && digits.find_first_not_of("0123456789") == std::string::npos;
    if (plain) architectures.push_back(std::stoi(digits));
  }
  std::sort(architectures.begin(), architectures.end());
  return architectures;
}

// Asks nvcc what it is; returns what is wrong with it, or "".
std::string ExamineNvcc(CudaToolkit& toolkit) {
  const std::optional<std::string> version = OutputOf({toolkit.nvcc, "--version"});
  const size_t release = version ? version->find("release ") : std::string::npos;
  if (release == std::string::npos) return "bin/nvcc --version does not run";
  toolkit.version = version->substr(release + 8, version->find('\n', release) - release - 8);
  // Objects are linked against the runtime of this version, and the workers load it.
  if (std::atoi(toolkit.version.c_str()) != kCudaMajor)
    return kOfOtherVersion + toolkit.version + "; CUDA " + std::to_string(kCudaMajor) + " is needed";
  const std::optional<std::string> architectures = OutputOf({toolkit.nvcc, "--list-gpu-arch"});
  if (architectures) toolkit.architectures = Architectures(*architectures);
  if (toolkit.architectures.empty()) return "bin/nvcc --list-gpu-arch names no architecture";
  // A broken toolkit would make every kernel look as if it did not compile.
  const std::optional<std::string> steps = OutputOf({toolkit.nvcc, "--dryrun", "-cubin", "-x", "cu", "/dev/null"});
  constexpr char kCicc[] = "CICC_PATH=";
  const size_t cicc = steps ? steps->find(kCicc) : std::string::npos;
  if (cicc == std::string::npos) return "bin/nvcc --dryrun does not say where its compiler lies";
  const size_t begin = cicc + sizeof kCicc - 1;
  const std::string folder = steps->substr(begin, steps->find('\n', begin) - begin);
  if (access((folder + "/cicc").c_str(), X_OK) != 0) return "nvcc's compiler is missing: " + folder + "/cicc";
  const std::string ptxas = fs::path(toolkit.nvcc).parent_path() / "ptxas";
  if (access(ptxas.c_str(), X_OK) != 0) return "no bin/ptxas";
  return "";
}

std::string CapabilityText(int compute_capability) {
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
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
  return ExamineNvcc(toolkit);
}

}  // namespace

CudaToolkit CudaToolkit::Find() {
  // Without these, nvcc fails in ways that name neither.
  CheckTemporaryDirectory();
  HostCompilerVersion();
  std::string tried;
  for (const ToolkitPlace& place : PlacesToLook()) {
    if (place.path.empty()) {
      tried += "\n  " + place.why + ": not set";
      continue;
    }
    CudaToolkit toolkit;
    const std::string wrong = Examine(place.path, toolkit);
    if (wrong.empty()) return toolkit;
    if (const bool other_version = wrong.starts_with(kOfOtherVersion);
        place.why == kOwnVariable || (place.named && !other_version)) {
      throw Error(KGRPO_ERROR_UNAVAILABLE, "the variable " + place.why + " names " + place.path +
                                               ", which is no CUDA toolkit that can be used: " + wrong +
                                               "; correct it, or unset it to have one searched");
    }
    tried += "\n  " + place.why + ": " + place.path + ": " + wrong;
  }
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "no CUDA toolkit with nvcc was found: run scripts/setup in a checkout, or pip install "
              "'cuda-toolkit[nvcc,cudart,nvrtc,cccl]==" +
                  std::to_string(kCudaMajor) +
                  ".*' in an active virtual environment, or set KGRPO_CUDA_HOME to a toolkit's folder, the one that "
                  "holds bin/nvcc; tried:" +
                  tried);
}

void CudaToolkit::CheckArchitecture(int compute_capability) const {
  if (std::find(architectures.begin(), architectures.end(), compute_capability) != architectures.end()) return;
  std::string known;
  for (const int one : architectures) known += (known.empty() ? "" : ", ") + CapabilityText(one);
  const bool newer = !architectures.empty() && compute_capability > architectures.back();
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "nvcc " + version + " (" + home + ") makes no code for the device's compute capability " +
                  CapabilityText(compute_capability) + "; it knows " + known + "; " +
                  (newer ? "install a newer toolkit of CUDA " : "use another device, or an older toolkit of CUDA ") +
                  std::to_string(kCudaMajor) + " and name it by KGRPO_CUDA_HOME");
}

void CudaToolkit::CheckNvrtc() const {
  if (!nvrtc.empty()) return;
  const std::string major = std::to_string(kCudaMajor);
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "the toolkit in " + home + " has no NVRTC (lib64/libnvrtc.so." + major +
                  "), which compile: fast needs; install it (scripts/setup does, or the package cuda-nvrtc-" + major +
                  "-0), or set compile: nvcc, which takes about a second a kernel");
}

std::string CudaToolkit::Identity() const {
  std::error_code code;
  const uintmax_t bytes = nvrtc.empty() ? 0 : fs::file_size(nvrtc, code);
  return "nvcc " + version + "; NVRTC of " + std::to_string(code ? 0 : bytes) + " bytes";
}

std::string HostCompilerVersion(const std::string& path) {
  std::string version;
  for (const char* name : {"gcc", "g++"}) {
    std::string program;
    std::istringstream folders(path);
    for (std::string folder; program.empty() && std::getline(folders, folder, ':');) {
      const std::string candidate = folder + "/" + name;
      if (access(candidate.c_str(), X_OK) == 0) program = candidate;
    }
    const std::string remedy = "; kernels' host code is compiled by it: install g++ (apt-get install g++)";
    if (program.empty()) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string(name) + " is not in " + path + remedy);
    const std::optional<std::string> output = OutputOf({program, "--version"});
    if (!output) throw Error(KGRPO_ERROR_UNAVAILABLE, program + " --version does not run" + remedy);
    version = output->substr(0, output->find('\n'));
  }
  return version;
}

}  // namespace kgrpo::evaluator
