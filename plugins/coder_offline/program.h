// A kernel as the offline coder reads it: plain CUDA in a documented style (docs/coder_offline.md).
//
//   // What the kernel computes, in words.
//   // layout: x[rows][cols], out[rows]
//   // schedule: rows block=256
//   <the problem's own part: constants and __device__ functions, kept as they are>
//   // kernels: how the work is laid out, in words.
//   <the kernels and the launch function, written by a skeleton from the schedule>
//
// The schedule line is the whole state: nothing else is kept from one round to the next. The problem's name does not
// matter, so a user's kernel in this style works like the shipped ones.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_offline {

// The skeleton that writes the kernels, and the options set so far. A flag has the value 1 and is written without it.
struct Schedule {
  std::string skeleton;
  std::map<std::string, int> options;  // ordered, so that equal options give equal lines

  bool Has(const std::string& option) const { return options.count(option) != 0; }
  int Get(const std::string& option, int otherwise) const;
  std::string Line() const;  // "// schedule: matmul coalesce tile=32"

  bool operator==(const Schedule&) const = default;
};

// A parameter of the launch function or of a __device__ function.
struct Parameter {
  std::string type;  // without const and *: "float", "int", "unsigned char"
  std::string name;
  bool pointer = false;
  bool constant = false;
};

// A __device__ function of the problem's own part.
struct Function {
  std::string name;
  std::vector<Parameter> parameters;
};

using Axes = std::vector<std::string>;

struct Program {
  std::string heading;  // the comment lines before the schedule, including the layout line
  Schedule schedule;
  std::string problem;                   // the problem's own part, ends with a newline
  std::vector<Parameter> parameters;     // of extern "C" void launch(...)
  std::vector<Function> functions;       // found in `problem`, in order
  std::map<std::string, Axes> layout;    // {"x": {"rows", "cols"}, ...}
  std::map<std::string, int> constants;  // `constexpr int kName = 5;` found in `problem`

  const Function* FindFunction(std::string_view name) const;  // null when there is none
  const Parameter* FindParameter(std::string_view name) const;
  Axes AxesOf(const std::string& name) const;  // of an array in the layout line; empty when it is not there
  // The only pointer that is not const; null when there is none or more than one.
  const Parameter* Output() const;
};

// True if the source has a `// schedule:` line; without one it is an ordinary kernel (plain/).
bool HasSchedule(std::string_view source);

// Reads a source. On failure returns nullopt and sets *why to what is missing.
std::optional<Program> ParseProgram(std::string_view source, std::string* why);

// Reads a list such as "int rows, const float* x". Returns false if it is not of this simple form.
bool ParseParameters(std::string_view text, std::vector<Parameter>* parameters);

}  // namespace kgrpo::coder_offline
