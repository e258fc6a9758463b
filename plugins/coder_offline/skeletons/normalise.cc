// Rows that are normalised by their own statistics.
//
// softmax: the maximum of a row and the sum of exp(value - maximum); moments: its mean and its variance.
// The problem's part holds load(<elements>) and finish(float value, <the two statistics>, ...): `maximum` and `sum`, or
// `mean` and `variance`. In the naive kernel a thread sweeps its row three times: once for each
// statistic, then for the results.
#include "coder_offline/skeletons/row_kernel.h"

namespace kgrpo::coder_offline {
namespace {

std::string NormaliseKernels(const Program& program, bool softmax) {
  const Schedule& schedule = program.schedule;
  const bool one_pass = schedule.Has("one_pass");
  const bool tile = schedule.Has("tile");
  const bool alone = OwnerOf(schedule) == RowOwner::kThread;
  const std::string exp = schedule.Has("fast") ? "__expf" : "expf";
  const Function& load = *program.FindFunction("load");
  const Function& finish = *program.FindFunction("finish");
  const std::string out = program.Output()->name;
  const std::string name = softmax ? "softmax" : "moments";

  // With a tile the first sweep stores the loaded values in row_values, and later sweeps read them from there.
  Program view = program;
  view.layout["row_values"] = {"cols"};
  bool first_sweep = true;
  const auto sweep = [&](const std::function<std::string(const std::string& value)>& update) {
    const bool stores = tile && first_sweep;
    const bool reads_tile = tile && !first_sweep;
    first_sweep = false;
    const auto loads = reads_tile ? std::vector<std::string>{"row_values"} : RowOperands(program, load);
    return SweepText(view, loads, stores ? "row_values" : "", [&](const Element& element) {
      std::string text =
          "const float value = " + (reads_tile ? element("row_values") : CallOnRow(program, load, element, {})) + ";\n";
      if (stores) text += element("row_values") + " = value;\n";
      return text + update("value");
    });
  };
  const auto joined = [&](const std::string& what, const std::string& variable) {
    return alone ? "" : variable + " = " + JoinCall(program, what, variable) + ";\n";
  };

  // Separate statements, because the text of a sweep depends on the sweeps written before it.
  std::string statistics;
  if (softmax && one_pass) {
    statistics += "float maximum = kLowest;\nfloat sum = 0.0f;\n";
    statistics += sweep([&](const std::string& value) {
      return "if (" + value + " > maximum) {\n  sum *= " + exp + "(maximum - " + value + ");\n  maximum = " + value +
             ";\n}\nsum += " + exp + "(" + value + " - maximum);\n";
    });
    if (!alone) {
      statistics += "const float own_maximum = maximum;\nmaximum = " + JoinCall(program, "max", "own_maximum") +
                    ";\nsum = " + JoinCall(program, "sum", "sum * " + exp + "(own_maximum - maximum)") + ";\n";
    }
  } else if (softmax) {
    statistics += "float maximum = kLowest;\n";
    statistics += sweep([](const std::string& value) { return "maximum = fmaxf(maximum, " + value + ");\n"; });
    statistics += joined("max", "maximum") + "\nfloat sum = 0.0f;\n";
    statistics += sweep([&](const std::string& value) { return "sum += " + exp + "(" + value + " - maximum);\n"; });
    statistics += joined("sum", "sum");
  } else if (one_pass) {
    statistics += "float sum = 0.0f;\nfloat squares = 0.0f;\n";
    statistics += sweep(
        [](const std::string& value) { return "sum += " + value + ";\nsquares += " + value + " * " + value + ";\n"; });
    statistics += joined("sum", "sum") + joined("sum", "squares") +
                  "const float mean = sum / cols;\nconst float variance = fmaxf(squares / cols - mean * mean, 0.0f);\n";
  } else {
    statistics += "float sum = 0.0f;\n";
    statistics += sweep([](const std::string& value) { return "sum += " + value + ";\n"; });
    statistics += joined("sum", "sum") + "const float mean = sum / cols;\n\nfloat squares = 0.0f;\n";
    statistics +=
        sweep([](const std::string& value) { return "squares += (" + value + " - mean) * (" + value + " - mean);\n"; });
    statistics += joined("sum", "squares") + "const float variance = squares / cols;\n";
  }

  std::vector<std::string> loads = tile ? std::vector<std::string>{"row_values"} : RowOperands(program, load);
  for (const std::string& operand : RowOperands(program, finish)) loads.push_back(operand);
  const std::string results = SweepText(view, loads, out, [&](const Element& element) {
    const std::string value = tile ? element("row_values") : CallOnRow(program, load, element, {});
    return "const float value = " + value + ";\n" + element(out) + " = " +
           CallOnRow(program, finish, element, {"value", "maximum", "sum", "mean", "variance"}) + ";\n";
  });

  std::string helpers;
  if (softmax) {
    helpers += "constexpr float kLowest = -3.402823466e38f;  // the most negative float\n\n" +
               JoinHelper(program, "max", "kLowest",
                          [](const std::string& a, const std::string& b) { return "fmaxf(" + a + ", " + b + ")"; });
  }
  helpers +=
      JoinHelper(program, "sum", "0.0f", [](const std::string& a, const std::string& b) { return a + " + " + b; });
  std::string comment = OwnerComment(schedule);
  comment += one_pass ? ", both statistics in one sweep" : ", a sweep for each statistic";
  if (tile) comment += ", the row kept in shared memory";
  return Fill(R"(
// kernels: @comment@.
@helpers@
__global__ void @name@_kernel(@parameters@) {
  @tile@
  @start@

  @statistics@

  @results@
}

@launch@
)",
              CommonValues(program, 256,
                           {{"comment", comment},
                            {"helpers", helpers},
                            {"name", name},
                            {"tile", tile ? "extern __shared__ __align__(16) float row_values[];" : ""},
                            {"start", RowStart(program)},
                            {"statistics", statistics},
                            {"results", results},
                            {"launch", RowLaunch(program, name + "_kernel", tile ? "cols * sizeof(float)" : "")}}));
}

// One of the two kinds, which differ in the one-pass form and in the softmax's exponentials, which always have a fast
// form.
Skeleton NormaliseSkeleton(std::string_view name, const std::string& one_pass, const Rule& fast,
                           std::string (*kernels)(const Program&)) {
  return {
      name,
      {},
      RowRules("the sweeps over the row",
               {{kOnePass, one_pass},
                {kTile,
                 "the row kept in shared memory between the sweeps",
                 {},
                 1,
                 Unless({"cooperate"},
                        "a block works on many rows at once, which do not fit in shared memory; give a block one row "
                        "first")},
                fast}),
      {{{kCoalesce}, kWholeRow},
       {{kRegister}, "a row's statistics are in registers already"},
       {{kFuse}, std::string(kOneKernel) + "; its sweeps can become one pass"},
       {{kGridStride}, kOwnRow},
       {{kPad, kPrefetch}, "there is no shared-memory tile that is read across its rows"},
       {{kHalf}, kFloatTraffic},
       {{kBranchless}, kSamePath},
       {{kHoist}, "the statistics of a row are computed once already"}},
      "a normalisation has no place for it",
      [](const Program& program) -> std::string {
        const std::string missing = MissingRowParts(program, {"load", "finish"});
        if (!missing.empty() || program.AxesOf(program.Output()->name).size() == 2) return missing;
        return "an output with the axes [rows][cols]";
      },
      kernels};
}

}  // namespace

const Skeleton* SoftmaxSkeleton() {
  static const Skeleton kSkeleton =
      NormaliseSkeleton("softmax", "maximum and sum in one pass (online softmax)", {kFast, FastRule().done},
                        [](const Program& program) { return NormaliseKernels(program, true); });
  return &kSkeleton;
}

const Skeleton* MomentsSkeleton() {
  static const Skeleton kSkeleton =
      NormaliseSkeleton("moments", "mean and variance in one pass (sum and sum of squares)", FastRule(),
                        [](const Program& program) { return NormaliseKernels(program, false); });
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
