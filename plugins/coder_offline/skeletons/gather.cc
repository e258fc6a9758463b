// Rows of a table picked by index: out[i][d] = finish(sum over j of table[index[i][j]][d], ...), or with one index a
// row.
//
// The layout line says table[entries][width], index[n] or index[n][bag], out[n][width]. The problem's part holds
// finish(float total, ...), whose other parameters are named after inputs with the output's layout, vectors [width], or
// scalars. In the naive kernel a thread writes a whole row, element after element.
#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {
namespace {

bool HasBag(const Program& program) { return program.AxesOf("index").size() == 2; }

// The statements that write `step` neighbouring elements of row i from column d.
std::string GatherBody(const Program& program, int step) {
  const Schedule& schedule = program.schedule;
  const Function& finish = *program.FindFunction("finish");
  const std::string out = program.Output()->name;
  const bool bag = HasBag(program);
  const std::string type = step == 1 ? "float" : "float" + std::to_string(step);
  const auto at = [&](const std::string& array, const std::string& index) {
    return step == 1 ? array + "[" + index + "]"
                     : "*reinterpret_cast<const " + type + "*>(" + array + " + " + index + ")";
  };
  const auto component = [&](const std::string& name, int k) { return step == 1 ? name : name + Component(k); };
  std::string text;
  if (bag) {
    std::string add;
    for (int k = 0; k < step; ++k) add += component("total", k) + " += " + component("loaded", k) + ";\n";
    std::string zeros = "0.0f";
    for (int k = 1; k < step; ++k) zeros += ", 0.0f";
    text = Fill(R"(
@type@ total = @zero@;
@unroll@
for (int j = 0; j < bag; ++j) {
  const @type@ loaded = @load@;
  @add@
}
)",
                {{"type", type},
                 {"zero", step == 1 ? "0.0f" : "make_" + type + "(" + zeros + ")"},
                 {"unroll", UnrollPragma(schedule)},
                 {"load", at("table", "(size_t)index[(size_t)i * bag + j] * width + d")},
                 {"add", add}});
  } else {
    text = "const " + type + " total = " + at("table", "(size_t)index[i] * width + d") + ";\n";
  }
  std::vector<std::string> arrays;
  for (const Parameter& parameter : finish.parameters) {
    const Parameter* given = program.FindParameter(parameter.name);
    if (given == nullptr || !given->pointer) continue;
    arrays.push_back(parameter.name);
    const std::string index = program.AxesOf(parameter.name).size() == 1 ? "d" : "(size_t)i * width + d";
    text += "const " + type + " " + parameter.name + "_value = " + at(parameter.name, index) + ";\n";
  }
  std::vector<std::string> results;
  results.reserve(step);
  for (int k = 0; k < step; ++k) {
    results.push_back(CallText(finish, [&](const Parameter& parameter) {
      if (parameter.name == "total") return component("total", k);
      return program.FindParameter(parameter.name)->pointer ? component(parameter.name + "_value", k) : parameter.name;
    }));
  }
  if (step == 1) return text + out + "[(size_t)i * width + d] = " + results[0] + ";\n";
  return text + "*reinterpret_cast<" + type + "*>(" + out + " + (size_t)i * width + d) = make_" + type + "(" +
         Join(results, ", ") + ");\n";
}

std::string MissingGather(const Program& program) {
  const std::string missing = MissingNames(program, {"finish"}, {"table", "index", "n", "width"});
  if (!missing.empty()) return missing;
  if (program.AxesOf("table").size() != 2) return "a layout line with table[entries][width]";
  const Axes index = program.AxesOf("index");
  if (index != Axes{"n"} && index != Axes{"n", "bag"}) return "a layout line with index[n] or index[n][bag]";
  if (index.size() == 2 && program.FindParameter("bag") == nullptr) return "a launch parameter bag";
  if (program.AxesOf(program.Output()->name) != Axes{"n", "width"}) return "an output with the axes [n][width]";
  return Refused(
      program, *program.FindFunction("finish"), "`total`, a scalar, or an input with the axes [width] or [n][width]",
      [&](const std::string& name, const Parameter* given) {
        const Axes axes = program.AxesOf(name);
        return name == "total" ||
               (given != nullptr && (!given->pointer || axes == Axes{"width"} || axes == Axes{"n", "width"}));
      });
}

std::string GatherKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const bool coalesce = schedule.Has("coalesce");
  const bool stride = schedule.Has("grid_stride");
  const int step = schedule.Get("vectorize", 1);
  const int block = schedule.Get("block", 256);
  Values values = CommonValues(program, 256,
                               {{"step", step},
                                {"single", GatherBody(program, 1)},
                                {"vector", step > 1 ? GatherBody(program, step) : ""},
                                // With a bag the loop over it is the inner one.
                                {"outer_unroll", HasBag(program) ? "" : UnrollPragma(schedule)}});
  std::string comment = coalesce ? "a thread for each element" : "a thread for each row";
  if (stride) comment += ", threads stride over them by the size of the grid";
  if (step > 1) comment += ", " + std::to_string(step) + " elements at a time";
  values["comment"] = comment;
  std::string work;
  if (coalesce) {
    work = step == 1 ? "const int i = unit / width;\nconst int d = unit % width;\n@single@\n" : R"(
const int i = unit / units_per_row;
const int d = unit % units_per_row * @step@;
if (width % @step@ == 0) {
  @vector@
} else {
  const int first = d;
  for (int d = first; d < min(first + @step@, width); ++d) {
    @single@
  }
}
)";
  } else {
    work = step == 1 ? "const int i = unit;\n@outer_unroll@\nfor (int d = 0; d < width; ++d) {\n  @single@\n}\n" : R"(
const int i = unit;
int d = 0;
if (width % @step@ == 0) {
  @outer_unroll@
  for (; d < width; d += @step@) {
    @vector@
  }
}
for (; d < width; ++d) {
  @single@
}
)";
  }
  values["work"] = Fill(work, values);
  const std::string units_per_row =
      step == 1 ? "width" : "(width + " + std::to_string(step - 1) + ") / " + std::to_string(step);
  std::string before;
  if (coalesce && step > 1) before += "const int units_per_row = " + units_per_row + ";\n";
  before += "const int units = " + std::string(!coalesce ? "n" : step == 1 ? "n * width" : "n * units_per_row") + ";\n";
  values["before"] = before;
  values["loop"] = stride ? Fill(R"(
@coalesced_unroll@
for (int unit = blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += gridDim.x * blockDim.x) {
  @work@
}
)",
                                 {{"coalesced_unroll", coalesce && !HasBag(program) ? UnrollPragma(schedule) : ""},
                                  {"work", values["work"]}})
                          : Fill(R"(
const int unit = blockIdx.x * blockDim.x + threadIdx.x;
if (unit >= units) return;
@work@
)",
                                 values);
  values["blocks"] = BlocksText(schedule, "units", block, kGridStrideThreads / block);
  return Fill(R"(
// kernels: @comment@.
__global__ void gather_kernel(@parameters@) {
  @before@
  @loop@
}

@launch@ {
  @before@
  @blocks@
  gather_kernel<<<blocks, @block@>>>(@arguments@);
}
)",
              values);
}

}  // namespace

const Skeleton* GatherSkeleton() {
  static const Skeleton kSkeleton = {
      "gather",
      {},
      {{kCoalesce, "a thread for each element, so that neighbouring threads share a row"},
       VectorRule("vectorised loads and stores, float@value@"),
       GridStrideRule(),
       UnrollRule("the inner loop",
                  [](const Program& p) {
                    const bool loop = HasBag(p) || !p.schedule.Has("coalesce") || p.schedule.Has("grid_stride");
                    return loop ? "" : kOneLoop;
                  }),
       RestrictRule(),
       BlockRule(),
       FastRule()},
      {{{kTile, kPad, kPrefetch},
        "which rows are read is known at run time only, so a shared-memory tile can't hold them"},
       {{kShuffle, kCooperate}, "elements of a row are independent of each other, so threads have nothing to combine"},
       {{kRegister}, kNoSecondOutput},
       {{kFuse}, kOneKernel},
       {{kOnePass}, "the rows are swept once already"},
       {{kHalf}, "the table is float32, so the traffic would stay the same"},
       {{kPrivatize}, "no two threads write the same element"},
       {{kBranchless}, kSamePath},
       {{kHoist}, "a row's index is read once for each element, from the first-level cache"}},
      "a gather has no place for it",
      MissingGather,
      GatherKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
