// Two-dimensional windows: out[y][x] from the (2 kRadius + 1)^2 elements of x around it. Convolutions, blurs, pooling.
//
// The problem's part holds constexpr int kRadius, identity(), border() (the value outside the image) and
// accumulate(float total, float value) or accumulate(float total, float value, float weight), the weights being an
// input with the axes [taps]. It may hold finish(float total, <scalars of launch>); in the naive form that is a second
// kernel over the output. In the naive kernel a thread computes one output, neighbouring threads work on neighbouring
// rows, and every tap tests the border.
#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {
namespace {

// The input with the given axes; empty when there is none.
std::string InputWith(const Program& program, const Axes& axes) {
  for (const Parameter& parameter : program.parameters) {
    if (!parameter.pointer || !parameter.constant) continue;
    if (program.AxesOf(parameter.name) == axes) return parameter.name;
  }
  return "";
}

std::string FinishStencil(const Program& program, const std::string& total) {
  const Function* finish = program.FindFunction("finish");
  if (finish == nullptr) return total;
  return CallText(*finish,
                  [&](const Parameter& parameter) { return parameter.name == "total" ? total : parameter.name; });
}

std::string AccumulateText(const Program& program, const std::string& total, const std::string& value,
                           const std::string& tap) {
  const bool weighted = program.FindFunction("accumulate")->parameters.size() == 3;
  const std::string weight = weighted ? ", " + InputWith(program, {"taps"}) + "[" + tap + "]" : "";
  return total + " = accumulate(" + total + ", " + value + weight + ");\n";
}

// The loops over the window of the thread's output(s); `value(row, column)` writes the element at an offset from the
// first window's corner.
std::string Window(const Program& program, int each,
                   const std::function<std::string(const std::string&, const std::string&)>& value) {
  Values values = {
      {"unroll", UnrollPragma(program.schedule)}, {"each", each}, {"value", value("dy", "dx")}, {"accumulate", ""}};
  if (each == 1) {
    values["accumulate"] = AccumulateText(program, "total", value("dy", "dx"), "dy * kWindow + dx");
    return Fill(R"(
float total = identity();
for (int dy = 0; dy < kWindow; ++dy) {
  @unroll@
  for (int dx = 0; dx < kWindow; ++dx) {
    @accumulate@
  }
}
)",
                values);
  }
  values["accumulate"] = AccumulateText(program, "totals[r]", "column[r + dy]", "dy * kWindow + dx");
  return Fill(R"(
float totals[@each@];
for (int r = 0; r < @each@; ++r) totals[r] = identity();
@unroll@
for (int dx = 0; dx < kWindow; ++dx) {
  float column[kWindow + @each@ - 1];  // serves all outputs of the thread
  for (int dy = 0; dy < kWindow + @each@ - 1; ++dy) column[dy] = @value@;
  for (int dy = 0; dy < kWindow; ++dy) {
    for (int r = 0; r < @each@; ++r) @accumulate@
  }
}
)",
              values);
}

std::string MissingStencil(const Program& program) {
  const std::string missing = MissingNames(program, {"identity", "border", "accumulate"}, {"height", "width"});
  if (!missing.empty()) return missing;
  if (program.constants.count("kRadius") == 0) return "a line constexpr int kRadius = <number>;";
  const Axes image = {"height", "width"};
  if (program.AxesOf(program.Output()->name) != image) return "an output with the axes [height][width]";
  if (InputWith(program, image).empty()) return "an input with the axes [height][width]";
  const size_t operands = program.FindFunction("accumulate")->parameters.size();
  if (operands != 2 && operands != 3) return "accumulate(float total, float value) or with a weight";
  return operands == 3 && InputWith(program, {"taps"}).empty() ? "weights with the axes [taps]" : "";
}

std::string StencilKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const bool separate = program.FindFunction("finish") != nullptr && !schedule.Has("fuse");
  const bool tiled = schedule.Has("tile");
  const bool coalesce = schedule.Has("coalesce");
  const bool half = schedule.Has("half");
  const int tile = schedule.Get("tile", 16);
  const int each = schedule.Get("register", 1);
  const int lines = tile / each;
  const std::string out = program.Output()->name;
  const auto result = [&](const std::string& total) { return separate ? total : FinishStencil(program, total); };
  Values values = CommonValues(program, 256,
                               {{"in", InputWith(program, {"height", "width"})},
                                {"tile", tile},
                                {"less_one", tile - 1},
                                {"lines", lines},
                                {"each", each},
                                {"pad", schedule.Has("pad") ? " + 1" : ""},
                                {"type", half ? "__half" : "float"},
                                {"store", half ? "__float2half(value)" : "value"},
                                {"row_lane", coalesce ? "threadIdx.y" : "threadIdx.x"},
                                {"col_lane", coalesce ? "threadIdx.x" : "threadIdx.y"},
                                // The row's axis has `lines` threads, so that a thread's outputs lie below each other.
                                {"block", coalesce ? std::to_string(tile) + ", " + std::to_string(lines)
                                                   : std::to_string(lines) + ", " + std::to_string(tile)},
                                {"comment", (tiled ? "a block computes a " + std::to_string(tile) + "x" +
                                                         std::to_string(tile) + " tile of outputs from shared memory"
                                                   : std::string("windows are read from global memory")) +
                                                (each > 1 ? ", " + std::to_string(each) + " outputs a thread" : "") +
                                                (coalesce ? ", neighbouring threads in neighbouring columns"
                                                          : ", neighbouring threads in neighbouring rows")}});
  values["write"] =
      each == 1 ? "if (row < height && col < width) " + out + "[(size_t)row * width + col] = " + result("total") + ";\n"
                : "for (int r = 0; r < " + std::to_string(each) + "; ++r) {\n  if (row + r < height && col < width) " +
                      out + "[(size_t)(row + r) * width + col] = " + result("totals[r]") + ";\n}\n";
  values["row"] = each == 1 ? Fill("first_row + @row_lane@", values) : Fill("first_row + @row_lane@ * @each@", values);
  values["row"] = Trim(values["row"]);
  std::string body;
  if (tiled) {
    values["tile_row"] = each == 1 ? values["row_lane"] : values["row_lane"] + " * " + values["each"];
    values["window"] = Window(program, each, [&](const std::string& dy, const std::string& dx) {
      const std::string text = "tile[" + values["tile_row"] + " + " + dy + "][" + values["col_lane"] + " + " + dx + "]";
      return half ? "__half2float(" + text + ")" : text;
    });
    values["thread"] = coalesce ? Trim(Fill("threadIdx.y * @tile@ + threadIdx.x", values))
                                : Trim(Fill("threadIdx.x * @tile@ + threadIdx.y", values));
    body = Fill(R"(
__shared__ @type@ tile[@tile@ + 2 * kRadius][@tile@ + 2 * kRadius@pad@];
for (int i = @thread@; i < (@tile@ + 2 * kRadius) * (@tile@ + 2 * kRadius); i += @tile@ * @lines@) {
  const int tile_row = i / (@tile@ + 2 * kRadius);
  const int tile_col = i % (@tile@ + 2 * kRadius);
  const int from_row = first_row + tile_row - kRadius;
  const int from_col = first_col + tile_col - kRadius;
  const bool inside = from_row >= 0 && from_row < height && from_col >= 0 && from_col < width;
  const float value = inside ? @in@[(size_t)from_row * width + from_col] : border();
  tile[tile_row][tile_col] = @store@;
}
__syncthreads();
@window@
)",
                values);
  } else {
    const auto checked = [&](const std::string& dy, const std::string& dx) {
      return "load_or_border(" + values["in"] + ", row + " + dy + " - kRadius, col + " + dx +
             " - kRadius, height, width)";
    };
    const auto direct = [&](const std::string& dy, const std::string& dx) {
      return values["in"] + "[(size_t)(row + " + dy + " - kRadius) * width + col + " + dx + " - kRadius]";
    };
    if (schedule.Has("branchless")) {
      const std::string declare = each == 1 ? "float total = identity();\n" : Fill("float totals[@each@];\n", values);
      const auto without_declaration = [&](std::string text) {
        const size_t end = text.find('\n');
        text = text.substr(end + 1);
        return each == 1 ? "total = identity();\n" + text : text;
      };
      values["declare"] = each == 1 ? "float total;" : Trim(declare);
      values["fast_window"] = without_declaration(Window(program, each, direct));
      values["slow_window"] = without_declaration(Window(program, each, checked));
      body = Fill(R"(
@declare@
const bool inner = first_row >= kRadius && first_row + @tile@ + kRadius <= height &&
                   first_col >= kRadius && first_col + @tile@ + kRadius <= width;
if (inner) {  // the same for the whole block, and no tap can leave the image
  @fast_window@
} else {
  @slow_window@
}
)",
                  values);
    } else {
      body = Window(program, each, checked);
    }
  }
  values["body"] = body;
  std::string text = Fill(R"(
// kernels: @comment@.
constexpr int kWindow = 2 * kRadius + 1;

)",
                          values);
  if (!tiled) {
    text += R"(__device__ float load_or_border(const float* image, int row, int col, int height, int width) {
  const bool inside = row >= 0 && row < height && col >= 0 && col < width;
  return inside ? image[(size_t)row * width + col] : border();
}

)";
  }
  text += Fill(R"(
__global__ void window_kernel(@parameters@) {
  const int first_row = blockIdx.y * @tile@;
  const int first_col = blockIdx.x * @tile@;
  const int row = @row@;
  const int col = first_col + @col_lane@;
  @body@
  @write@
}

)",
               values);
  if (separate) {
    values["finish"] = FinishStencil(program, out + "[i]");
    text += Fill(R"(
__global__ void finish_kernel(@parameters@) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < (size_t)height * width) @out@[i] = @finish@;
}

)",
                 values);
  }
  text += Fill(R"(
@launch@ {
  const dim3 blocks((width + @less_one@) / @tile@, (height + @less_one@) / @tile@);
  window_kernel<<<blocks, dim3(@block@)>>>(@arguments@);
)",
               values);
  if (separate) text += Fill("  finish_kernel<<<((size_t)height * width + 255) / 256, 256>>>(@arguments@);\n", values);
  return text + "}\n";
}

}  // namespace

const Skeleton* StencilSkeleton() {
  static const Skeleton kSkeleton = {
      "stencil",
      {},
      {{kTile, "shared-memory tiling with a halo, tile @value@", {16, 32, 64}, 16},
       {kRegister, "register blocking, @value@ outputs a thread from one column of values", {2, 4, 8}, 4},
       {kUnroll, "the loop over a window's columns unrolled @value@ times", {2, 4, 8}, 8},
       InterchangeRule(),
       {kFuse, "the element's last step fused into the window's kernel", {}, 1, NeedsSecondKernel("finish")},
       RestrictRule(),
       {kBranchless,
        "the border tested once a block, not at every tap",
        {},
        1,
        If("tile", "the taps read the tile, which needs no test of the border")},
       {kPad, "the tile padded against bank conflicts", {}, 1, NeedsTile()},
       FastRule(),
       {kHalf,
        "the tile held in half precision",
        {},
        1,
        Unless({"tile"},
               "the arrays are float32; only a shared-memory tile could be held in half precision, and there is none "
               "yet")}},
      {{{kVectorize}, "the windows of neighbouring outputs overlap at odd offsets, so vectors would not be aligned"},
       {{kShuffle, kCooperate}, "a thread sums its own window, so threads have nothing to combine"},
       {{kGridStride}, "every thread has its output, and the grid covers them once"},
       {{kBlock}, "the block is the tile of outputs; choose the tile instead"},
       {{kHoist}, "a tap's weight is read once for each output already"},
       {{kPrefetch}, "a block has one tile, so there is no next one to load"},
       {{kOnePass}, "the image is swept once already"},
       {{kPrivatize}, "no two threads add to the same output"}},
      "a window has no place for it",
      MissingStencil,
      StencilKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
