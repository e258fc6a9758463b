// A matrix with its axes swapped: out[cols][rows] from x[rows][cols], or the same for each member of a batch.
//
// The problem's part may hold apply(float value, ...), applied to each element; its other parameters are named after
// inputs with the output's layout, or scalars. In the naive form apply is a second kernel over the output.
#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {
namespace {

bool HasBatch(const Program& program) { return program.AxesOf(program.Output()->name).size() == 3; }

// The input that is transposed: the first one whose layout differs from the output's.
std::string TransposedInput(const Program& program) {
  for (const Parameter& parameter : program.parameters) {
    if (!parameter.pointer || !parameter.constant) continue;
    const Axes axes = program.AxesOf(parameter.name);
    if (!axes.empty() && axes != program.AxesOf(program.Output()->name)) return parameter.name;
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

std::string MissingTranspose(const Program& program) {
  const std::string missing = MissingNames(program, {}, {"rows", "cols"});
  if (!missing.empty()) return missing;
  const Axes output = program.AxesOf(program.Output()->name);
  const bool batch = output == Axes{"batch", "cols", "rows"};
  if (!batch && output != Axes{"cols", "rows"}) return "an output with the axes [cols][rows] or [batch][cols][rows]";
  if (batch && program.FindParameter("batch") == nullptr) return "a launch parameter batch";
  const std::string input = TransposedInput(program);
  if (program.AxesOf(input) != (batch ? Axes{"batch", "rows", "cols"} : Axes{"rows", "cols"})) {
    return "an input with the axes [rows][cols], after batch where the output has one";
  }
  const Function* apply = program.FindFunction("apply");
  if (apply == nullptr) return "";
  return Refused(program, *apply, "`value`, a scalar, or an input that lies like the output",
                 [&](const std::string& name, const Parameter* given) {
                   return name == "value" || (given != nullptr && name != input);
                 });
}

std::string TransposeKernels(const Program& program) {
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
  Values values = CommonValues(
      program, 256,
      {{"comment",
        tiled ? "a block moves a " + std::to_string(tile) + "x" + std::to_string(tile) + " tile through shared memory" +
                    (each > 1 ? ", " + std::to_string(each) + " elements a thread" : "")
              : std::string("a thread moves one element, ") + (coalesce ? "writes" : "reads") + " are coalesced"},
       {"offset", batch ? "const size_t offset = (size_t)blockIdx.z * rows * cols;" : ""},
       {"in", TransposedInput(program)},
       {"in_index", in_index},
       {"out_index", out_index},
       {"tile", tile},
       {"less_one", tile - 1},
       {"padded", std::to_string(tile + (schedule.Has("pad") ? 1 : 0))},
       {"lines", tile / each},
       {"row_lane", coalesce ? "threadIdx.x" : "threadIdx.y"},
       {"col_lane", coalesce ? "threadIdx.y" : "threadIdx.x"},
       {"z", batch ? ", batch" : ""},
       {"plain_result", result(TransposedInput(program) + "[" + in_index + "]")}});
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

}  // namespace

const Skeleton* TransposeSkeleton() {
  static const Skeleton kSkeleton = {
      "transpose",
      {},
      {{kTile, "shared-memory tiling, tile @value@", {16, 32, 64}, 32},
       {kPad, "the tile padded against bank conflicts", {}, 1, NeedsTile()},
       {kRegister, "@value@ rows of the tile a thread", {4, 8}, 4, NeedsTile()},
       UnrollRule("the thread's loop over its rows", Unless({"register"}, kOneLoop)),
       {kCoalesce,
        "writes coalesced instead of reads",
        {},
        1,
        If("tile", "reads and writes are both coalesced by the tile")},
       {kFuse, "the element's last step fused into the transpose", {}, 1, NeedsSecondKernel("apply")},
       RestrictRule(),
       FastRule()},
      {{{kVectorize}, "neighbours in the input are far apart in the output, so a vector can't be stored whole"},
       {{kShuffle, kCooperate}, kIndependent},
       {{kBlock}, "the block is the tile; choose the tile instead"},
       {{kHalf}, kFloatTraffic},
       {{kOnePass}, "no kernel sweeps over its data twice"},
       {{kPrefetch}, "a block has one tile, so there is no next one to load"},
       {{kGridStride}, "every thread has its element, and the grid covers them once"}},
      "a transpose has no place for it",
      MissingTranspose,
      TransposeKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
