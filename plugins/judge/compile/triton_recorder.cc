#include "judge/compile/triton_recorder.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "judge/inputs/inputs.h"
#include "process/subprocess.h"

namespace kgrpo::evaluator {
namespace {

using Json = nlohmann::json;
using process::Subprocess;

constexpr int kUnsupported = 3, kOwnMistake = 4;  // record_triton.py's exit codes
constexpr size_t kMostOutput = size_t{1} << 20;
constexpr double kWallOfRecording = 4, kSecondsToAsk = 60;

constexpr const char* kAsk =
    "import sys, sysconfig, os\n"
    "try:\n  import triton\n  where = os.path.dirname(os.path.dirname(triton.__file__))\n"
    "except ImportError:\n  where = sysconfig.get_path('purelib')\n"
    "folder, name = os.path.split(sys.executable)\n"
    "print('\\n'.join([os.path.join(os.path.realpath(folder), name), sys.prefix, sys.base_prefix, where]))";

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
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

bool IsTriton(const std::string& source) {
  static const std::regex import("(^|\n)[ \t]*(import|from)[ \t]+triton\\b"), launch("(^|\n)def[ \t]+launch[ \t]*\\(");
  return source.find("triton") != std::string::npos && std::regex_search(source, import) &&
         std::regex_search(source, launch);
}

const std::vector<std::string>& TritonRecorder::Readable() {
  std::call_once(asked_, [&] {
    Subprocess::Result result;
    try {
      result = Subprocess::Run({.argv = {options_.python.empty() ? "python3" : options_.python, "-I", "-c", kAsk}},
                               kSecondsToAsk, kMostOutput, options_.stop);
    } catch (const Error& error) {
      result.output = error.what();
    }
    if (!result.Succeeded() && !options_.python.empty())
      throw Error(KGRPO_ERROR_UNAVAILABLE, "options.python: " + options_.python + " cannot be run: " + result.output);
    if (!result.Succeeded()) return;
    std::istringstream lines(result.output);
    std::set<std::string> folders;
    std::getline(lines, python_);
    for (std::string line; std::getline(lines, line);) folders.insert(std::filesystem::weakly_canonical(line).string());
    readable_.assign(folders.begin(), folders.end());
  });
  return readable_;
}

std::string TritonRecorder::Record(const Problem& problem, const std::string& source,
                                   const std::vector<CorrectnessCase>& cases, CompileOutcome* refused) {
  refused->verdict = "unsupported";
  const auto is_in_a_list = [](const Parameter& parameter) { return !parameter.list.empty(); };
  if (std::any_of(problem.parameters.begin(), problem.parameters.end(), is_in_a_list)) {
    refused->diagnosis = "A candidate in Triton cannot have lists of tensors as parameters. Use CUDA C++.";
    return "";
  }
  const std::vector<std::string>& readable = Readable();
  if (readable.empty()) {
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

  const ScratchFolder scratch(sandbox_);
  const std::string candidate = scratch.path() + "/kernel.py", request = scratch.path() + "/request.json",
                    out = scratch.path() + "/kernel.ptx";
  std::ofstream(candidate, std::ios::binary) << source;
  std::set<Json> different(calls.begin(), calls.end());
  std::ofstream(request) << Json{{"source", candidate}, {"parameters", parameters}, {"calls", different}};
  const std::string& folder = options_.helper_directory;
  SandboxCommand command;
  command.argv = {python_, "-I", "-B", folder + "/triton/record_triton.py", request, out};
  command.environment = {"TMPDIR=" + scratch.path(), "HOME=" + scratch.path(),
                         "TRITON_CACHE_DIR=" + scratch.path() + "/cache", "LC_ALL=C.UTF-8"};
  command.scratch = scratch.path();
  command.readable = readable;
  command.readable.push_back(folder);
  command.cpu_seconds = static_cast<uint64_t>(options_.seconds) + 1;
  const Subprocess::Result result =
      Subprocess::Run(sandbox_.Wrap(command), kWallOfRecording * options_.seconds, kMostOutput, options_.stop);
  if (options_.stop && options_.stop()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  if (result.exit_code == kLauncherFailed)
    throw Error(KGRPO_ERROR_UNAVAILABLE, python_ + " cannot be run in the sandbox: " + result.output);
  if (result.Succeeded()) {
    if (std::string ptx = TextOf(out); !ptx.empty()) return ptx;
  }
  std::string said = result.output;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (result.exit_code == kUnsupported) {
    refused->diagnosis = "Triton: " + said + ".";
    return "";
  }
  refused->verdict = "not_compiled";
  if (result.exit_code == kOwnMistake) {
    refused->diagnosis = "Its launches cannot be recorded. Python says: " + said;
  } else {
    refused->transient = result.timed_out || result.signal != 0;
    refused->diagnosis = "Python did not record its launches within its limits of time and memory. " + said;
  }
  return "";
}

}  // namespace kgrpo::evaluator
