// Elementwise kernels: out[i] = f(a[i], b[i], ...).
//
// The problem's part holds one or more functions stage_<what>(...). Each parameter of a stage is named after an input
// array (it receives the element), after a scalar of launch, or `value` (the result of the stage before). In the
// naive form every stage is a separate kernel that leaves its result in the output array.
// Starting option: chunk=C, each thread works on C neighbouring elements, so that its accesses are not coalesced.
#include <algorithm>

#include "coder_offline/skeleton.h"
#include "coder_offline/skeletons/all.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

constexpr std::string_view kStagePrefix = "stage_";

std::vector<const Function*> Stages(const Program& program) {
  std::vector<const Function*> stages;
  for (const Function& function : program.functions) {
    if (function.name.rfind(kStagePrefix, 0) == 0) stages.push_back(&function);
  }
  return stages;
}

// One kernel: its name and the stages that it runs.
struct Pass {
  std::string name;
  std::vector<const Function*> stages;
};

std::vector<Pass> Passes(const Program& program) {
  const auto stages = Stages(program);
  if (program.schedule.Has("fuse")) return {{"fused_kernel", stages}};
  std::vector<Pass> passes;
  passes.reserve(stages.size());
  for (const Function* stage : stages) passes.push_back({stage->name.substr(kStagePrefix.size()) + "_kernel", {stage}});
  return passes;
}

bool Uses(const Pass& pass, const std::string& name) {
  for (const Function* stage : pass.stages) {
    for (const Parameter& parameter : stage->parameters) {
      if (parameter.name == name) return true;
    }
  }
  return false;
}

bool ReadsValue(const Pass& pass) {
  const auto& parameters = pass.stages.front()->parameters;
  return std::any_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.name == "value"; });
}

// The launch parameters of a pass: those that its stages name, the output and n.
std::vector<Parameter> PassParameters(const Program& program, const Pass& pass) {
  std::vector<Parameter> used;
  for (const Parameter& parameter : program.parameters) {
    const bool output = parameter.pointer && !parameter.constant;
    if (output || parameter.name == "n" || Uses(pass, parameter.name)) used.push_back(parameter);
  }
  return used;
}

// stage_b(stage_a(x[i]), y[i]) with `element` giving the text of an array's element.
std::string Expression(const Program& program, const Pass& pass,
                       const std::function<std::string(const std::string&)>& element) {
  std::string value = element(program.Output()->name);
  for (const Function* stage : pass.stages) {
    value = CallText(*stage, [&](const Parameter& parameter) {
      if (parameter.name == "value") return value;
      const Parameter* array = program.FindParameter(parameter.name);
      return array->pointer ? element(parameter.name) : parameter.name;
    });
  }
  return value;
}

// The statements that compute one element, or one vector of `width` elements, at index i.
std::string Body(const Program& program, const Pass& pass, int width) {
  const std::string out = program.Output()->name;
  if (width == 1) {
    return out + "[i] = " + Expression(program, pass, [](const std::string& name) { return name + "[i]"; }) + ";\n";
  }
  const std::string type = "float" + std::to_string(width);
  std::string body;
  for (const Parameter& parameter : PassParameters(program, pass)) {
    if (!parameter.pointer || !parameter.constant) continue;
    body += VectorLoad(type, parameter.name + "_vector", parameter.name);
  }
  const std::map<std::string, std::string> values = {{"type", type}, {"out", out}};
  body +=
      Fill(ReadsValue(pass) ? "@type@ @out@_vector = reinterpret_cast<@type@*>(@out@)[i];\n" : "@type@ @out@_vector;\n",
           values);
  for (int k = 0; k < width; ++k) {
    const auto element = [&](const std::string& name) { return name + "_vector" + Component(k); };
    body += Fill("@element@ = @value@;\n", {{"element", element(out)}, {"value", Expression(program, pass, element)}});
  }
  return body + Fill("reinterpret_cast<@type@*>(@out@)[i] = @out@_vector;\n", values);
}

// The loop or the test by which a thread gets its indices below `count`.
std::string Loop(const Schedule& schedule, int width, const std::string& body) {
  const std::map<std::string, std::string> values = {
      {"body", body},
      {"unroll", UnrollPragma(schedule)},
      {"chunk", std::to_string(std::max(1, schedule.Get("chunk", 1) / width))}};
  if (schedule.Has("grid_stride")) {
    return Fill(R"(
@unroll@
for (int i = thread; i < count; i += gridDim.x * blockDim.x) {
  @body@
}
)",
                values);
  }
  if (schedule.Has("chunk") && schedule.Has("coalesce")) {
    return Fill(R"(
const int end = min((blockIdx.x + 1) * blockDim.x * @chunk@, count);
@unroll@
for (int i = blockIdx.x * blockDim.x * @chunk@ + threadIdx.x; i < end; i += blockDim.x) {
  @body@
}
)",
                values);
  }
  if (schedule.Has("chunk")) {
    return Fill(R"(
const int end = min((thread + 1) * @chunk@, count);
@unroll@
for (int i = thread * @chunk@; i < end; ++i) {
  @body@
}
)",
                values);
  }
  return Fill(R"(
const int i = thread;
if (i < count) {
  @body@
}
)",
              values);
}

std::string Kernel(const Program& program, const Pass& pass) {
  const Schedule& schedule = program.schedule;
  const int width = schedule.Get("vectorize", 1);
  std::string code;
  if (width > 1) {
    code = "const int count = n / " + std::to_string(width) + ";\n" +
           Loop(schedule, width, Body(program, pass, width)) + "if (thread < n - count * " + std::to_string(width) +
           ") {\n" + "  const int i = count * " + std::to_string(width) +
           " + thread;  // the last elements, one a thread\n  " + Body(program, pass, 1) + "}\n";
  } else {
    code = Loop(schedule, 1, Body(program, pass, 1));
    code = ReplaceWord(code, "count", "n");
  }
  const bool has_thread = ReplaceWord(code, "thread", "") != code;
  if (!schedule.Has("grid_stride") && !schedule.Has("chunk") && width == 1) {
    code = Fill(R"(
const int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < n) {
  @body@
}
)",
                {{"body", Body(program, pass, 1)}});
  } else if (has_thread) {
    code = "const int thread = blockIdx.x * blockDim.x + threadIdx.x;\n" + code;
  }
  return Fill(R"(
__global__ void @name@(@parameters@) {
  @code@
}
)",
              {{"name", pass.name},
               {"parameters", ParameterList(PassParameters(program, pass), schedule.Has("restrict"))},
               {"code", code}});
}

std::string Comment(const Schedule& schedule, size_t passes) {
  std::string text = "// kernels: ";
  text += passes == 1 ? "one pass over the elements" : "a pass over the elements for each stage";
  if (schedule.Has("grid_stride")) {
    text += ", threads stride over the array by the size of the grid";
  } else if (schedule.Has("chunk")) {
    text += schedule.Has("coalesce") ? ", a block takes a chunk and its threads take turns"
                                     : ", each thread takes a chunk of neighbouring elements";
  } else {
    text += ", an element a thread";
  }
  if (schedule.Has("vectorize")) text += ", " + std::to_string(schedule.Get("vectorize", 1)) + " elements at a time";
  return text + ".\n";
}

class Map : public Skeleton {
 public:
  std::string_view name() const override { return "map"; }
  std::vector<std::string> starting_options() const override { return {"chunk"}; }

  const std::vector<Rule>& rules() const override {
    static const std::vector<Rule> kRules = {
        {Technique::kFuse,
         "fuse",
         {},
         1,
         "the stages fused into one kernel",
         [](const Program& program) -> std::string {
           return Stages(program).size() < 2 ? "there is one kernel only, so nothing to fuse" : "";
         }},
        {Technique::kVectorize, "vectorize", {2, 4}, 4, "vectorised loads and stores, float@value@", nullptr},
        {Technique::kGridStride, "grid_stride", {}, 1, "a grid-stride loop", nullptr},
        {Technique::kCoalesce,
         "coalesce",
         {},
         1,
         "the chunk's elements interleaved, so that access is coalesced",
         [](const Program& program) -> std::string {
           if (program.schedule.Has("grid_stride")) return "the grid-stride loop is coalesced already";
           return program.schedule.Has("chunk") ? "" : "neighbouring threads read neighbouring elements already";
         }},
        {Technique::kUnroll,
         "unroll",
         {2, 4, 8},
         4,
         "the thread's loop unrolled @value@ times",
         [](const Program& program) -> std::string {
           return program.schedule.Has("chunk") || program.schedule.Has("grid_stride")
                      ? ""
                      : "a thread has one element and no loop to unroll";
         }},
        RestrictRule(),
        BlockRule(),
        FastRule(),
    };
    return kRules;
  }

  std::string Missing(const Program& program) const override {
    std::string missing = MissingNames(program, {}, {"n"});
    if (!missing.empty()) return missing;
    const auto stages = Stages(program);
    if (stages.empty()) return "a __device__ function stage_<what>";
    for (const Function* stage : stages) {
      for (const Parameter& parameter : stage->parameters) {
        const bool first = stage == stages.front() && parameter.name == "value";
        const Parameter* given = program.FindParameter(parameter.name);
        const bool scalar_or_input =
            given != nullptr && (!given->pointer || (given->constant && given->type == "float"));
        if (first || (parameter.name != "value" && !scalar_or_input)) {
          return "each parameter of " + stage->name +
                 " to be named after a float input, a scalar of launch, or `value`; " + parameter.name + " is not";
        }
      }
    }
    if (program.Output()->type != "float") return "a float output";
    return "";
  }

  std::string WhyNever(Technique technique) const override {
    switch (technique) {
      case Technique::kTile:
      case Technique::kPad:
      case Technique::kPrefetch:
      case Technique::kPrivatize:
        return "every element is used once, so there is nothing to share between threads";
      case Technique::kShuffle:
      case Technique::kCooperate:
        return "elements are independent of each other, so threads have nothing to combine";
      case Technique::kRegister:
        return "no loaded value serves two outputs, so there is nothing to keep in registers";
      case Technique::kHalf:
        return "the arrays are float32, so the traffic would stay the same";
      case Technique::kOnePass:
        return "no kernel sweeps over its data twice (fusion joins the stages)";
      case Technique::kBranchless:
        return "the threads of a warp take the same path";
      case Technique::kHoist:
        return "nothing is computed that does not depend on the element";
      default:
        return "an elementwise kernel has no place for it";
    }
  }

  std::string Kernels(const Program& program) const override {
    const Schedule& schedule = program.schedule;
    const auto passes = Passes(program);
    const int block = schedule.Get("block", 256);
    const int width = schedule.Get("vectorize", 1);
    const int per_thread = width * (schedule.Has("chunk") ? std::max(1, schedule.Get("chunk", 1) / width) : 1);
    std::string text = Comment(schedule, passes.size());
    std::string calls;
    for (const Pass& pass : passes) {
      text += Kernel(program, pass) + "\n";
      calls += pass.name + "<<<blocks, " + std::to_string(block) + ">>>(" +
               ArgumentList(PassParameters(program, pass)) + ");\n";
    }
    std::string blocks;
    if (schedule.Has("grid_stride")) {
      const int per_block = block * width;
      blocks = "const int needed = (n + " + std::to_string(per_block - 1) + ") / " + std::to_string(per_block) + ";\n" +
               "const int blocks = needed < " + std::to_string(kGridStrideThreads / block) +
               " ? needed : " + std::to_string(kGridStrideThreads / block) + ";  // enough to fill the device\n";
    } else {
      const int per_block = block * per_thread;
      blocks = "const int blocks = (n + " + std::to_string(per_block - 1) + ") / " + std::to_string(per_block) + ";\n";
    }
    return text + LaunchLine(program) + " {\n" +
           Fill("  @blocks@\n  @calls@\n", {{"blocks", blocks}, {"calls", calls}}) + "}\n";
  }

 private:
  static constexpr int kGridStrideThreads = 132 * 2048;
};

}  // namespace

const Skeleton* MapSkeleton() {
  static const Map kSkeleton;
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
