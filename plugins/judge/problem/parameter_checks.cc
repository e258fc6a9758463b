// ParameterParser::CheckParameters: what can only be said of all parameters of a problem.yaml together.
#include <algorithm>

#include "judge/problem/parameter_parser.h"

namespace kgrpo::evaluator {
namespace {

// Bytes of a tensor, which keeps one mistyped size from taking the machine down. The timing size may ask for most of a
// GPU's memory; the others are computed in float64 on a CPU.
constexpr double kLargestTensor = 2.0 * (1 << 30), kLargestTimedTensor = 64.0 * (1 << 30);

}  // namespace

// Two pointers to the same memory must mean tensors of the same form.
void ParameterParser::CheckAlias(size_t output) {
  const Parameter& written = problem_.parameters[output];
  const Parameter& read = problem_.parameters[*written.may_alias];
  const YamlNode node = *list_.values[output].Get("may_alias");
  const std::string path = "parameters[" + std::to_string(output) + "].may_alias";
  if (written.dtype != read.dtype)
    return Add(node, path, read.name + " is " + Info(read.dtype).name + ", " + written.name + " is not");
  for (const auto& [name, size] : NamedSizes()) {
    if (written.ShapeAt(*size) == read.ShapeAt(*size) && written.RowsAt(*size) == read.RowsAt(*size)) continue;
    return Add(node, path, read.name + " has another shape or pitch (with " + name + ")");
  }
  for (size_t i = 0; i < output; ++i) {
    if (problem_.parameters[i].may_alias == written.may_alias)
      return Add(node, path, problem_.parameters[i].name + " may alias " + read.name + " already");
  }
}

// The kernel must get the pitch of the rows as a parameter.
void ParameterParser::CheckPitchIsPassed(size_t tensor) {
  const Parameter& parameter = problem_.parameters[tensor];
  if (parameter.pitch->Symbols().empty()) return;  // a constant: the description may say it
  const auto sizes = NamedSizes();
  for (const Parameter& scalar : problem_.parameters) {
    if (scalar.role != Role::kScalar || Info(scalar.dtype).is_floating) continue;
    const bool passes = std::all_of(sizes.begin(), sizes.end(), [&](const auto& size) {
      return scalar.value.EvaluateInteger(*size.second) == parameter.pitch->EvaluateInteger(*size.second);
    });
    if (passes) return;
  }
  Add(*list_.values[tensor].Get("pitch"), "parameters[" + std::to_string(tensor) + "].pitch",
      "no scalar passes it to the kernel: add one of an integer dtype with `value: " + parameter.pitch->text() + "`");
}

void ParameterParser::CheckBytes(size_t tensor) {
  const Parameter& parameter = problem_.parameters[tensor];
  for (const auto& [name, size] : NamedSizes()) {
    double bytes = static_cast<double>(Info(parameter.dtype).size);
    for (size_t d = 0; d < parameter.shape.size(); ++d) {
      const bool row = d + 1 == parameter.shape.size() && parameter.pitch;
      bytes *= (row ? *parameter.pitch : parameter.shape[d]).Evaluate(*size);
    }
    const bool timed = name.starts_with("sizes.timing");
    if (bytes <= (timed ? kLargestTimedTensor : kLargestTensor)) continue;
    return Add(list_.values[tensor], "parameters[" + std::to_string(tensor) + "]",
               timed ? "the tensor is larger than 64 GiB at the timing size"
                     : "the tensor is larger than 2 GiB at one of the sizes");
  }
}

// The signature has one array of pointers for a list, so its tensors must be neighbours of one role and dtype.
void ParameterParser::CheckList(size_t tensor) {
  const std::vector<Parameter>& all = problem_.parameters;
  const Parameter& parameter = all[tensor];
  const auto add = [&](const std::string& what) {
    Add(*list_.values[tensor].Get("list"), "parameters[" + std::to_string(tensor) + "].list", what);
  };
  if (tensor > 0 && all[tensor - 1].list == parameter.list) {
    const Parameter& before = all[tensor - 1];
    if (before.role != parameter.role || before.dtype != parameter.dtype)
      add("the tensors of a list have one role and dtype, and " + before.name + " has another");
    return;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == parameter.list) return add("\"" + parameter.list + "\" is a parameter's name");
    if (i < tensor && all[i].list == parameter.list)
      return add("the tensors of a list follow one another, and " + all[tensor - 1].name + " is between these");
  }
}

void ParameterParser::CheckParameters() {
  for (size_t i = 0; i < problem_.parameters.size(); ++i) CheckBytes(i);
  for (size_t i = 0; i < problem_.parameters.size(); ++i) {
    if (!problem_.parameters[i].list.empty()) CheckList(i);
  }
  if (!diagnostics().empty()) return;
  for (size_t i = 0; i < problem_.parameters.size(); ++i) {
    if (problem_.parameters[i].pitch) CheckPitchIsPassed(i);
    if (problem_.parameters[i].may_alias) CheckAlias(i);
  }
}

}  // namespace kgrpo::evaluator
