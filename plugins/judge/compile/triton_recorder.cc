#include "judge/compile/triton_recorder.h"

#include <kgrpo/sdk/error.h>
#include <sys/mman.h>  // memfd_create
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "judge/compile/candidate_form.h"  // IsPtx
#include "judge/inputs/inputs.h"
#include "process/subprocess.h"

namespace kgrpo::evaluator {
namespace {

using Json = nlohmann::json;
using process::Descriptor, process::Subprocess;

constexpr int kUnsupported = 3, kOwnFault = 4, kNoLaunch = 5,
              kOut = 3;  // record_triton.py's exit codes, and its descriptor
constexpr size_t kMostOutput = size_t{64} << 10;
constexpr int64_t kMostPtx = int64_t{16} << 20;
constexpr double kWallOfRecording = 4, kSecondsToAsk = 60;

constexpr const char* kAsk =
    "import sys, sysconfig, os\n"
    "try:\n  import triton\n  where = os.path.dirname(os.path.dirname(triton.__file__))\n"
    "except ImportError:\n  where = sysconfig.get_path('purelib')\n"
    "folder, name = os.path.split(sys.executable)\n"
    "print('\\n'.join([os.path.join(os.path.realpath(folder), name), sys.prefix, sys.base_prefix, where]))";

// The bytes of a file that another process may still write to; empty if there are too many.
std::string TextOf(const Descriptor& file) {
  struct stat status = {};
  if (fstat(file.get(), &status) != 0 || status.st_size > kMostPtx) return "";
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// A tensor's extents and strides, both in elements.
Json LayoutOf(const Parameter& parameter, const Bindings& size) {
  const std::vector<int64_t> extents = parameter.ShapeAt(size);
  const Rows rows = parameter.RowsAt(size);
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t i = extents.size(); i-- > 1;)
    strides[i - 1] = i + 1 == extents.size() ? rows.pitch : strides[i] * extents[i];
  return {extents, strides};
}

Json CallOf(const Problem& problem, const Bindings& size, const std::vector<Argument>& arguments) {
  Json at = Json::object(), shapes = Json::array(), values = Json::array();
  for (const auto& [name, value] : size) at[name] = value;
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const bool is_tensor = parameter.IsTensor(), floating = Info(parameter.dtype).is_floating;
    shapes.push_back(is_tensor ? LayoutOf(parameter, size) : Json());
    values.push_back(is_tensor ? Json() : floating ? Json(arguments[i].real) : Json(arguments[i].whole));
    if (!is_tensor && !floating) at[parameter.name] = arguments[i].whole;
  }
  return {{"at", at}, {"shapes", shapes}, {"values", values}};
}

}  // namespace

SandboxCommand TritonRecorder::Command(const std::vector<std::string>& arguments) const {
  SandboxCommand command;
  command.argv = {python_, "-I", "-B"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  // In the sandbox /tmp is its own, in memory, and limited to file_bytes.
  command.environment = {"TMPDIR=/tmp", "HOME=/tmp", "TRITON_CACHE_DIR=/tmp/cache", "LC_ALL=C.UTF-8"};
  command.readable = readable_;
  command.readable.push_back(options_.helper_directory);
  command.cpu_seconds = static_cast<uint64_t>(options_.seconds) + 1;
  command.processes = 32;
  return command;
}

const std::vector<std::string>& TritonRecorder::Readable() {
  std::call_once(asked_, [&] {
    const bool named = !options_.python.empty();
    Subprocess::Result result;
    try {
      result = Subprocess::Run({.argv = {named ? options_.python : "python3", "-I", "-c", kAsk}}, kSecondsToAsk,
                               kMostOutput, options_.stop);
    } catch (const Error& error) {
      result.output = error.what();
    }
    ThrowIfStopped();
    if (!result.Succeeded() && (named || result.timed_out)) {
      throw Error(KGRPO_ERROR_UNAVAILABLE,
                  (named ? "options.python: " + options_.python : "python3") + " cannot be run: " + result.output);
    }
    if (!result.Succeeded()) return;
    std::istringstream lines(result.output);
    std::set<std::string> folders;
    std::getline(lines, python_);
    if (!python_.starts_with('/'))
      throw Error(KGRPO_ERROR_UNAVAILABLE, "options.python: " + options_.python + " is no Python");
    for (std::string line; std::getline(lines, line);) folders.insert(std::filesystem::weakly_canonical(line).string());
    readable_.assign(folders.begin(), folders.end());
    const Subprocess::Result tried =
        Subprocess::Run(sandbox_.Wrap(Command({"-c", "pass"})), kSecondsToAsk, kMostOutput, options_.stop);
    ThrowIfStopped();
    if (!tried.Succeeded())
      throw Error(KGRPO_ERROR_UNAVAILABLE, python_ + " cannot be run in the sandbox: " + tried.output);
  });
  return readable_;
}

void TritonRecorder::ThrowIfStopped() const {
  if (options_.stop && options_.stop()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
}

std::string TritonRecorder::Record(const Problem& problem, const std::string& source,
                                   const std::vector<CorrectnessCase>& cases, CompileOutcome* refused) {
  refused->verdict = "unsupported";
  const auto is_in_a_list = [](const Parameter& parameter) { return !parameter.list.empty(); };
  if (std::any_of(problem.parameters.begin(), problem.parameters.end(), is_in_a_list)) {
    refused->diagnosis = "A candidate in Triton cannot have lists of tensors as parameters. Use CUDA C++.";
    return "";
  }
  if (options_.needs_namespaces && !sandbox_.has_namespaces()) {
    refused->diagnosis =
        "A candidate in Triton is recorded only in a sandbox with namespaces (bubblewrap); this one has: " +
        sandbox_.description() + ".";
    return "";
  }
  if (Readable().empty()) {
    refused->diagnosis = "There is no python3 in the PATH; name a Python that has Triton by the option `python`.";
    return "";
  }
  Json parameters = Json::array(), calls = Json::array();
  for (const Parameter& parameter : problem.parameters) {
    parameters.push_back(
        {{"name", parameter.name}, {"dtype", Info(parameter.dtype).name}, {"tensor", parameter.IsTensor()}});
  }
  for (const CorrectnessCase& one : cases) calls.push_back(CallOf(problem, *one.size, DrawScalars(problem, one)));
  CorrectnessCase timing;
  timing.size = &problem.timing;
  calls.push_back(CallOf(problem, problem.timing, DrawScalars(problem, timing)));

  const ScratchFolder inputs(sandbox_);  // only read in the sandbox
  const std::string candidate = inputs.path() + "/kernel.py", request = inputs.path() + "/request.json";
  std::ofstream(candidate, std::ios::binary) << source;
  const std::set<Json> different(calls.begin(), calls.end());
  const Json device = {{"name", options_.device},
                       {"multiprocessors", options_.multiprocessors},
                       {"shared_bytes", options_.shared_bytes}};
  std::ofstream(request) << Json{
      {"source", candidate}, {"device", device}, {"parameters", parameters}, {"calls", different}};
  // The candidate's process can write anything here, and nothing in the file system.
  const Descriptor out(memfd_create("kgrpo recorded launches", MFD_CLOEXEC));
  if (out.get() < 0) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("no memory file: ") + std::strerror(errno));
  SandboxCommand command = Command({options_.helper_directory + "/triton/record_triton.py", request});
  command.readable.push_back(inputs.path());
  command.descriptors = {{out.get(), kOut}};
  const Subprocess::Result result =
      Subprocess::Run(sandbox_.Wrap(command), kWallOfRecording * options_.seconds, kMostOutput, options_.stop);
  ThrowIfStopped();
  std::string said = result.output;
  const std::string folder = inputs.path() + "/";
  for (size_t at = 0; (at = said.find(folder, at)) != std::string::npos;) said.erase(at, folder.size());
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (result.exit_code == kUnsupported) {
    refused->diagnosis = "Triton: " + said + ".";
    return "";
  }
  if (result.exit_code == kNoLaunch) {
    refused->verdict = "no_launch";
    refused->diagnosis = "The launch function launches no kernel.";
    return "";
  }
  refused->verdict = "not_compiled";
  if (result.exit_code == kOwnFault) {
    refused->diagnosis = "Its launches cannot be recorded. Python says: " + said;
    return "";
  }
  std::string ptx = result.Succeeded() ? TextOf(out) : "";
  if (IsPtx(ptx)) return ptx;
  refused->transient = result.timed_out || result.signal != 0;
  refused->diagnosis = "Python did not record its launches within its limits of time and memory. " + said;
  return "";
}

}  // namespace kgrpo::evaluator
