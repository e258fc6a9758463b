// Elementwise kernels: out[i] = f(a[i], b[i], ...).
//
// The problem's part holds one or more functions stage_<what>(...). Each parameter of a stage is named after an input
// array (it receives the element), after a scalar of launch, or `value` (the result of the stage before). In the
// naive form every stage is a separate kernel that leaves its result in the output array.
// Starting option: chunk=C, each thread works on C neighbouring elements, so that its accesses are not coalesced.
#include <algorithm>

#include "coder_offline/skeleton.h"

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
std::string MapBody(const Program& program, const Pass& pass, int width) {
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
  const Values values = {{"type", type}, {"out", out}};
  body +=
      Fill(ReadsValue(pass) ? "@type@ @out@_vector = reinterpret_cast<@type@*>(@out@)[i];\n" : "@type@ @out@_vector;\n",
           values);
  for (int k = 0; k < width; ++k) {
    const auto element = [&](const std::string& name) { return name + "_vector" + Component(k); };
    body += Fill("@element@ = @value@;\n", {{"element", element(out)}, {"value", Expression(program, pass, element)}});
  }
  return body + Fill("reinterpret_cast<@type@*>(@out@)[i] = @out@_vector;\n", values);
}

std::string MapKernel(const Program& program, const Pass& pass) {
  const Schedule& schedule = program.schedule;
  const int width = schedule.Get("vectorize", 1);
  const char* plain = width == 1 ? "const int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {\n  @body@\n}\n"
                                 : "const int i = thread;\nif (i < count) {\n  @body@\n}\n";
  return Fill(R"(
__global__ void @name@(@parameters@) {
  @code@
}
)",
              {{"name", pass.name},
               {"parameters", ParameterList(PassParameters(program, pass), schedule.Has("restrict"))},
               {"code", ElementLoop(schedule, plain, MapBody(program, pass, width), MapBody(program, pass, 1))}});
}

std::string MapComment(const Schedule& schedule, size_t passes) {
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

std::string MissingMap(const Program& program) {
  std::string missing = MissingNames(program, {}, {"n"});
  const auto stages = Stages(program);
  if (missing.empty() && stages.empty()) missing = "a __device__ function stage_<what>";
  for (const Function* stage : stages) {
    if (!missing.empty()) return missing;
    missing = Refused(program, *stage, "named after a float input, a scalar of launch, or `value`",
                      [&](const std::string& name, const Parameter* given) {
                        if (name == "value") return stage != stages.front();
                        return given != nullptr && (!given->pointer || (given->constant && given->type == "float"));
                      });
  }
  return missing.empty() && program.Output()->type != "float" ? "a float output" : missing;
}

std::string MapKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const auto passes = Passes(program);
  const int block = schedule.Get("block", 256);
  std::string text = MapComment(schedule, passes.size());
  std::string calls;
  for (const Pass& pass : passes) {
    text += MapKernel(program, pass) + "\n";
    calls += pass.name + "<<<blocks, " + std::to_string(block) + ">>>(" + ArgumentList(PassParameters(program, pass)) +
             ");\n";
  }
  const int chunk = schedule.Has("grid_stride") ? 1 : ChunkOf(schedule);
  const std::string blocks =
      BlocksText(schedule, "n", block * schedule.Get("vectorize", 1) * chunk, 2 * kGridStrideThreads / block);
  return text + Fill("@launch@ {\n  @blocks@\n  @calls@\n}\n",
                     CommonValues(program, 256, {{"blocks", blocks}, {"calls", calls}}));
}

}  // namespace

const Skeleton* MapSkeleton() {
  static const Skeleton kSkeleton = {
      "map",
      {"chunk"},
      {{kFuse,
        "the stages fused into one kernel",
        {},
        1,
        [](const Program& p) { return Stages(p).size() < 2 ? kOneKernel : ""; }},
       VectorRule("vectorised loads and stores, float@value@"),
       {kGridStride, "a grid-stride loop"},
       {kCoalesce, "the chunk's elements interleaved, so that access is coalesced", {}, 1, NeedsChunk()},
       UnrollRule("the thread's loop", Unless({"chunk", "grid_stride"}, kOneLoop)),
       RestrictRule(),
       BlockRule(),
       FastRule()},
      {{{kTile, kPad, kPrefetch, kPrivatize}, kUsedOnce},
       {{kShuffle, kCooperate}, kIndependent},
       {{kRegister}, kNoSecondOutput},
       {{kHalf}, kFloatTraffic},
       {{kOnePass}, "no kernel sweeps over its data twice (fusion joins the stages)"},
       {{kBranchless}, kSamePath},
       {{kHoist}, "nothing is computed that does not depend on the element"}},
      "an elementwise kernel has no place for it",
      MissingMap,
      MapKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
