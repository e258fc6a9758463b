#include "coder_offline/program.h"

#include <cctype>
#include <charconv>
#include <sstream>

#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

constexpr std::string_view kScheduleMark = "// schedule:";
constexpr std::string_view kLayoutMark = "// layout:";
constexpr std::string_view kKernelsMark = "// kernels:";
constexpr std::string_view kDevice = "__device__ ";
constexpr std::string_view kConstant = "constexpr int ";
constexpr std::string_view kLaunchMark = "extern \"C\" void launch(";

bool IsIdentifier(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

bool ParseInt(std::string_view text, int* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

// "matmul coalesce tile=32" -> a schedule.
bool ParseSchedule(const std::string& text, Schedule* schedule, std::string* why) {
  std::istringstream words(text);
  if (!(words >> schedule->skeleton)) {
    *why = "the schedule line names no kind of kernel";
    return false;
  }
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string option = word.substr(0, equals);
    int value = 1;
    const bool good = IsIdentifier(option) &&
                      (equals == std::string::npos || ParseInt(std::string_view(word).substr(equals + 1), &value)) &&
                      value > 0 && value <= 4096;
    if (!good) {
      *why = "the schedule line has '" + word + "', which is neither a flag nor name=number";
      return false;
    }
    if (!schedule->options.emplace(option, value).second) {
      *why = "the schedule line has '" + option + "' twice";
      return false;
    }
  }
  return true;
}

// "x[rows][cols], out[rows]" -> {"x": {"rows", "cols"}, "out": {"rows"}}.
bool ParseLayout(const std::string& text, std::map<std::string, Axes>* layout, std::string* why) {
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    item = Trim(item);
    const size_t bracket = item.find('[');
    const std::string name = item.substr(0, bracket);
    std::vector<std::string> axes;
    size_t at = bracket;
    while (at < item.size() && item[at] == '[') {
      const size_t close = item.find(']', at);
      if (close == std::string::npos) break;
      axes.push_back(item.substr(at + 1, close - at - 1));
      at = close + 1;
    }
    if (!IsIdentifier(name) || axes.empty() || at != item.size()) {
      *why = "the layout line has '" + item + "', which is not of the form name[axis][axis]";
      return false;
    }
    (*layout)[name] = axes;
  }
  return true;
}

// The text inside the parentheses that open at `open`; nullopt if they are not closed.
std::optional<std::string_view> Parenthesis(std::string_view text, size_t open) {
  const size_t close = text.find(')', open);
  if (close == std::string_view::npos) return std::nullopt;
  return text.substr(open + 1, close - open - 1);
}

void FindFunctions(std::string_view problem, std::vector<Function>* functions) {
  size_t at = 0;
  while ((at = problem.find(kDevice, at)) != std::string_view::npos) {
    at += kDevice.size();
    const size_t open = problem.find('(', at);
    if (open == std::string_view::npos) return;
    const size_t space = problem.rfind(' ', open);
    Function function;
    function.name = std::string(problem.substr(space + 1, open - space - 1));
    const auto inside = Parenthesis(problem, open);
    if (!inside) return;
    if (IsIdentifier(function.name) && ParseParameters(*inside, &function.parameters)) functions->push_back(function);
  }
}

void FindConstants(std::string_view problem, std::map<std::string, int>* constants) {
  size_t at = 0;
  while ((at = problem.find(kConstant, at)) != std::string_view::npos) {
    at += kConstant.size();
    const size_t equals = problem.find('=', at);
    const size_t end = problem.find(';', at);
    if (equals == std::string_view::npos || end == std::string_view::npos || equals > end) return;
    int value = 0;
    const std::string name = Trim(problem.substr(at, equals - at));
    if (IsIdentifier(name) && ParseInt(Trim(problem.substr(equals + 1, end - equals - 1)), &value)) {
      (*constants)[name] = value;
    }
  }
}

}  // namespace

int Schedule::Get(const std::string& option, int otherwise) const {
  const auto found = options.find(option);
  return found == options.end() ? otherwise : found->second;
}

std::string Schedule::Line() const {
  std::string line = std::string(kScheduleMark) + " " + skeleton;
  for (const auto& [option, value] : options) {
    line += " " + option;
    if (value != 1) line += "=" + std::to_string(value);
  }
  return line;
}

bool ParseParameters(std::string_view text, std::vector<Parameter>* parameters) {
  parameters->clear();
  if (Trim(text).empty()) return true;
  std::istringstream items{std::string(text)};
  for (std::string item; std::getline(items, item, ',');) {
    item = Trim(item);
    Parameter parameter;
    if (item.starts_with("const ")) {
      parameter.constant = true;
      item = item.substr(6);
    }
    const size_t space = item.find_last_of(" *");
    if (space == std::string::npos) return false;
    parameter.name = item.substr(space + 1);
    item = Trim(item.substr(0, space + 1));
    if (!item.empty() && item.back() == '*') {
      parameter.pointer = true;
      item = Trim(item.substr(0, item.size() - 1));
    }
    parameter.type = item;
    if (!IsIdentifier(parameter.name) || item.empty() || item.find_first_of("*&[]()<>") != std::string::npos) {
      return false;
    }
    parameters->push_back(parameter);
  }
  return true;
}

const Function* Program::FindFunction(std::string_view name) const {
  for (const Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

const Parameter* Program::FindParameter(std::string_view name) const {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

Axes Program::AxesOf(const std::string& name) const {
  const auto found = layout.find(name);
  return found == layout.end() ? Axes{} : found->second;
}

const Parameter* Program::Output() const {
  const Parameter* output = nullptr;
  for (const Parameter& parameter : parameters) {
    if (!parameter.pointer || parameter.constant) continue;
    if (output != nullptr) return nullptr;
    output = &parameter;
  }
  return output;
}

bool HasSchedule(std::string_view source) {
  for (const std::string& line : SplitLines(source)) {
    if (line.starts_with(kScheduleMark)) return true;
  }
  return false;
}

std::optional<Program> ParseProgram(std::string_view source, std::string* why) {
  Program program;
  enum { kHeading, kProblem, kKernels } part = kHeading;
  for (const std::string& line : SplitLines(source)) {
    if (part == kHeading) {
      if (line.starts_with(kScheduleMark)) {
        if (!ParseSchedule(line.substr(kScheduleMark.size()), &program.schedule, why)) return std::nullopt;
        part = kProblem;
        continue;
      }
      if (line.starts_with(kLayoutMark) && !ParseLayout(line.substr(kLayoutMark.size()), &program.layout, why)) {
        return std::nullopt;
      }
      program.heading += line + "\n";
    } else if (part == kProblem) {
      if (line.starts_with(kKernelsMark)) {
        part = kKernels;
        continue;
      }
      // The include is written by the skeletons where half precision is used, and comes back with it.
      if (line != "#include <cuda_fp16.h>") program.problem += line + "\n";
    }
  }
  if (part == kHeading) {
    *why = "the source has no line '// schedule: ...', from which this coder reads how the kernel is laid out";
    return std::nullopt;
  }
  if (part == kProblem) {
    *why = "the source has no line '// kernels: ...' after its schedule";
    return std::nullopt;
  }
  program.problem = Trim(program.problem) + "\n";
  const size_t launch = source.find(kLaunchMark);
  const auto signature =
      launch == std::string_view::npos ? std::nullopt : Parenthesis(source, launch + kLaunchMark.size() - 1);
  if (!signature || !ParseParameters(*signature, &program.parameters)) {
    *why = "the source has no extern \"C\" void launch(...) with plain pointers and numbers as parameters";
    return std::nullopt;
  }
  FindFunctions(program.problem, &program.functions);
  FindConstants(program.problem, &program.constants);
  return program;
}

}  // namespace kgrpo::coder_offline
