#include "coder_offline/skeleton.h"

#include <utility>

#include "coder_offline/skeletons/all.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

// Standard functions and the approximate intrinsics that CUDA has for them.
constexpr std::pair<std::string_view, std::string_view> kFastForms[] = {
    {"expf", "__expf"}, {"logf", "__logf"}, {"sinf", "__sinf"},
    {"cosf", "__cosf"}, {"powf", "__powf"}, {"fdividef", "__fdividef"},
};

}  // namespace

const std::vector<const Skeleton*>& AllSkeletons() {
  static const std::vector<const Skeleton*> kAll = {
      MapSkeleton(),     BroadcastSkeleton(), ReductionSkeleton(), RowsSkeleton(), SoftmaxSkeleton(),
      MomentsSkeleton(), MatmulSkeleton(),    TransposeSkeleton(), ScanSkeleton(), HistogramSkeleton(),
      StencilSkeleton(), GatherSkeleton(),    AttentionSkeleton(),
  };
  return kAll;
}

const Skeleton* FindSkeleton(std::string_view name) {
  for (const Skeleton* skeleton : AllSkeletons()) {
    if (skeleton->name() == name) return skeleton;
  }
  return nullptr;
}

std::string ParameterList(const std::vector<Parameter>& parameters, bool restrict) {
  std::vector<std::string> parts;
  for (const Parameter& parameter : parameters) {
    std::string part = parameter.constant ? "const " : "";
    part += parameter.type;
    if (parameter.pointer) part += restrict ? "* __restrict__" : "*";
    parts.push_back(part + " " + parameter.name);
  }
  return Join(parts, ", ");
}

std::string ArgumentList(const std::vector<Parameter>& parameters) {
  std::vector<std::string> parts;
  parts.reserve(parameters.size());
  for (const Parameter& parameter : parameters) parts.push_back(parameter.name);
  return Join(parts, ", ");
}

std::string LaunchLine(const Program& program) {
  return "extern \"C\" void launch(" + ParameterList(program.parameters, false) + ")";
}

std::string CallText(const Function& function, const std::function<std::string(const Parameter&)>& argument) {
  std::vector<std::string> parts;
  for (const Parameter& parameter : function.parameters) parts.push_back(argument(parameter));
  return function.name + "(" + Join(parts, ", ") + ")";
}

std::string Component(int k) {
  return std::string(".") + "xyzw"[k];
}

std::string VectorLoad(const std::string& type, const std::string& variable, const std::string& pointer) {
  return Fill("const @type@ @variable@ = reinterpret_cast<const @type@*>(@pointer@)[i];\n",
              {{"type", type}, {"variable", variable}, {"pointer", pointer}});
}

std::string UnrollPragma(const Schedule& schedule) {
  return schedule.Has("unroll") ? "#pragma unroll " + std::to_string(schedule.Get("unroll", 1)) : "";
}

std::string MissingNames(const Program& program, const std::vector<std::string>& functions,
                         const std::vector<std::string>& parameters) {
  std::vector<std::string> missing;
  for (const std::string& name : functions) {
    if (program.FindFunction(name) == nullptr) missing.push_back("a __device__ function " + name);
  }
  for (const std::string& name : parameters) {
    if (program.FindParameter(name) == nullptr) missing.push_back("a launch parameter " + name);
  }
  if (program.Output() == nullptr) missing.push_back("exactly one output (a pointer that is not const)");
  return Join(missing, ", ");
}

Rule RestrictRule() {
  return {Technique::kRestrict,
          "restrict",
          {},
          1,
          "pointers marked const __restrict__, inputs read through the read-only path",
          nullptr};
}

Rule BlockRule() {
  return {Technique::kBlock, "block", {64, 128, 256, 512, 1024}, 256, "blocks of @value@ threads", nullptr};
}

Rule UnrollRule(const std::string& what) {
  return {Technique::kUnroll, "unroll", {2, 4, 8}, 4, what + " unrolled @value@ times", nullptr};
}

Rule FastRule() {
  const auto why_not = [](const Program& program) -> std::string {
    for (const auto& [exact, fast] : kFastForms) {
      if (ReplaceWord(program.problem, exact, fast) != program.problem) return "";
    }
    return "the kernel calls no function that has a fast intrinsic";
  };
  return {Technique::kFast, "fast", {}, 1, "standard functions replaced by fast intrinsics", why_not};
}

std::string ProblemText(const Program& program) {
  std::string text = program.problem;
  if (program.schedule.Has("fast")) {
    for (const auto& [exact, fast] : kFastForms) text = ReplaceWord(text, exact, fast);
  }
  return text;
}

}  // namespace kgrpo::coder_offline
