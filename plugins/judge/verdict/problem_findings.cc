#include "judge/verdict/problem_findings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <kgrpo/evaluator.h>            // KGRPO_METRIC_WORST_ERROR
#include <kgrpo/support/number_text.h>  // FormatSeconds
#include "judge/problem/dtype.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator {
namespace {

constexpr int kSeeds = 2;    // the second is drawn from another normal distribution
constexpr int kRedraws = 2;  // of one input, in each case

// A reference this fast leaves little to gain: a launch alone takes some 2 to 3 us of it.
constexpr double kShortSeconds = 10e-6;

// Of the tolerance. A reference beyond kNear over a few seeds exceeds it with others; kRoom is asked of a wider one. A
// wrong value further off than kRounding is taken for a fault, not for rounding.
constexpr double kNear = 0.5, kRoom = 0.25, kRounding = 1000;

// One case with its expected outputs.
struct Tried {
  const CorrectnessCase* one;
  std::vector<Argument> arguments;
  std::vector<Expected> expected;
};

std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// Returns what to write in problem.yaml so that an error of `times` the tolerance becomes kRoom of it.
std::string WiderTolerance(const Problem& problem, const Parameter& output, double times) {
  const double terms = std::max(1.0, problem.accumulations.Evaluate(problem.timing));
  const ErrorBound bound = BoundFor(problem, output, terms, {});
  if (times <= bound.low_sums && !problem.tolerance.accumulation) {
    const std::string name = Info(LowPrecision(output)).name;
    return "If kernels may sum in " + name + ", set tolerance: {accumulation: " + name + "}.";
  }
  const double relative = times / kRoom * bound.relative;
  // Of relative = 2 u(output) + (16 + 8 sqrt(accumulations)) u(arithmetic).
  const double arithmetic = Info(output.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32).unit_roundoff;
  const double root = ((relative - 2 * Info(output.dtype).unit_roundoff) / arithmetic - 16) / 8;
  const bool by_terms = !problem.tolerance.relative && !problem.tolerance.absolute && !problem.tolerance.accumulation &&
                        Info(output.dtype).is_floating && relative < 0.05;
  if (!by_terms)
    return "If rounding explains that, raise the tolerance: now it is relative " + NumberText(bound.relative) + ".";
  const std::string factor = NumberText(std::ceil(root * root / terms));
  return "If rounding explains that, set accumulations: \"" + factor + "*(" + problem.accumulations.text() +
         ")\", so that it comes to " + NumberText(kRoom) + " times.";
}

const char* OracleFile(const Problem& problem) {
  return problem.oracle == OracleKind::kChecker ? "checker.cc" : "the oracle";
}

ProblemFinding FindingOnIncorrect(const Problem& problem, const KernelEvaluation& reference, uint64_t seed) {
  std::string trouble = ReferenceTrouble(reference, problem);
  if (reference.verdict == "implausible") {
    return {"bound_beaten", trouble,
            "eval --kernel reference.cu --problem DIR --dispute-bound shows what was counted; lower needs in "
            "problem.yaml, or correct the kernel."};
  }
  if (!trouble.ends_with('.')) trouble += ".";
  if (seed > 0) trouble += " Seeds below " + std::to_string(seed) + " passed.";
  std::string advice = "Correct reference.cu; or problem.yaml, if its sizes or input ranges lead there.";
  if (reference.verdict == "wrong") {
    advice = std::string("Correct reference.cu or ") + OracleFile(problem) + ": their results differ.";
    const WrongOutput& wrong = reference.wrong;
    for (const Parameter& parameter : problem.parameters) {
      if (parameter.name == wrong.name && wrong.error < kRounding)
        advice += " " + WiderTolerance(problem, parameter, wrong.error);
    }
  }
  return {"reference_wrong", trouble, advice};
}

class Search {
 public:
  Search(const Problem& problem, const ExpectedOf& expected, const Checker* checker)
      : problem_(problem), expected_(expected), checker_(checker) {}

  std::vector<ProblemFinding> Run() {
    const std::vector<CorrectnessCase> cases =
        CorrectnessCases(problem_, KeyFromText(problem_.digest), kSeeds, false, true);
    for (const CorrectnessCase& one : cases) {
      if (one.alternative || one.aliased || one.further) continue;
      Tried tried{&one, DrawArguments(problem_, one), {}};
      tried.expected = expected_(one, tried.arguments);
      tried_.push_back(std::move(tried));
    }
    for (size_t p = 0; p < problem_.parameters.size(); ++p) {
      if (problem_.parameters[p].IsWritten()) LookAtOutput(p);
    }
    for (size_t p = 0; p < problem_.parameters.size(); ++p) {
      const Role role = problem_.parameters[p].role;
      if (role == Role::kInput || role == Role::kInout) LookAtInput(p);
    }
    if (!checker_failed_.empty())
      Add("checker_fails", checker_failed_ + ".", "Check indices and sizes in checker.cc before it uses them.");
    return std::move(findings_);
  }

 private:
  void Add(const std::string& code, const std::string& sentence, const std::string& advice) {
    findings_.push_back({code, sentence, advice});
  }

  // Returns whether these bytes, as output `p`, would be judged correct in this case.
  bool Passes(const Tried& tried, size_t p, const std::vector<uint8_t>& bytes) const {
    const Parameter& output = problem_.parameters[p];
    const Bindings& size = *tried.one->size;
    if (checker_ != nullptr) {
      std::vector<std::vector<uint8_t>> outputs(problem_.parameters.size());
      for (size_t o = 0; o < outputs.size(); ++o) {
        if (problem_.parameters[o].IsWritten())
          outputs[o] = o == p ? bytes : BytesFrom(problem_.parameters[o], tried.expected[o]);
      }
      const Checker::Result result = checker_->Check(problem_, tried.arguments, outputs);
      if (result.failed) checker_failed_ = result.sentence;
      return result.right;
    }
    const ErrorBound bound = BoundFor(problem_, output, problem_.accumulations.Evaluate(size), tried.expected[p]);
    return Compare(output, output.ShapeAt(size), bytes, tried.expected[p], {}, bound,
                   problem_.tolerance.Differing(output.Elements(size)))
        .matches;
  }

  // The bytes of output `p` with each element set to `value`.
  std::vector<uint8_t> Filled(const Tried& tried, size_t p, double value) const {
    const Parameter& output = problem_.parameters[p];
    const size_t bytes = Info(output.dtype).size;
    const auto elements = static_cast<size_t>(output.Elements(*tried.one->size));
    std::vector<uint8_t> filled(elements * bytes);
    for (size_t i = 0; i < elements; ++i) StoreDouble(output.dtype, value, &filled[i * bytes]);
    return filled;
  }

  static size_t Count(const Expected& expected) { return std::max(expected.reals.size(), expected.wholes.size()); }
  static double At(const Expected& expected, size_t i) {
    return expected.reals.empty() ? static_cast<double>(expected.wholes[i]) : expected.reals[i];
  }
  static double Mean(const Expected& expected) {
    double sum = 0;
    for (size_t i = 0; i < Count(expected); ++i) sum += At(expected, i);
    return Count(expected) == 0 ? 0 : sum / static_cast<double>(Count(expected));
  }

  // Returns whether there are cases and `passes` holds in all of them.
  template <typename Test>
  bool InAll(Test passes) const {
    return !tried_.empty() && std::all_of(tried_.begin(), tried_.end(), passes);
  }

  void LookAtOutput(size_t p) {
    const std::string& name = problem_.parameters[p].name;
    const double first = Count(tried_[0].expected[p]) == 0 ? 0 : At(tried_[0].expected[p], 0);
    const bool constant = InAll([&](const Tried& tried) {
      for (size_t i = 0; i < Count(tried.expected[p]); ++i) {
        const double value = At(tried.expected[p], i);
        if (value != first && !(std::isnan(value) && std::isnan(first))) return false;
      }
      return true;
    });
    if (constant) {
      return Add("constant_output", name + " is " + NumberText(first) + " in every element, whatever the inputs are.",
                 std::string("Check ") + OracleFile(problem_) +
                     ", and whether the inputs' distributions reach the kernel's work.");
    }
    if (InAll([&](const Tried& tried) { return Passes(tried, p, Filled(tried, p, 0)); })) {
      return Add("zeros_pass", "A kernel that writes zeros to " + name + " is within the tolerance at every size.",
                 "Lower tolerance.absolute below the size of the results, or draw inputs that give larger ones.");
    }
    LookForEqualElements(p);
    LookForCopies(p);
    if (checker_ != nullptr) LookForPlanted(p);
  }

  // What a checker may forget: outputs that nobody wrote, and one of several outputs in another order.
  void LookForPlanted(size_t p) {
    const Parameter& output = problem_.parameters[p];
    const auto outputs = std::count_if(problem_.parameters.begin(), problem_.parameters.end(),
                                       [](const Parameter& parameter) { return parameter.IsWritten(); });
    if (InAll([&](const Tried& tried) {
          const auto bytes = static_cast<size_t>(output.Elements(*tried.one->size)) * Info(output.dtype).size;
          return Passes(tried, p, std::vector<uint8_t>(bytes, PoisonByte(output, tried.one->key)));
        })) {
      Add("poison_passes", "checker.cc accepts a kernel that never writes " + output.name + ".",
          "Compare its elements with the inputs.");
    }
    bool any = false;
    const bool rotated = InAll([&](const Tried& tried) {
      std::vector<uint8_t> bytes = BytesFrom(output, tried.expected[p]);
      std::rotate(bytes.begin(), bytes.begin() + std::min(bytes.size(), Info(output.dtype).size), bytes.end());
      if (bytes == BytesFrom(output, tried.expected[p])) return true;
      any = true;
      return Passes(tried, p, bytes);
    });
    if (rotated && any && outputs > 1) {
      Add("permuted_passes", "checker.cc accepts " + output.name + " in another order than the other outputs.",
          "Check that its elements belong to those of the other outputs, as indices do to values.");
    }
  }

  // A result of one element is exempt.
  void LookForEqualElements(size_t p) {
    bool any = false;
    const bool all = InAll([&](const Tried& tried) {
      if (Count(tried.expected[p]) < 2) return true;
      any = true;
      return Passes(tried, p, Filled(tried, p, Mean(tried.expected[p])));
    });
    if (!all || !any) return;
    Add("equal_elements",
        "All elements of " + problem_.parameters[p].name + " are the same within the tolerance, in every case.",
        "Lower the tolerance, or draw inputs that spread the results.");
  }

  void LookForCopies(size_t p) {
    const Parameter& output = problem_.parameters[p];
    for (size_t i = 0; i < problem_.parameters.size(); ++i) {
      const Parameter& input = problem_.parameters[i];
      if (input.role != Role::kInput && input.role != Role::kInout) continue;
      const bool copies = InAll([&](const Tried& tried) {
        return input.dtype == output.dtype && input.Elements(*tried.one->size) == output.Elements(*tried.one->size) &&
               Passes(tried, p, tried.arguments[i].bytes);
      });
      if (!copies) continue;
      const std::string what = i == p ? "A kernel that leaves " + output.name + " as it is"
                                      : "A kernel that copies " + input.name + " to " + output.name;
      Add("input_passes", what + " is within the tolerance at every size.",
          "If copying is not the task, lower the tolerance, or draw inputs for which the result differs.");
    }
  }

  // Reports input `p` if another draw of it alone changes nothing that is compared.
  void LookAtInput(size_t p) {
    const Parameter& input = problem_.parameters[p];
    bool varied = false, exactly = true;
    const bool all = InAll([&](const Tried& tried) {
      for (int redraw = 1; redraw <= kRedraws; ++redraw) {
        std::vector<Argument> arguments = tried.arguments;
        arguments[p] =
            DrawTensor(input, *tried.one->size, SubKey(tried.one->key, 1000 + static_cast<uint64_t>(redraw)), redraw);
        if (arguments[p].bytes == tried.arguments[p].bytes) continue;
        varied = true;
        const std::vector<Expected> outputs = expected_(*tried.one, arguments);
        for (size_t o = 0; o < problem_.parameters.size(); ++o) {
          const Parameter& output = problem_.parameters[o];
          if (!output.IsWritten()) continue;
          if (outputs[o].reals == tried.expected[o].reals && outputs[o].wholes == tried.expected[o].wholes) continue;
          exactly = false;
          if (!Passes(tried, o, BytesFrom(output, outputs[o]))) return false;
        }
      }
      return true;
    });
    if (!varied) {
      return Add("input_constant", "The input " + input.name + " holds the same values in every draw.",
                 "Draw it from a distribution, or fix its value in the kernel and leave the parameter out.");
    }
    if (!all) return;
    Add("input_unused",
        exactly ? "No output depends on the input " + input.name + "."
                : "The effect of " + input.name + " on the outputs is within the tolerance: a kernel may ignore it.",
        exactly ? std::string("Leave the parameter out, or check that ") + OracleFile(problem_) + " reads it."
                : "Lower the tolerance, or draw " + input.name + " from a wider distribution.");
  }

  const Problem& problem_;
  const ExpectedOf& expected_;
  const Checker* const checker_;
  mutable std::string checker_failed_;  // by outputs that were tried
  std::vector<Tried> tried_;
  std::vector<ProblemFinding> findings_;
};

}  // namespace

std::vector<ProblemFinding> FindDegenerate(const Problem& problem, const ExpectedOf& expected, const Checker* checker) {
  if (!problem.refused.empty()) return {};
  if (const std::string advice = DraftAdvice(problem); !advice.empty()) {
    const std::string file = problem.checker_source ? "checker.cc" : "oracle.cc";
    return {{"oracle_not_written", file + " is a draft: its body is still to be written.", advice}};
  }
  return Search(problem, expected, checker).Run();
}

std::string DraftAdvice(const Problem& problem) {
  const bool checks = problem.checker_source.has_value();
  const std::string line = checks ? kCheckerToWrite : kOracleToWrite;
  const std::string source = checks ? *problem.checker_source : problem.oracle_source.value_or("");
  if (source.find(line) == std::string::npos) return "";
  return std::string(checks ? "Write which outputs are right" : "Write what the kernel computes, in double") +
         ", and delete the line \"" + line + "\".";
}

std::vector<ProblemFinding> FindOfReference(const Problem& problem, const JudgeReference& judge) {
  std::vector<ProblemFinding> findings;
  const Parameter* nearest = nullptr;
  double largest = 0, seconds = 0;
  std::vector<std::string> undecided;
  std::string not_judged;
  for (uint64_t seed = 0; seed < kReferenceSeeds; ++seed) {
    const KernelEvaluation reference = judge(seed);
    if (!reference.correct) return {FindingOnIncorrect(problem, reference, seed)};
    seconds = reference.seconds;
    if (undecided.empty()) undecided = reference.undecided;
    not_judged = reference.not_judged;
    for (const Parameter& parameter : problem.parameters) {
      for (const auto& [name, error] : reference.metrics) {
        if (name == KGRPO_METRIC_WORST_ERROR + parameter.name && error > largest) nearest = &parameter, largest = error;
      }
    }
  }
  if (largest > kNear) {
    findings.push_back({"near_tolerance",
                        "The reference comes to " + NumberText(largest) + " times the tolerance of " + nearest->name +
                            " with " + std::to_string(kReferenceSeeds) +
                            " seeds: correct kernels that round otherwise will be wrong.",
                        WiderTolerance(problem, *nearest, largest)});
  }
  for (const std::string& what : undecided) {
    findings.push_back({"reference_fails_at_drawn_size", "Kernels are not judged at the drawn size " + what + ".",
                        "If that size is outside of what the problem means, set sizes.ranges in problem.yaml; else "
                        "correct reference.cu."});
  }
  if (seconds < kShortSeconds) {
    findings.push_back(
        {"too_short",
         "The reference takes " + FormatSeconds(seconds) + ": much of that is the launch, which no kernel avoids.",
         "Raise sizes.timing until the reference takes 20 us or more."});
  }
  if (!not_judged.empty()) {
    findings.push_back({"lines_not_run", "Not judged in reference.cu: " + not_judged + ".",
                        "Add a size that reaches them to sizes.visible or sizes.hidden, or remove them."});
  }
  return findings;
}

}  // namespace kgrpo::evaluator
