// Rows that are normalised by their own statistics.
//
// softmax: the maximum of a row and the sum of exp(value - maximum); moments: its mean and its variance.
// The problem's part holds load(<elements>) and finish(float value, <the two statistics>, ...): `maximum` and `sum`, or
// `mean` and `variance`. In the naive kernel a thread sweeps its row three times: once for each
// statistic, then for the results.
#include "coder_offline/skeletons/all.h"
#include "coder_offline/skeletons/row_kernel.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

enum class Statistics { kSoftmax, kMoments };

class Normalise : public Skeleton {
 public:
  explicit Normalise(Statistics statistics) : statistics_(statistics) {
    rules_ = RowRules("the sweeps over the row");
    rules_.push_back({Technique::kOnePass,
                      "one_pass",
                      {},
                      1,
                      softmax() ? "maximum and sum in one pass (online softmax)"
                                : "mean and variance in one pass (sum and sum of squares)",
                      nullptr});
    rules_.push_back({Technique::kTile,
                      "tile",
                      {},
                      1,
                      "the row kept in shared memory between the sweeps",
                      [](const Program& program) -> std::string {
                        return program.schedule.Has("cooperate") ? ""
                                                                 : "a block works on many rows at once, which do not "
                                                                   "fit in shared memory; give a block one row first";
                      }});
    rules_.push_back(FastRule());
    if (softmax()) rules_.back().why_not = nullptr;  // the statistics use exponentials
  }

  std::string_view name() const override { return softmax() ? "softmax" : "moments"; }
  const std::vector<Rule>& rules() const override { return rules_; }

  std::string Missing(const Program& program) const override {
    std::string missing = MissingRowParts(program, {"load", "finish"});
    if (missing.empty() && program.layout.at(program.Output()->name).size() != 2)
      missing = "an output with the axes [rows][cols]";
    return missing;
  }

  std::string WhyNever(Technique technique) const override {
    switch (technique) {
      case Technique::kCoalesce:
        return "a thread needs its whole row; access becomes coalesced when a block or a warp shares the row";
      case Technique::kRegister:
        return "a row's statistics are in registers already";
      case Technique::kFuse:
        return "there is one kernel only, so nothing to fuse; its sweeps can become one pass";
      case Technique::kGridStride:
        return "there is one row for each worker, so there is nothing to stride over";
      case Technique::kPad:
      case Technique::kPrefetch:
        return "there is no shared-memory tile that is read across its rows";
      case Technique::kHalf:
        return "the arrays are float32, so the traffic would stay the same";
      case Technique::kBranchless:
        return "the threads of a warp take the same path";
      case Technique::kHoist:
        return "the statistics of a row are computed once already";
      default:
        return "a normalisation has no place for it";
    }
  }

  std::string Kernels(const Program& program) const override;

 private:
  bool softmax() const { return statistics_ == Statistics::kSoftmax; }

  Statistics statistics_;
  std::vector<Rule> rules_;
};

std::string Normalise::Kernels(const Program& program) const {
  const Schedule& schedule = program.schedule;
  const bool one_pass = schedule.Has("one_pass");
  const bool tile = schedule.Has("tile");
  const bool alone = OwnerOf(schedule) == RowOwner::kThread;
  const std::string exp = schedule.Has("fast") ? "__expf" : "expf";
  const Function& load = *program.FindFunction("load");
  const Function& finish = *program.FindFunction("finish");
  const std::string out = program.Output()->name;

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
  const auto joined = [&](const std::string& what, const std::string& name) {
    return alone ? "" : name + " = " + JoinCall(program, what, name) + ";\n";
  };

  // Separate statements, because the text of a sweep depends on the sweeps written before it.
  std::string statistics;
  if (softmax() && one_pass) {
    statistics += "float maximum = kLowest;\nfloat sum = 0.0f;\n";
    statistics += sweep([&](const std::string& value) {
      return "if (" + value + " > maximum) {\n  sum *= " + exp + "(maximum - " + value + ");\n  maximum = " + value +
             ";\n}\nsum += " + exp + "(" + value + " - maximum);\n";
    });
    if (!alone) {
      statistics += "const float own_maximum = maximum;\nmaximum = " + JoinCall(program, "max", "own_maximum") +
                    ";\nsum = " + JoinCall(program, "sum", "sum * " + exp + "(own_maximum - maximum)") + ";\n";
    }
  } else if (softmax()) {
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
  for (const std::string& name : RowOperands(program, finish)) loads.push_back(name);
  const std::string results = SweepText(view, loads, out, [&](const Element& element) {
    const std::string value = tile ? element("row_values") : CallOnRow(program, load, element, {});
    return "const float value = " + value + ";\n" + element(out) + " = " +
           CallOnRow(program, finish, element, {"value", "maximum", "sum", "mean", "variance"}) + ";\n";
  });

  std::string helpers;
  if (softmax()) helpers += "constexpr float kLowest = -3.402823466e38f;  // the most negative float\n\n";
  if (softmax()) {
    helpers += JoinHelper(program, "max", "kLowest",
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
              {{"comment", comment},
               {"helpers", helpers},
               {"name", std::string(name())},
               {"parameters", ParameterList(program.parameters, schedule.Has("restrict"))},
               {"tile", tile ? "extern __shared__ __align__(16) float row_values[];" : ""},
               {"start", RowStart(program)},
               {"statistics", statistics},
               {"results", results},
               {"launch", RowLaunch(program, std::string(name()) + "_kernel", tile ? "cols * sizeof(float)" : "")}});
}

}  // namespace

const Skeleton* SoftmaxSkeleton() {
  static const Normalise kSkeleton(Statistics::kSoftmax);
  return &kSkeleton;
}

const Skeleton* MomentsSkeleton() {
  static const Normalise kSkeleton(Statistics::kMoments);
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline
