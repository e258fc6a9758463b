// KernelEvaluator::TryFurtherSizes: lines of a correct kernel that no call ran. Sizes beyond the constants that lead
// away from them are tried, and what is left is named.
#include <kgrpo/sdk/error.h>

#include <memory>
#include <string>
#include <vector>

#include "evaluator_sim/kernel_evaluator_run.h"
#include "interpreter/code_not_judged.h"
#include "interpreter/interpreted_cases.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator_sim {

using evaluator::Argument;
using evaluator::Bindings;
using evaluator::CorrectnessCase;
using evaluator::Problem;

namespace {

constexpr uint64_t kBeyondStream = ~uint64_t{17};  // SubKey index of the stream of these cases' inputs

}  // namespace

Trouble KernelEvaluator::TryFurtherSizes(Run& run, KernelEvaluation* evaluation) {
  const Problem& problem = run.open.problem;
  const auto find = [&] {
    return interpreter::FindCodeNotJudged(run.session.module(), run.session.coverage(), run.kernel.source);
  };
  std::vector<simt::CodeNotRun> code = find();
  const std::vector<Bindings> sizes =
      options_.timing_size_only ? std::vector<Bindings>() : interpreter::SizesBeyond(problem, code);
  for (const Bindings& size : sizes) {
    std::vector<CorrectnessCase> cases(2);  // two variants: with checks, and with the last block first
    for (int i = 0; i < 2; ++i) {
      CorrectnessCase& one = cases[static_cast<size_t>(i)];
      one.size = &size;
      one.where = evaluator::SizeText(size) + ", beyond a constant of the kernel,";
      one.key = evaluator::SubKey(evaluator::SubKey(run.key, kBeyondStream), static_cast<uint64_t>(i));
      one.variant = i;
    }
    interpreter::InterpretedCases::Options how;
    how.before_each = [this] { ThrowIfCancelled(); };
    if (run.open.checker != nullptr) {
      how.check = [&](const auto& arguments, const auto& outputs) {
        return run.open.checker->Check(problem, arguments, outputs);
      };
    } else {
      how.expected = [&](size_t i, const auto& arguments) { return ExpectedOf(run.open, cases[i], arguments); };
    }
    // A size counts only if the problem's own kernel is correct there.
    const auto judge = [&](Run& one) {
      if (Trouble trouble = one.Start()) return trouble;
      return interpreter::InterpretedCases(one, problem, cases, how).Run();
    };
    try {
      KernelEvaluation unused;
      const std::unique_ptr<Run> reference = Prepare(run.open, problem.reference_source, run.thorough, &unused);
      if (!reference || judge(*reference)) continue;
    } catch (const Error& error) {  // tensors that do not fit, or an oracle that fails
      if (error.code() == KGRPO_ERROR_CANCELLED) throw;
      continue;
    }
    if (Trouble trouble = judge(run)) return trouble;
  }
  if (!sizes.empty()) code = find();
  evaluation->not_judged = interpreter::NotJudgedText(run.session.module(), code, run.kernel.source);
  if (!evaluation->not_judged.empty()) evaluation->diagnosis += " Not judged: " + evaluation->not_judged + ".";
  return {};
}

}  // namespace kgrpo::evaluator_sim
