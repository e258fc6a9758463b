// Matrix products: out[m][n] = a[m][k] times b[k][n], or b[n][k] as the layout line says.
//
// The problem's part may hold finish(float total, ...), applied to each element: its parameters are named after vectors
// along a row of the output ([n]), matrices like it ([m][n]) or scalars. In the naive form finish is a second kernel
// over the output, and neighbouring threads of the product work on neighbouring rows.
#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {
namespace {

bool BIsTransposed(const Program& program) { return program.AxesOf("b") == Axes{"n", "k"}; }

// finish(...) at (row, col), or `total` itself where the problem has none.
std::string FinishText(const Program& program) {
  const Function* finish = program.FindFunction("finish");
  if (finish == nullptr) return "total";
  return CallText(*finish, [&](const Parameter& parameter) -> std::string {
    const Parameter* given = program.FindParameter(parameter.name);
    if (parameter.name == "total" || given == nullptr || !given->pointer) return parameter.name;
    return parameter.name + (program.layout.at(parameter.name).size() == 1 ? "[col]" : "[(size_t)row * n + col]");
  });
}

// The sizes of a tiled kernel.
struct Shape {
  int side;     // the block has side x side threads
  int each;     // a thread has each x each outputs
  int outputs;  // the block has outputs x outputs of them
  int depth;    // columns of a and rows of b in shared memory at a time
  int width;    // elements loaded at once
};

Shape ShapeOf(const Schedule& schedule) {
  Shape shape{};
  shape.depth = schedule.Get("tile", 16);
  shape.each = schedule.Get("register", 1);
  shape.side = shape.each == 1 ? shape.depth : 16;
  shape.outputs = shape.side * shape.each;
  shape.width = schedule.Get("vectorize", 1);
  return shape;
}

// One of the two operands on its way into shared memory.
struct Operand {
  std::string name;      // "a" or "b"
  bool depth_is_fast;    // neighbouring elements in memory differ in depth
  bool stored_by_depth;  // the tile is [depth][outputs], not [outputs][depth]
};

std::string TileIndex(const Operand& operand, const std::string& along, const std::string& depth) {
  return operand.stored_by_depth ? "[" + depth + "][" + along + "]" : "[" + along + "][" + depth + "]";
}

// Writes the loops that copy the operand's part of a step into its tile, directly or through registers.
class Copy {
 public:
  Copy(const Program& program, const Operand& operand)
      : schedule_(program.schedule), shape_(ShapeOf(schedule_)), operand_(operand) {}

  int Loads() const {
    const int threads = shape_.side * shape_.side;
    return (Elements() + threads * shape_.width - 1) / (threads * shape_.width);
  }
  std::string RegisterType() const { return shape_.width == 1 ? "float" : "float4"; }

  // for (...) tile = global
  std::string Direct() const {
    return Loop("const " + RegisterType() + " loaded = " + Global("depth") + ";\n" + Store("loaded"));
  }
  // for (...) next[j] = global at `depth`
  std::string ToRegisters(const std::string& depth) const {
    return Loop(operand_.name + "_next[j] = " + Global(depth) + ";\n");
  }
  // for (...) tile = next[j]
  std::string FromRegisters() const { return Loop(Store(operand_.name + "_next[j]")); }

 private:
  int Elements() const { return shape_.outputs * shape_.depth; }

  std::string Loop(const std::string& body) const {
    const int threads = shape_.side * shape_.side;
    const int fast = operand_.depth_is_fast ? shape_.depth : shape_.outputs;
    const bool guard = Elements() % (threads * shape_.width) != 0;
    return Fill(R"(
for (int j = 0; j < @loads@; ++j) {
  const int element = @element@;
  @guard@
  const int @slow_name@ = element / @fast@;
  const int @fast_name@ = element % @fast@;
  @body@
}
)",
                {{"loads", Loads()},
                 {"element", shape_.width == 1
                                 ? "thread + j * " + std::to_string(threads)
                                 : "(thread + j * " + std::to_string(threads) + ") * " + std::to_string(shape_.width)},
                 {"guard", guard ? "if (element >= " + std::to_string(Elements()) + ") break;" : ""},
                 {"fast", fast},
                 {"fast_name", operand_.depth_is_fast ? "inner" : "along"},
                 {"slow_name", operand_.depth_is_fast ? "along" : "inner"},
                 {"body", body}});
  }

  // The element of global memory at (along, inner) of the step that starts at `depth`; zero outside the matrix.
  std::string Global(const std::string& depth) const {
    const std::string first = operand_.name == "a" ? "first_row" : "first_col";
    const std::string extent = operand_.name == "a" ? "m" : "n";
    const std::string slow = operand_.depth_is_fast ? first + " + along" : depth + " + inner";
    const std::string fast = operand_.depth_is_fast ? depth + " + inner" : first + " + along";
    const std::string rows = operand_.depth_is_fast ? extent : "k";
    const std::string columns = operand_.depth_is_fast ? "k" : extent;
    return (shape_.width == 1 ? "load_or_zero(" : "load4_or_zero(") + operand_.name + ", " + slow + ", " + fast + ", " +
           rows + ", " + columns + ")";
  }

  std::string Store(const std::string& value) const {
    const auto converted = [&](const std::string& text) {
      return schedule_.Has("half") ? "__float2half(" + text + ")" : text;
    };
    if (shape_.width == 1)
      return operand_.name + "_tile" + TileIndex(operand_, "along", "inner") + " = " + converted(value) + ";\n";
    std::string text;
    for (int c = 0; c < shape_.width; ++c) {
      const std::string plus = c == 0 ? "" : " + " + std::to_string(c);
      text += operand_.name + "_tile" +
              TileIndex(operand_, operand_.depth_is_fast ? "along" : "along" + plus,
                        operand_.depth_is_fast ? "inner" + plus : "inner") +
              " = " + converted(value + Component(c)) + ";\n";
    }
    return text;
  }

  const Schedule& schedule_;
  Shape shape_;
  Operand operand_;
};

std::string LoadHelper(const Schedule& schedule) {
  if (!schedule.Has("vectorize")) {
    return R"(__device__ float load_or_zero(const float* matrix, int row, int column, int rows, int columns) {
  return row < rows && column < columns ? matrix[(size_t)row * columns + column] : 0.0f;
}
)";
  }
  return R"(__device__ float4 load4_or_zero(const float* matrix, int row, int column, int rows, int columns) {
  float4 loaded = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row >= rows) return loaded;
  const float* from = matrix + (size_t)row * columns + column;
  if (columns % 4 == 0) {  // then a vector lies inside its row or outside
    if (column < columns) loaded = *reinterpret_cast<const float4*>(from);
    return loaded;
  }
  if (column < columns) loaded.x = from[0];
  if (column + 1 < columns) loaded.y = from[1];
  if (column + 2 < columns) loaded.z = from[2];
  if (column + 3 < columns) loaded.w = from[3];
  return loaded;
}
)";
}

std::string PlainKernel(const Program& program, const std::string& result) {
  const Schedule& schedule = program.schedule;
  const bool coalesce = schedule.Has("coalesce");
  return Fill(R"(
__global__ void matmul_kernel(@parameters@) {
  const int row = blockIdx.y * 16 + @row_lane@;
  const int col = blockIdx.x * 16 + @col_lane@;
  if (row >= m || col >= n) return;
  float total = 0.0f;
  @unroll@
  for (int i = 0; i < k; ++i) {
    total += a[(size_t)row * k + i] * @b@;
  }
  @out@[(size_t)row * n + col] = @result@;
}
)",
              CommonValues(program, 256,
                           {{"row_lane", coalesce ? "threadIdx.y" : "threadIdx.x"},
                            {"col_lane", coalesce ? "threadIdx.x" : "threadIdx.y"},
                            {"b", BIsTransposed(program) ? "b[(size_t)col * k + i]" : "b[(size_t)i * n + col]"},
                            {"result", result}}));
}

std::string TiledKernel(const Program& program, const std::string& result) {
  const Schedule& schedule = program.schedule;
  const Shape shape = ShapeOf(schedule);
  const bool coalesce = schedule.Has("coalesce");
  const bool half = schedule.Has("half");
  const bool prefetch = schedule.Has("prefetch");
  const bool vectors = shape.width > 1;
  // With vectors a thread's outputs are neighbours, so that its operands are read from the tiles as vectors too.
  const Operand a{"a", true, vectors};
  const Operand b{"b", BIsTransposed(program), true};
  const Copy copy_a(program, a);
  const Copy copy_b(program, b);
  const int pad = schedule.Has("pad") ? (vectors ? 4 : 1) : 0;
  const auto tile = [&](const Operand& operand) {
    const std::string outputs = std::to_string(shape.outputs + (operand.stored_by_depth ? pad : 0));
    const std::string depth = std::to_string(shape.depth + (operand.stored_by_depth ? 0 : pad));
    return std::string("__shared__ ") + (vectors ? "__align__(16) " : "") + (half ? "__half " : "float ") +
           operand.name + "_tile" + TileIndex(operand, outputs, depth) + ";\n";
  };
  const auto own = [&](const std::string& lane, const std::string& index) {
    if (shape.each == 1) return lane;
    return vectors ? lane + " * " + std::to_string(shape.each) + " + " + index
                   : lane + " + " + index + " * " + std::to_string(shape.side);
  };
  const auto read = [&](const Operand& operand, const std::string& along) {
    const std::string text = operand.name + "_tile" + TileIndex(operand, along, "i");
    return half ? "__half2float(" + text + ")" : text;
  };
  Values values = CommonValues(program, 256,
                               {{"outputs", shape.outputs},
                                {"depth", shape.depth},
                                {"side", shape.side},
                                {"each", shape.each},
                                {"tiles", tile(a) + tile(b)},
                                {"row_lane", coalesce ? "threadIdx.y" : "threadIdx.x"},
                                {"col_lane", coalesce ? "threadIdx.x" : "threadIdx.y"},
                                {"thread", coalesce ? "threadIdx.y * " + std::to_string(shape.side) + " + threadIdx.x"
                                                    : "threadIdx.x * " + std::to_string(shape.side) + " + threadIdx.y"},
                                {"result", result},
                                {"own_row", own("row_lane", "r")},
                                {"own_col", own("col_lane", "c")}});
  if (prefetch) {
    values["before"] = copy_a.RegisterType() + " a_next[" + std::to_string(copy_a.Loads()) + "];\n" +
                       copy_b.RegisterType() + " b_next[" + std::to_string(copy_b.Loads()) + "];\n" +
                       copy_a.ToRegisters("0") + copy_b.ToRegisters("0");
    values["copy"] = copy_a.FromRegisters() + copy_b.FromRegisters();
    values["after"] = Fill(
        "if (depth + @depth@ < k) {  // the next step's elements arrive during this one's arithmetic\n  @body@\n}\n",
        {{"depth", shape.depth},
         {"body", copy_a.ToRegisters("depth + " + std::to_string(shape.depth)) +
                      copy_b.ToRegisters("depth + " + std::to_string(shape.depth))}});
  } else {
    values["before"] = "";
    values["copy"] = copy_a.Direct() + copy_b.Direct();
    values["after"] = "";
  }
  if (shape.each == 1) {
    values["totals"] = "float total = 0.0f;";
    values["multiply"] = "total += " + read(a, "row_lane") + " * " + read(b, "col_lane") + ";";
    values["store"] = Fill(R"(
const int row = first_row + row_lane;
const int col = first_col + col_lane;
if (row < m && col < n) @out@[(size_t)row * n + col] = @result@;
)",
                           values);
  } else {
    values["totals"] = Fill("float totals[@each@][@each@] = {};", values);
    values["a_read"] = read(a, values["own_row"]);
    values["b_read"] = read(b, values["own_col"]);
    values["multiply"] = Fill(R"(
float a_value[@each@];
float b_value[@each@];
for (int r = 0; r < @each@; ++r) a_value[r] = @a_read@;
for (int c = 0; c < @each@; ++c) b_value[c] = @b_read@;
for (int r = 0; r < @each@; ++r) {
  for (int c = 0; c < @each@; ++c) totals[r][c] += a_value[r] * b_value[c];
}
)",
                              values);
    values["store"] = Fill(R"(
#pragma unroll
for (int r = 0; r < @each@; ++r) {
  #pragma unroll
  for (int c = 0; c < @each@; ++c) {
    const int row = first_row + @own_row@;
    const int col = first_col + @own_col@;
    const float total = totals[r][c];
    if (row < m && col < n) @out@[(size_t)row * n + col] = @result@;
  }
}
)",
                           values);
  }
  return LoadHelper(schedule) + "\n" +
         Fill(R"(
__global__ void matmul_kernel(@parameters@) {
  @tiles@
  const int row_lane = @row_lane@;
  const int col_lane = @col_lane@;
  const int thread = @thread@;
  const int first_row = blockIdx.y * @outputs@;
  const int first_col = blockIdx.x * @outputs@;
  @totals@
  @before@
  for (int depth = 0; depth < k; depth += @depth@) {
    @copy@
    __syncthreads();
    @after@
    @unroll@
    for (int i = 0; i < @depth@; ++i) {
      @multiply@
    }
    __syncthreads();
  }
  @store@
}
)",
              values);
}

std::string MissingMatmul(const Program& program) {
  const std::string missing = MissingNames(program, {}, {"a", "b", "m", "n", "k"});
  if (!missing.empty()) return missing;
  if (program.AxesOf("a") != Axes{"m", "k"}) return "a layout line with a[m][k]";
  const Axes b = program.AxesOf("b");
  if (b != Axes{"k", "n"} && b != Axes{"n", "k"}) return "a layout line with b[k][n] or b[n][k]";
  if (program.AxesOf(program.Output()->name) != Axes{"m", "n"}) return "an output with the axes [m][n]";
  const Function* finish = program.FindFunction("finish");
  if (finish == nullptr) return "";
  return Refused(program, *finish, "`total`, a scalar of launch, or an input with the axes [n] or [m][n]",
                 [&](const std::string& name, const Parameter* given) {
                   const Axes axes = program.AxesOf(name);
                   return name == "total" ||
                          (given != nullptr && (!given->pointer || axes == Axes{"n"} || axes == Axes{"m", "n"}));
                 });
}

std::string MatmulKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const bool separate = program.FindFunction("finish") != nullptr && !schedule.Has("fuse");
  const std::string result = separate ? "total" : FinishText(program);
  const bool tiled = schedule.Has("tile");
  const Shape shape = tiled ? ShapeOf(schedule) : Shape{16, 1, 16, 0, 1};
  Values values = CommonValues(
      program, 256,
      {{"comment",
        tiled ? "a block computes " + std::to_string(shape.outputs) + "x" + std::to_string(shape.outputs) +
                    " outputs from tiles in shared memory" +
                    (shape.each > 1 ? ", " + std::to_string(shape.each) + "x" + std::to_string(shape.each) + " a thread"
                                    : "")
              : std::string("a thread computes one output, neighbouring threads in neighbouring ") +
                    (schedule.Has("coalesce") ? "columns" : "rows")},
       {"kernel", tiled ? TiledKernel(program, result) : PlainKernel(program, result)},
       {"finish", FinishText(program)},
       {"side", shape.side},
       {"outputs", shape.outputs},
       {"less_one", shape.outputs - 1}});
  std::string text = Fill("// kernels: @comment@.\n@kernel@\n", values);
  text += "\n";
  if (separate) {
    text += Fill(R"(
__global__ void finish_kernel(@parameters@) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y;
  if (col >= n) return;
  const float total = @out@[(size_t)row * n + col];
  @out@[(size_t)row * n + col] = @finish@;
}

)",
                 values);
  }
  text += Fill(R"(
@launch@ {
  const dim3 blocks((n + @less_one@) / @outputs@, (m + @less_one@) / @outputs@);
  matmul_kernel<<<blocks, dim3(@side@, @side@)>>>(@arguments@);
)",
               values);
  if (separate) text += Fill("  finish_kernel<<<dim3((n + 255) / 256, m), 256>>>(@arguments@);\n", values);
  return text + "}\n";
}

}  // namespace

const Skeleton* MatmulSkeleton() {
  static const Skeleton kSkeleton = {
      "matmul",
      {},
      {{kTile, "shared-memory tiling, tile @value@", {16, 32, 64}, 32},
       {kRegister, "register blocking, @value@x@value@ outputs a thread", {4, 8}, 4, NeedsTile()},
       {kVectorize, "tiles loaded by float4", {4}, 4, NeedsTile()},
       UnrollRule("the inner loop"),
       InterchangeRule(),
       {kFuse, "the element's last step fused into the product", {}, 1, NeedsSecondKernel("finish")},
       RestrictRule(),
       {kPad, "the tiles padded against bank conflicts", {}, 1, NeedsTile()},
       {kHalf, "the tiles held in half precision", {}, 1, NeedsTile()},
       {kPrefetch, "the next tile loaded into registers during the arithmetic", {}, 1, NeedsTile()},
       FastRule()},
      {{{kShuffle, kCooperate}, "a thread sums its own outputs, so threads have nothing to combine"},
       {{kGridStride}, "every thread has its outputs, and the grid covers them once"},
       {{kBlock}, "the block is the tile of outputs; choose the tile or the outputs a thread instead"},
       {{kOnePass}, "the product sweeps over its operands once"},
       {{kPrivatize}, "no two threads add to the same output"},
       {{kBranchless}, "only threads outside the matrix take another path"},
       {{kHoist}, "nothing in the inner loop is computed twice"}},
      "a matrix product has no place for it",
      MissingMatmul,
      MatmulKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
