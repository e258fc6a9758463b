// One number from each row: out[row] = finish(combine over the columns of load(...)). Sums of rows, norms,
// matrix-vector products.
//
// The problem's part holds load(<elements>), identity(), combine(float a, float b) and finish(float total, ...). The
// layout line tells which operands are matrices ([rows][cols]), vectors along the row ([cols]) or down the rows
// ([rows]).
#include "coder_offline/skeletons/row_kernel.h"

namespace kgrpo::coder_offline {
namespace {

std::string MissingRows(const Program& program) {
  return MissingRowParts(program, {"load", "identity", "combine", "finish"});
}

std::string RowsKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const Function& load = *program.FindFunction("load");
  const bool half = schedule.Has("half");
  const std::string sweep = SweepText(program, RowOperands(program, load), "", [&](const Element& element) {
    const std::string loaded = CallOnRow(program, load, element, {});
    return half ? "partial = __float2half(combine(__half2float(partial), " + loaded + "));\n"
                : "total = combine(total, " + loaded + ");\n";
  });
  std::string end = half ? "float total = " + JoinCall(program, "combine", "__half2float(partial)") + ";\n" : "";
  if (!half && OwnerOf(schedule) != RowOwner::kThread) end = "total = " + JoinCall(program, "combine", "total") + ";\n";
  const std::string result = program.Output()->name +
                             "[row] = " + CallOnRow(program, *program.FindFunction("finish"), nullptr, {"total"}) +
                             ";\n";
  const RowOwner owner = OwnerOf(schedule);
  end += (owner == RowOwner::kThread ? ""
          : owner == RowOwner::kWarp ? "if (lane == 0) "
                                     : "if (threadIdx.x == 0) ") +
         result;
  return Fill(
      R"(
// kernels: @comment@.
@helpers@
__global__ void rows_kernel(@parameters@) {
  @start@
  @accumulator@
  @sweep@
  @end@
}

@launch@
)",
      CommonValues(program, 256,
                   {{"comment", OwnerComment(schedule)},
                    {"helpers", JoinHelper(program, "combine", "identity()",
                                           [](const std::string& a, const std::string& b) {
                                             return "combine(" + a + ", " + b + ")";
                                           })},
                    {"start", RowStart(program)},
                    {"accumulator", half ? "__half partial = __float2half(identity());" : "float total = identity();"},
                    {"sweep", sweep},
                    {"end", end},
                    {"launch", RowLaunch(program, "rows_kernel", "")}}));
}

}  // namespace

const Skeleton* RowsSkeleton() {
  static const Skeleton kSkeleton = {
      "rows",
      {},
      RowRules("the sweep over the row", {FastRule(), {kHalf, "partial results accumulated in half precision"}}),
      {{{kCoalesce}, kWholeRow},
       {{kTile, kPad, kPrefetch},
        "an element is used by one row only, so a shared-memory tile would not be read twice"},
       {{kRegister}, "the result of a row is one number, which is in a register already"},
       {{kFuse}, kOneKernel},
       {{kOnePass}, "the row is swept once already"},
       {{kGridStride}, kOwnRow},
       {{kBranchless}, kSamePath},
       {{kHoist}, "nothing in the sweep is computed twice"}},
      "a row reduction has no place for it",
      MissingRows,
      RowsKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
