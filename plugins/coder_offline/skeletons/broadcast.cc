// Elementwise kernels with a costly coefficient for each column: out[r][c] = apply(x[r][c], coefficient(c)).
//
// The problem's part holds coefficient(int column, <scalars of launch>) and apply(float x, float c). In the naive
// kernel each thread computes one element including its coefficient, and neighbouring threads work on neighbouring
// rows.
#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {
namespace {

constexpr int kRowsPerThread = 16;  // how many rows share a hoisted coefficient

std::string Coefficient(const Program& program, const std::string& column) {
  return CallText(*program.FindFunction("coefficient"),
                  [&](const Parameter& p) { return p.name == "column" ? column : p.name; });
}

std::string ColumnPlus(int k) { return k == 0 ? "column" : "column + " + std::to_string(k); }

// The statements for the columns of this thread in row `row`; coefficients stand in `factor`, or are computed in place.
std::string RowStatements(const Program& program, int width, bool hoisted) {
  const std::string in = FirstInput(program)->name;
  const std::string out = program.Output()->name;
  if (width == 1) {
    const std::string factor = hoisted ? "factor" : Coefficient(program, "column");
    return out + "[(size_t)row * cols + column] = apply(" + in + "[(size_t)row * cols + column], " + factor + ");\n";
  }
  const std::string type = "float" + std::to_string(width);
  std::string text = "const " + type + " loaded = *reinterpret_cast<const " + type + "*>(" + in +
                     " + (size_t)row * cols + column);\n" + type + " result;\n";
  for (int k = 0; k < width; ++k) {
    const std::string factor = hoisted ? "factor[" + std::to_string(k) + "]" : Coefficient(program, ColumnPlus(k));
    text += Fill("result@component@ = apply(loaded@component@, @factor@);\n",
                 {{"component", Component(k)}, {"factor", factor}});
  }
  return text + "*reinterpret_cast<" + type + "*>(" + out + " + (size_t)row * cols + column) = result;\n";
}

// The thread's rows at its column(s).
std::string BroadcastBody(const Program& program, int width) {
  const Schedule& schedule = program.schedule;
  if (!schedule.Has("hoist")) {
    return "if (row < rows) {\n" + Fill("  @s@\n", {{"s", RowStatements(program, width, false)}}) + "}\n";
  }
  std::vector<std::string> each;
  each.reserve(static_cast<size_t>(width));
  for (int k = 0; k < width; ++k) each.push_back(Coefficient(program, ColumnPlus(k)));
  const std::string factors = "const float factor" + (width == 1 ? " = " : "[" + std::to_string(width) + "] = {") +
                              Join(each, ", ") + (width == 1 ? ";\n" : "};\n");
  return Fill(R"(
@factors@
const int end = min(first_row + @rows@, rows);
@unroll@
for (int row = first_row; row < end; ++row) {
  @statements@
}
)",
              {{"factors", factors},
               {"rows", kRowsPerThread},
               {"unroll", UnrollPragma(schedule)},
               {"statements", RowStatements(program, width, true)}});
}

std::string MissingBroadcast(const Program& program) {
  std::string missing = MissingNames(program, {"coefficient", "apply"}, {"rows", "cols"});
  if (!missing.empty()) return missing;
  if (FirstInput(program) == nullptr) return "an input";
  if (program.FindFunction("apply")->parameters.size() != 2) return "apply(float x, float c)";
  return Refused(program, *program.FindFunction("coefficient"), "`column` or a scalar of launch",
                 [](const std::string& name, const Parameter* given) { return name == "column" || given != nullptr; });
}

std::string BroadcastKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const int width = schedule.Get("vectorize", 1);
  const bool hoist = schedule.Has("hoist");
  const bool coalesce = schedule.Has("coalesce");
  const int block = schedule.Get("block", 256);
  const std::string unit = hoist ? std::to_string(kRowsPerThread) : "1";
  std::string columns = "const int column = @column@;\nif (column >= cols) return;\n@body@\n";
  if (width > 1) {
    columns = R"(
const int column = (@column@) * @width@;
if (column + @width@ <= cols && cols % @width@ == 0) {
  @vector_body@
} else {
  // Rows that are no multiple of @width@ long, one column after the other.
  const int last = min(column + @width@, cols);
  for (int single = column; single < last; ++single) {
    @single_body@
  }
}
)";
  }
  const std::string along = "blockIdx.x * blockDim.x + threadIdx.x";
  const std::string index = coalesce ? along : "blockIdx.y";
  const std::string row_index = coalesce ? "blockIdx.y" : along;
  const std::string code = Fill(columns, {{"column", index},
                                          {"width", width},
                                          {"body", BroadcastBody(program, 1)},
                                          {"vector_body", BroadcastBody(program, width)},
                                          {"single_body", ReplaceWord(BroadcastBody(program, 1), "column", "single")}});
  const std::string row_name = hoist ? "first_row" : "row";
  std::string row = "const int " + row_name + " = " + (hoist ? "(" + row_index + ") * " + unit : row_index) + ";\n";
  const std::string column_units =
      width > 1 ? "(cols + " + std::to_string(width - 1) + ") / " + std::to_string(width) : "cols";
  const std::string row_units = hoist ? "(rows + " + std::to_string(kRowsPerThread - 1) + ") / " + unit : "rows";
  const std::string x = coalesce ? "column_units" : "row_units";
  const std::string y = coalesce ? "row_units" : "column_units";
  return Fill(
      R"(
// kernels: @comment@.
__global__ void broadcast_kernel(@parameters@) {
  @row@
  @code@
}

@launch@ {
  const int row_units = @row_units@;
  const int column_units = @column_units@;
  const dim3 blocks((@x@ + @block_less_one@) / @block@, @y@);
  broadcast_kernel<<<blocks, @block@>>>(@arguments@);
}
)",
      CommonValues(
          program, 256,
          {{"comment",
            std::string("neighbouring threads take neighbouring ") + (coalesce ? "columns" : "rows") +
                (hoist ? ", a coefficient serves " + unit + " rows" : ", an element each with its coefficient") +
                (width > 1 ? ", " + std::to_string(width) + " columns at a time" : "")},
           {"row", row},
           {"code", code},
           {"row_units", row_units},
           {"column_units", column_units},
           {"x", x},
           {"y", y},
           {"block_less_one", block - 1}}));
}

}  // namespace

const Skeleton* BroadcastSkeleton() {
  static const Skeleton kSkeleton = {
      "broadcast",
      {},
      {InterchangeRule(),
       {kHoist, "the column's coefficient computed once for 16 rows"},
       VectorRule("vectorised loads and stores, float@value@"),
       UnrollRule("the loop over rows", Unless({"hoist"}, "a thread has one row and no loop to unroll")),
       RestrictRule(),
       BlockRule(),
       FastRule()},
      {{{kTile, kPad, kPrefetch, kPrivatize}, kUsedOnce},
       {{kShuffle, kCooperate}, kIndependent},
       {{kFuse}, kOneKernel},
       {{kOnePass}, "the kernel sweeps over its data once already"},
       {{kHalf}, kFloatTraffic}},
      "an elementwise kernel has no place for it",
      MissingBroadcast,
      BroadcastKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
