#include "coder_offline/skeleton.h"

#include <algorithm>

namespace kgrpo::coder_offline {
namespace {

// Standard functions and the approximate intrinsics that CUDA has for them.
constexpr std::pair<std::string_view, std::string_view> kFastForms[] = {
    {"expf", "__expf"}, {"logf", "__logf"}, {"sinf", "__sinf"},
    {"cosf", "__cosf"}, {"powf", "__powf"}, {"fdividef", "__fdividef"},
};

}  // namespace

const Rule* Skeleton::FindRule(Technique technique) const {
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.technique == technique; });
  return found == rules.end() ? nullptr : &*found;
}

std::string Skeleton::WhyNever(Technique technique) const {
  for (const auto& [techniques, reason] : never) {
    if (std::find(techniques.begin(), techniques.end(), technique) != techniques.end()) return reason;
  }
  return never_else;
}

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
    if (skeleton->name == name) return skeleton;
  }
  return nullptr;
}

Obstacle If(const std::string& option, const std::string& reason) {
  return [=](const Program& program) { return program.schedule.Has(option) ? reason : ""; };
}

Obstacle Unless(const std::vector<std::string>& options, const std::string& reason) {
  return [=](const Program& program) {
    return std::any_of(options.begin(), options.end(), [&](const auto& o) { return program.schedule.Has(o); }) ? ""
                                                                                                               : reason;
  };
}

Obstacle NeedsTile() { return Unless({"tile"}, "there is no shared-memory tile yet"); }

Obstacle NeedsSecondKernel(const std::string& function) {
  return [=](const Program& program) { return program.FindFunction(function) == nullptr ? kOneKernel : ""; };
}

Obstacle NeedsChunk() {
  return [](const Program& program) {
    if (program.schedule.Has("grid_stride")) return "the grid-stride loop is coalesced already";
    return program.schedule.Has("chunk") ? "" : "neighbouring threads read neighbouring elements already";
  };
}

Rule RestrictRule() {
  return {kRestrict, "pointers marked const __restrict__, inputs read through the read-only path"};
}

Rule BlockRule(int preferred) { return {kBlock, "blocks of @value@ threads", {64, 128, 256, 512, 1024}, preferred}; }

Rule UnrollRule(const std::string& what, Obstacle why_not) {
  return {kUnroll, what + " unrolled @value@ times", {2, 4, 8}, 4, std::move(why_not)};
}

Rule VectorRule(const std::string& done) { return {kVectorize, done, {2, 4}, 4}; }

Rule GridStrideRule() { return {kGridStride, "a grid-stride loop over a grid that just fills the device"}; }

Rule InterchangeRule() { return {kCoalesce, "row and column interchanged, so that access is coalesced"}; }

Rule FastRule() {
  const auto why_not = [](const Program& program) {
    for (const auto& [exact, fast] : kFastForms) {
      if (ReplaceWord(program.problem, exact, fast) != program.problem) return "";
    }
    return "the kernel calls no function that has a fast intrinsic";
  };
  return {kFast, "standard functions replaced by fast intrinsics", {}, 1, why_not};
}

Values CommonValues(const Program& program, int default_block, const Values& more) {
  const Schedule& schedule = program.schedule;
  Values values = {{"parameters", ParameterList(program.parameters, schedule.Has("restrict"))},
                   {"arguments", ArgumentList(program.parameters)},
                   {"launch", "extern \"C\" void launch(" + ParameterList(program.parameters, false) + ")"},
                   {"out", program.Output()->name},
                   {"unroll", UnrollPragma(schedule)},
                   {"block", schedule.Get("block", default_block)}};
  for (const auto& [name, value] : more) values[name] = value;
  return values;
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

std::string CallText(const Function& function, const std::function<std::string(const Parameter&)>& argument) {
  std::vector<std::string> parts;
  for (const Parameter& parameter : function.parameters) parts.push_back(argument(parameter));
  return function.name + "(" + Join(parts, ", ") + ")";
}

std::string Component(int k) { return std::string(".") + "xyzw"[k]; }

std::string VectorLoad(const std::string& type, const std::string& variable, const std::string& pointer) {
  return Fill("const @type@ @variable@ = reinterpret_cast<const @type@*>(@pointer@)[i];\n",
              {{"type", type}, {"variable", variable}, {"pointer", pointer}});
}

std::string UnrollPragma(const Schedule& schedule) {
  return schedule.Has("unroll") ? "#pragma unroll " + std::to_string(schedule.Get("unroll", 1)) : "";
}

int ChunkOf(const Schedule& schedule) { return std::max(1, schedule.Get("chunk", 1) / schedule.Get("vectorize", 1)); }

std::string ElementLoop(const Schedule& schedule, const std::string& plain, const std::string& body,
                        const std::string& single) {
  const int width = schedule.Get("vectorize", 1);
  const Values values = {{"body", body},
                         {"single", single},
                         {"width", width},
                         {"unroll", UnrollPragma(schedule)},
                         {"chunk", ChunkOf(schedule)},
                         {"count", width == 1 ? "n" : "count"}};
  std::string loop = plain;
  if (schedule.Has("grid_stride")) {
    loop = "@unroll@\nfor (int i = thread; i < @count@; i += gridDim.x * blockDim.x) {\n  @body@\n}\n";
  } else if (schedule.Has("chunk") && schedule.Has("coalesce")) {
    loop =
        "const int end = min((blockIdx.x + 1) * blockDim.x * @chunk@, @count@);\n@unroll@\n"
        "for (int i = blockIdx.x * blockDim.x * @chunk@ + threadIdx.x; i < end; i += blockDim.x) {\n  @body@\n}\n";
  } else if (schedule.Has("chunk")) {
    loop =
        "const int end = min((thread + 1) * @chunk@, @count@);\n@unroll@\n"
        "for (int i = thread * @chunk@; i < end; ++i) {\n  @body@\n}\n";
  }
  std::string text =
      Fill(width == 1 ? loop : "const int count = n / @width@;\n" + loop + R"(if (thread < n - count * @width@) {
  const int i = count * @width@ + thread;  // the last elements, one a thread
  @single@
}
)",
           values);
  const bool has_thread = ReplaceWord(text, "thread", "") != text;
  return (has_thread ? "const int thread = blockIdx.x * blockDim.x + threadIdx.x;\n" : "") + text;
}

std::string BlocksText(const Schedule& schedule, const std::string& units, int per_block, int most) {
  const Values values = {{"units", units}, {"less_one", per_block - 1}, {"per_block", per_block}, {"most", most}};
  if (!schedule.Has("grid_stride")) return Fill("const int blocks = (@units@ + @less_one@) / @per_block@;\n", values);
  return Fill(R"(
const int needed = (@units@ + @less_one@) / @per_block@;
const int blocks = needed < @most@ ? needed : @most@;  // enough to fill the device
)",
              values);
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

std::string Refused(const Program& program, const Function& function, const std::string& what,
                    const std::function<bool(const std::string& name, const Parameter* given)>& good) {
  for (const Parameter& parameter : function.parameters) {
    if (good(parameter.name, program.FindParameter(parameter.name))) continue;
    return "each parameter of " + function.name + " to be " + what + "; " + parameter.name + " is not";
  }
  return "";
}

const Parameter* FirstInput(const Program& program) {
  for (const Parameter& parameter : program.parameters) {
    if (parameter.pointer && parameter.constant) return &parameter;
  }
  return nullptr;
}

std::string ProblemText(const Program& program) {
  std::string text = program.problem;
  if (program.schedule.Has("fast")) {
    for (const auto& [exact, fast] : kFastForms) text = ReplaceWord(text, exact, fast);
  }
  return text;
}

}  // namespace kgrpo::coder_offline
