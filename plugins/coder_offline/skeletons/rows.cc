// One number from each row: out[row] = finish(combine over the columns of load(...)). Sums of rows, norms,
// matrix-vector products.
//
// The problem's part holds load(<elements>), identity(), combine(float a, float b) and finish(float total, ...). The
// layout line tells which operands are matrices ([rows][cols]), vectors along the row ([cols]) or down the rows
// ([rows]).
#include "coder_offline/skeletons/all.h"
#include "coder_offline/skeletons/row_kernel.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

class Rows : public Skeleton {
 public:
  std::string_view name() const override { return "rows"; }

  const std::vector<Rule>& rules() const override {
    static const std::vector<Rule> kRules = [] {
      std::vector<Rule> all = RowRules("the sweep over the row");
      all.push_back(FastRule());
      all.push_back({Technique::kHalf, "half", {}, 1, "partial results accumulated in half precision", nullptr});
      return all;
    }();
    return kRules;
  }

  std::string Missing(const Program& program) const override {
    return MissingRowParts(program, {"load", "identity", "combine", "finish"});
  }

  std::string WhyNever(Technique technique) const override {
    switch (technique) {
      case Technique::kCoalesce:
        return "a thread needs its whole row; access becomes coalesced when a block or a warp shares the row";
      case Technique::kTile:
      case Technique::kPad:
      case Technique::kPrefetch:
        return "an element is used by one row only, so a shared-memory tile would not be read twice";
      case Technique::kRegister:
        return "the result of a row is one number, which is in a register already";
      case Technique::kFuse:
        return "there is one kernel only, so nothing to fuse";
      case Technique::kOnePass:
        return "the row is swept once already";
      case Technique::kGridStride:
        return "there is one row for each worker, so there is nothing to stride over";
      case Technique::kBranchless:
        return "the threads of a warp take the same path";
      case Technique::kHoist:
        return "nothing in the sweep is computed twice";
      default:
        return "a row reduction has no place for it";
    }
  }

  std::string Kernels(const Program& program) const override {
    const Schedule& schedule = program.schedule;
    const Function& load = *program.FindFunction("load");
    const bool half = schedule.Has("half");
    const std::string sweep = SweepText(program, RowOperands(program, load), "", [&](const Element& element) {
      const std::string loaded = CallOnRow(program, load, element, {});
      return half ? "partial = __float2half(combine(__half2float(partial), " + loaded + "));\n"
                  : "total = combine(total, " + loaded + ");\n";
    });
    std::string end = half ? "float total = " + JoinCall(program, "combine", "__half2float(partial)") + ";\n" : "";
    if (!half && OwnerOf(schedule) != RowOwner::kThread)
      end = "total = " + JoinCall(program, "combine", "total") + ";\n";
    const std::string result = program.Output()->name +
                               "[row] = " + CallOnRow(program, *program.FindFunction("finish"), nullptr, {"total"}) +
                               ";\n";
    switch (OwnerOf(schedule)) {
      case RowOwner::kThread:
        end += result;
        break;
      case RowOwner::kWarp:
        end += "if (lane == 0) " + result;
        break;
      case RowOwner::kBlock:
        end += "if (threadIdx.x == 0) " + result;
        break;
    }
    return Fill(R"(
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
                {{"comment", OwnerComment(schedule)},
                 {"helpers", JoinHelper(program, "combine", "identity()",
                                        [](const std::string& a, const std::string& b) {
                                          return "combine(" + a + ", " + b + ")";
                                        })},
                 {"parameters", ParameterList(program.parameters, schedule.Has("restrict"))},
                 {"start", RowStart(program)},
                 {"accumulator", half ? "__half partial = __float2half(identity());" : "float total = identity();"},
                 {"sweep", sweep},
                 {"end", end},
                 {"launch", RowLaunch(program, "rows_kernel", "")}});
  }
};

}  // namespace

const Skeleton* RowsSkeleton() {
  static const Rows kSkeleton;
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
