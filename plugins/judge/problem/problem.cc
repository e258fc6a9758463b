#include "judge/problem/problem.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <sstream>

#include "cuda_source/lexer.h"

namespace kgrpo::evaluator {
namespace {

using cuda_source::DefinesFunction;

const char* RoleText(Role role) {
  switch (role) {
    case Role::kInput: return "input";
    case Role::kOutput: return "output";
    case Role::kInout: return "read and overwritten";
    case Role::kScalar: return "scalar";
  }
  return "";
}

}  // namespace

std::vector<std::pair<std::string, const Bindings*>> Problem::SizesByName() const {
  std::vector<std::pair<std::string, const Bindings*>> sizes;
  for (size_t i = 0; i < visible.size(); ++i) sizes.emplace_back("visible_" + std::to_string(i), &visible[i]);
  for (size_t i = 0; i < hidden.size(); ++i) sizes.emplace_back("hidden_" + std::to_string(i), &hidden[i]);
  sizes.emplace_back("timing", &timing);
  for (size_t i = 0; i < further_timing.size(); ++i)
    sizes.emplace_back("timing_" + std::to_string(i + 1), &further_timing[i]);
  return sizes;
}

void RequireNotRefused(const Problem& problem) {
  if (problem.refused.empty()) return;
  throw Error(KGRPO_ERROR_INVALID,
              problem.directory + ": the problem was refused when it was imported: " + problem.refused);
}

void RequireReference(const Problem& problem) {
  RequireNotRefused(problem);
  if (problem.has_reference) return;
  throw Error(KGRPO_ERROR_INVALID, problem.directory +
                                       ": the problem has no reference kernel (`reference: none`), so "
                                       "there is no baseline; write one into reference.cu");
}

std::string SizeText(const Bindings& size) {
  std::string text;
  for (const auto& [symbol, value] : size) text += (text.empty() ? "" : ", ") + symbol + "=" + std::to_string(value);
  return text;
}

bool Parameter::HasSeveralValues() const {
  if (role != Role::kScalar) return false;
  if (range) return range->first != range->second;
  return Info(dtype).is_floating && value.Symbols().empty() && value.Evaluate({}) != 0;
}

int64_t Parameter::Elements(const Bindings& size) const {
  int64_t elements = 1;
  for (const Expression& dimension : shape) elements *= dimension.EvaluateInteger(size);
  return elements;
}

std::vector<int64_t> Parameter::ShapeAt(const Bindings& size) const {
  std::vector<int64_t> dimensions;
  for (const Expression& dimension : shape) dimensions.push_back(dimension.EvaluateInteger(size));
  return dimensions;
}

Rows Parameter::RowsAt(const Bindings& size) const {
  Rows rows;
  if (shape.empty()) return rows;
  rows.elements = shape.back().EvaluateInteger(size);
  rows.count = Elements(size) / rows.elements;
  rows.pitch = pitch ? pitch->EvaluateInteger(size) : rows.elements;
  return rows;
}

uint64_t Parameter::MemoryBytes(const Bindings& size) const {
  return static_cast<uint64_t>(RowsAt(size).MemoryElements()) * Info(dtype).size;
}

std::string Problem::Signature() const {
  std::string text = "extern \"C\" void " + entry + "(";
  for (size_t i = 0; i < parameters.size(); i += ListLength(i)) {
    const Parameter& parameter = parameters[i];
    if (i > 0) text += ", ";
    if (parameter.role == Role::kInput) text += "const ";
    text += Info(parameter.dtype).c_type;
    text += parameter.role == Role::kScalar ? " " : "* ";
    text += parameter.list.empty() ? parameter.name : "const* " + parameter.list;
  }
  return text + ")";
}

size_t Problem::ListLength(size_t first) const {
  size_t end = first + 1;
  if (parameters[first].list.empty()) return 1;
  while (end < parameters.size() && parameters[end].list == parameters[first].list) ++end;
  return end - first;
}

std::string Problem::WithLauncher(const std::string& source) const {
  if (own_entry.empty() || DefinesFunction(source, entry) || !DefinesFunction(source, own_entry)) return source;
  return source + "\n#line 1 \"launcher.cu\"\n" + launcher;
}

std::string Problem::TaskText() const {
  std::ostringstream text;
  if (!refused.empty()) return "Refused: " + refused + ".\n";
  text << description;
  if (description.empty() || description.back() != '\n') text << "\n";
  const bool lists =
      std::any_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return !p.list.empty(); });
  text << "Define " << Signature();
  if (!own_entry.empty()) text << ", or " << own_entry << " as the reference declares it";
  text << ". It launches on the default stream; every pointer" << (lists ? " in an array too" : "")
       << " is a device pointer" << (lists ? ", and the arrays are the host's.\n" : ".\n");
  size_t place = 0;  // in a list
  for (const Parameter& parameter : parameters) {
    place = &parameter != parameters.data() && !parameter.list.empty() && (&parameter)[-1].list == parameter.list
                ? place + 1
                : 0;
    text << "  ";
    if (!parameter.list.empty()) text << parameter.list << "[" << place << "], ";
    text << parameter.name << ": " << RoleText(parameter.role) << ", " << Info(parameter.dtype).name;
    if (parameter.role == Role::kScalar) {
      text << " = " << parameter.value.text();
      if (further_cases && oracle != OracleKind::kTorchScript && parameter.HasSeveralValues())
        text << " when timed; other values are checked, too";
    } else {
      text << " [";
      for (size_t i = 0; i < parameter.shape.size(); ++i) text << (i > 0 ? ", " : "") << parameter.shape[i].text();
      text << "], row-major";
      if (parameter.pitch) {
        text << "; a row begins " << parameter.pitch->text()
             << " elements after the one before; the gap between two rows is no part of the tensor";
      }
      if (parameter.may_alias) text << "; it may be the same memory as " << parameters[*parameter.may_alias].name;
    }
    text << "\n";
  }
  text << "It must be correct for every size, for example: ";
  for (size_t i = 0; i < visible.size(); ++i) text << (i > 0 ? "; " : "") << SizeText(visible[i]);
  text << ".\n";
  return text.str();
}

}  // namespace kgrpo::evaluator
