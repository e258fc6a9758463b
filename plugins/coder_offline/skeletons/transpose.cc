// A matrix with its axes swapped: out[cols][rows] from x[rows][cols], or the same for each member of a batch.
//
// The problem's part may hold apply(float value, ...), applied to each element; its other parameters are named after
// inputs with the output's layout, or scalars. In the naive form apply is a second kernel over the output.
#include "coder_offline/skeleton.h"
#include "coder_offline/skeletons/all.h"
#include "coder_offline/skeletons/shared.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

using Axes = std::vector<std::string>;

bool HasBatch(const Program& program) {
  return program.layout.at(program.Output()->name).size() == 3;
}

// The input that is transposed: the first one whose layout differs from the output's.
std::string TransposedInput(const Program& program) {
  for (const Parameter& parameter : program.parameters) {
    if (!parameter.pointer || !parameter.constant) continue;
    const auto found = program.layout.find(parameter.name);
    if (found != program.layout.end() && found->second != program.layout.at(program.Output()->name))
      return parameter.name;
  }
  return "";
}

std::string ApplyText(const Program& program, const std::string& value, const std::string& index) {
  const Function* apply = program.FindFunction("apply");
  if (apply == nullptr) return value;
  return CallText(*apply, [&](const Parameter& parameter) -> std::string {
    if (parameter.name == "value") return value;
    return program.FindParameter(parameter.name)->pointer ? parameter.name + "[" + index + "]" : parameter.name;
  });
}

class Transpose : public Skeleton {
 public:
  std::string_view name() const override { return "transpose"; }

  const std::vector<Rule>& rules() const override {
    static const std::vector<Rule> kRules = {
        {Technique::kTile, "tile", {16, 32, 64}, 32, "shared-memory tiling, tile @value@", nullptr},
        {Technique::kPad, "pad", {}, 1, "the tile padded against bank conflicts", NeedsTile},
        {Technique::kRegister, "register", {4, 8}, 4, "@value@ rows of the tile a thread", NeedsTile},
        {Technique::kUnroll,
         "unroll",
         {2, 4, 8},
         4,
         "the thread's loop over its rows unrolled @value@ times",
         [](const Program& program) -> std::string {
           return program.schedule.Has("register") ? "" : "a thread has one element and no loop to unroll";
         }},
        {Technique::kCoalesce,
         "coalesce",
         {},
         1,
         "writes coalesced instead of reads",
         [](const Program& program) -> std::string {
           return program.schedule.Has("tile") ? "reads and writes are both coalesced by the tile" : "";
         }},
        {Technique::kFuse,
         "fuse",
         {},
         1,
         "the element's last step fused into the transpose",
         [](const Program& program) -> std::string {
           return program.FindFunction("apply") == nullptr ? "there is one kernel only, so nothing to fuse" : "";
         }},
        RestrictRule(),
        FastRule(),
    };
    return kRules;
  }

  std::string Missing(const Program& program) const override {
    std::string missing = MissingNames(program, {}, {"rows", "cols"});
    if (!missing.empty()) return missing;
    const auto found = program.layout.find(program.Output()->name);
    const bool plain = found != program.layout.end() && found->second == Axes{"cols", "rows"};
    const bool batch = found != program.layout.end() && found->second == Axes{"batch", "cols", "rows"};
    if (!plain && !batch) return "an output with the axes [cols][rows] or [batch][cols][rows]";
    if (batch && program.FindParameter("batch") == nullptr) return "a launch parameter batch";
    const std::string input = TransposedInput(program);
    if (input.empty() || program.layout.at(input) != (batch ? Axes{"batch", "rows", "cols"} : Axes{"rows", "cols"})) {
      return "an input with the axes [rows][cols], after batch where the output has one";
    }
    if (const Function* apply = program.FindFunction("apply")) {
      for (const Parameter& parameter : apply->parameters) {
        if (parameter.name != "value" &&
            (program.FindParameter(parameter.name) == nullptr || parameter.name == input)) {
          return "each parameter of apply to be `value`, a scalar, or an input that lies like the output; " +
                 parameter.name + " is not";
        }
      }
    }
    return "";
  }

  std::string WhyNever(Technique technique) const override {
    switch (technique) {
      case Technique::kVectorize:
        return "neighbours in the input are far apart in the output, so a vector can't be stored whole";
      case Technique::kShuffle:
      case Technique::kCooperate:
        return "elements are independent of each other, so threads have nothing to combine";
      case Technique::kBlock:
        return "the block is the tile; choose the tile instead";
      case Technique::kHalf:
        return "the arrays are float32, so the traffic would stay the same";
      case Technique::kOnePass:
        return "no kernel sweeps over its data twice";
      case Technique::kPrefetch:
        return "a block has one tile, so there is no next one to load";
      case Technique::kGridStride:
        return "every thread has its element, and the grid covers them once";
      default:
        return "a transpose has no place for it";
    }
  }

  std::string Kernels(const Program& program) const override {
    const Schedule& schedule = program.schedule;
    const bool separate = program.FindFunction("apply") != nullptr && !schedule.Has("fuse");
    const bool tiled = schedule.Has("tile");
    const bool coalesce = schedule.Has("coalesce");
    const bool batch = HasBatch(program);
    const int tile = schedule.Get("tile", 16);
    const int each = tiled ? schedule.Get("register", 1) : 1;
    const std::string out_index = batch ? "offset + (size_t)col * rows + row" : "(size_t)col * rows + row";
    const std::string in_index = batch ? "offset + (size_t)row * cols + col" : "(size_t)row * cols + col";
    const auto result = [&](const std::string& value) {
      return separate ? value : ApplyText(program, value, "out_index");
    };
    std::map<std::string, std::string> values = {
        {"comment",
         tiled
             ? "a block moves a " + std::to_string(tile) + "x" + std::to_string(tile) + " tile through shared memory" +
                   (each > 1 ? ", " + std::to_string(each) + " elements a thread" : "")
             : std::string("a thread moves one element, ") + (coalesce ? "writes" : "reads") + " are coalesced"},
        {"parameters", ParameterList(program.parameters, schedule.Has("restrict"))},
        {"arguments", ArgumentList(program.parameters)},
        {"launch", LaunchLine(program)},
        {"offset", batch ? "const size_t offset = (size_t)blockIdx.z * rows * cols;" : ""},
        {"out", program.Output()->name},
        {"in", TransposedInput(program)},
        {"in_index", in_index},
        {"out_index", out_index},
        {"tile", std::to_string(tile)},
        {"less_one", std::to_string(tile - 1)},
        {"padded", std::to_string(tile + (schedule.Has("pad") ? 1 : 0))},
        {"lines", std::to_string(tile / each)},
        {"unroll", UnrollPragma(schedule)},
        {"row_lane", coalesce ? "threadIdx.x" : "threadIdx.y"},
        {"col_lane", coalesce ? "threadIdx.y" : "threadIdx.x"},
        {"z", batch ? ", batch" : ""},
        {"plain_result", result(TransposedInput(program) + "[" + in_index + "]")}};
    const auto each_line = [&](const std::string& statements) {
      if (each == 1) return ReplaceWord(Fill(statements, values), "line", "threadIdx.y");
      values["statements"] = Fill(statements, values);
      return Fill(R"(
@unroll@
for (int line = threadIdx.y; line < @tile@; line += @lines@) {
  @statements@
}
)",
                  values);
    };
    std::string kernel;
    if (tiled) {
      values["tile_result"] = result("tile[threadIdx.x][line]");
      values["read"] = each_line(R"(
const int row = first_row + line;
const int col = first_col + threadIdx.x;
if (row < rows && col < cols) tile[line][threadIdx.x] = @in@[@in_index@];
)");
      values["write"] = each_line(R"(
const int row = first_row + threadIdx.x;
const int col = first_col + line;
const size_t out_index = @out_index@;
if (row < rows && col < cols) @out@[out_index] = @tile_result@;
)");
      if (each == 1) {
        values["read"] = "{\n" + Fill("  @t@\n", {{"t", values["read"]}}) + "}\n";
        values["write"] = "{\n" + Fill("  @t@\n", {{"t", values["write"]}}) + "}\n";
      }
      kernel = R"(
__global__ void transpose_kernel(@parameters@) {
  __shared__ float tile[@tile@][@padded@];
  const int first_row = blockIdx.y * @tile@;
  const int first_col = blockIdx.x * @tile@;
  @offset@
  @read@
  __syncthreads();
  @write@
}
)";
    } else {
      kernel = R"(
__global__ void transpose_kernel(@parameters@) {
  const int row = blockIdx.y * 16 + @row_lane@;
  const int col = blockIdx.x * 16 + @col_lane@;
  if (row >= rows || col >= cols) return;
  @offset@
  const size_t out_index = @out_index@;
  @out@[out_index] = @plain_result@;
}
)";
    }
    std::string text = Fill("// kernels: @comment@.\n", values) + Fill(kernel, values) + "\n";
    if (separate) {
      values["element_count"] = batch ? "(size_t)batch * rows * cols" : "(size_t)rows * cols";
      values["applied"] = ApplyText(program, program.Output()->name + "[i]", "i");
      text += Fill(R"(
__global__ void apply_kernel(@parameters@) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < @element_count@) @out@[i] = @applied@;
}

)",
                   values);
    }
    text += Fill(R"(
@launch@ {
  const dim3 blocks((cols + @less_one@) / @tile@, (rows + @less_one@) / @tile@@z@);
  transpose_kernel<<<blocks, dim3(@tile@, @lines@)>>>(@arguments@);
)",
                 values);
    if (separate) text += Fill("  apply_kernel<<<(@element_count@ + 255) / 256, 256>>>(@arguments@);\n", values);
    return text + "}\n";
  }
};

}  // namespace

const Skeleton* TransposeSkeleton() {
  static const Transpose kSkeleton;
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
