#include "evaluator_cuda/profiler.h"

#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "evaluator_cuda/profile_facts.h"  // NcuMetrics

namespace kgrpo::evaluator_cuda {
namespace {

namespace fs = std::filesystem;
using evaluator::SandboxCommand;
using process::Subprocess;

constexpr const char* kInstalled = "/opt/nvidia";  // where NVIDIA's packages put Nsight Compute
constexpr int kMostKernels = 32;  // of a call that are profiled: each is run once for every few counters

bool IsProgram(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::string FindNcu(const std::string& cuda_home) {
  std::vector<std::string> places;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && folder[0] == '/') places.push_back(folder + "/ncu");
  }
  places.push_back(cuda_home + "/bin/ncu");
  std::vector<std::string> versions;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(std::string(kInstalled) + "/nsight-compute", code))
    versions.push_back(entry.path().string() + "/ncu");
  std::sort(versions.rbegin(), versions.rend());  // the newest first
  places.insert(places.end(), versions.begin(), versions.end());
  const auto found = std::find_if(places.begin(), places.end(), IsProgram);
  if (found != places.end()) return fs::canonical(*found, code).string();
  std::string tried;
  for (const std::string& place : places) tried += "\n  " + place;
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "profile: Nsight Compute's program ncu is not installed; install the package cuda-nsight-compute of the "
              "CUDA toolkit, or leave profile: off. Tried:" +
                  tried);
}

// "2025.3.0.0" of the last line of `ncu --version`.
std::string VersionOf(const std::string& ncu) {
  const Subprocess::Result result = Subprocess::Run({{ncu, "--version"}}, 60);
  const size_t at = result.output.find("Version ");
  if (!result.Succeeded() || at == std::string::npos)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "profile: " + ncu + " --version failed: " + result.output.substr(0, 400));
  const size_t begin = at + std::string("Version ").size();
  return result.output.substr(begin, result.output.find_first_of(" \n", begin) - begin);
}

std::string WhyNothing(const Subprocess::Result& result, const NcuReport& report, bool sandbox_off) {
  if (report.not_permitted) {
    return std::string("the driver lets only administrators read performance counters (ERR_NVGPUCTRPERM)") +
           (sandbox_off ? "" : ", and inside the sandbox nobody is one") +
           ". To let everybody: put \"options nvidia NVreg_RestrictProfilingToAdminUsers=0\" into "
           "/etc/modprobe.d/nvidia-profiling.conf and load the driver anew (RmProfilingAdminOnly in "
           "/proc/driver/nvidia/params then is 0)" +
           (sandbox_off ? "; or run as root" : "; or, for sources that you trust, run as root with sandbox: off");
  }
  if (result.timed_out) return "ncu did not end in time";
  if (!report.complaint.empty()) return "ncu says: " + report.complaint;
  std::string end = result.output.substr(result.output.size() - std::min<size_t>(result.output.size(), 600));
  return "ncu ended with exit code " + std::to_string(result.exit_code) + " and profiled no kernel; its last words:\n" +
         end;
}

}  // namespace

Profiler::Profiler(const evaluator::Sandbox& sandbox, const Options& options)
    : sandbox_(sandbox),
      options_(options),
      ncu_(FindNcu(options.cuda_home)),
      metrics_(NcuMetrics(options.compute_capability)) {
  if (!options_.sandbox_off && !sandbox_.has_namespaces()) {
    throw Error(
        KGRPO_ERROR_UNAVAILABLE,
        "profile: Nsight Compute needs sockets between its processes, which candidates may only have inside "
        "namespaces, and this machine offers none (" +
            sandbox_.description() +
            "). Install bubblewrap and allow user namespaces; or, for sources that you trust, set sandbox: off; "
            "or leave profile: off");
  }
  description_ = "Nsight Compute " + VersionOf(ncu_) + " (" + ncu_ + ")";
}

Subprocess::Spec Profiler::CommandLine(const std::string& folder) const {
  std::string metrics;
  for (const std::string& metric : metrics_) metrics += (metrics.empty() ? "" : ",") + metric;
  // Inside namespaces /tmp is its own; without them its locks and settings go into the folder.
  const std::string home = sandbox_.has_namespaces() ? "/tmp" : folder;
  SandboxCommand command;
  command.argv = {ncu_,
                  "--target-processes",
                  "all",
                  "--profile-from-start",
                  "off",
                  "--clock-control",
                  "none",
                  "--launch-count",
                  std::to_string(kMostKernels),
                  "--csv",
                  "--print-units",
                  "base",
                  "--print-kernel-base",
                  "function",
                  "--metrics",
                  metrics,
                  options_.helper_directory + "/kgrpo_cuda_profile",
                  options_.runtime_library,
                  folder};
  command.environment = {"PATH=/usr/local/bin:/usr/bin:/bin",
                         "HOME=" + home,
                         "TMPDIR=" + home,
                         "LC_ALL=C",
                         "CUDA_VISIBLE_DEVICES=" + options_.device_uuid,
                         "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                         "CUDA_CACHE_DISABLE=1"};
  std::error_code code;
  command.readable = {folder};
  for (const fs::path& path : {fs::path(options_.runtime_library).parent_path(), fs::path(ncu_).parent_path(),
                               fs::path(kInstalled), fs::path("/etc/hosts"), fs::path("/etc/nsswitch.conf")}) {
    // Paths below /usr are readable anyway.
    if (fs::exists(path, code) && !path.string().starts_with("/usr/")) command.readable.push_back(path.string());
  }
  std::sort(command.readable.begin(), command.readable.end());
  command.readable.erase(std::unique(command.readable.begin(), command.readable.end()), command.readable.end());
  command.sockets = true;
  command.gpu = true;
  command.gpu_node = options_.device_node;
  command.cpu_seconds = 600;
  command.memory_bytes = uint64_t{32} << 30;
  command.file_bytes = uint64_t{1} << 30;
  command.processes = 2048;
  command.open_files = 1024;
  return sandbox_.Wrap(command);
}

std::vector<ProfiledKernel> Profiler::Run(const std::string& folder) {
  while (true) {
    const Subprocess::Result result = Subprocess::Run(CommandLine(folder), options_.seconds);
    NcuReport report = ParseNcuOutput(result.output);
    if (!report.kernels.empty()) {
      has_worked_ = true;
      return std::move(report.kernels);
    }
    // One metric that this ncu does not know keeps it from counting any, so ncu runs again without that metric. It
    // quotes the name, perhaps within a pattern.
    const size_t asked = metrics_.size();
    for (const std::string& unknown : report.unknown_metrics) {
      std::erase_if(metrics_, [&unknown](const std::string& metric) {
        return unknown.find(metric.substr(0, metric.find('.'))) != std::string::npos;
      });
    }
    if (metrics_.size() == asked || metrics_.empty())
      throw Error(KGRPO_ERROR_UNAVAILABLE, "profile: " + WhyNothing(result, report, options_.sandbox_off));
  }
}

}  // namespace kgrpo::evaluator_cuda
