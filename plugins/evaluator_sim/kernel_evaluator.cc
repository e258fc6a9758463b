#include "evaluator_sim/kernel_evaluator.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "evaluator_sim/kernel_evaluator_run.h"
#include "interpreter/code_not_judged.h"
#include "judge/compile/cuda_toolkit.h"
#include "judge/problem/cases.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator_sim {

using evaluator::Argument;
using evaluator::CorrectnessCase;
using evaluator::Expected;
using evaluator::Problem;

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

KernelEvaluator::KernelEvaluator(const Options& options)
    : options_(options),
      helper_directory_(options.helper_directory.empty() ? evaluator::FindHelperDirectory() : options.helper_directory),
      toolkit_(evaluator::CudaToolkit::Find()),
      sandbox_(options.sandbox, helper_directory_, toolkit_.readable),
      device_(simt::Device::Load(helper_directory_ + "/devices/" + options.device + ".yaml")),
      compiler_(toolkit_, sandbox_, helper_directory_,
                {.route = options.route,
                 .seconds = options.compile_seconds,
                 .workers = options.concurrency,
                 .library_directory = helper_directory_,
                 .count_host_code = true,
                 .cache_file = options.compile_cache,
                 .takes_ptx = true,
                 .on_fallback = options.on_compile_fallback,
                 .stop = options.cancelled}),
      triton_(sandbox_, {.python = options.python,
                         .helper_directory = helper_directory_,
                         .seconds = options.compile_seconds,
                         .needs_namespaces = options.sandbox != evaluator::SandboxMode::kOff,
                         .device = device_.name,
                         .multiprocessors = device_.multiprocessors,
                         .shared_bytes = device_.shared_bytes_per_block,
                         .stop = options.cancelled}),
      workers_(sandbox_, helper_directory_, options.concurrency, static_cast<uint64_t>(options.host_seconds * 4) + 1),
      interpreter_{device_, workers_, options.warp_instructions, options.host_seconds, options.cancelled} {}

void KernelEvaluator::ThrowIfCancelled() const {
  if (options_.cancelled && options_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
}

std::unique_ptr<KernelEvaluator::Run> KernelEvaluator::Prepare(const OpenProblem& open, const std::string& source,
                                                               bool thorough, KernelEvaluation* evaluation) {
  evaluator::CompileOutcome compiled = compiler_.Compile(open.problem, source, thorough);
  if (!evaluator::TakeCompiled(compiled, evaluation)) return nullptr;
  Trouble trouble;
  std::unique_ptr<Run> run;
  if (std::shared_ptr<const simt::Module> module = interpreter::ParsePtx(open.problem, compiled.kernel, &trouble)) {
    run = std::make_unique<Run>(open, std::move(compiled.kernel), std::move(module), interpreter_);
    run->thorough = thorough;
    trouble = run->Start();
  }
  if (!trouble) return run;
  evaluation->Conclude(trouble);
  return nullptr;
}

std::vector<Expected> KernelEvaluator::ReferenceOutputs(const evaluator::OpenProblem& open, const CorrectnessCase& one,
                                                        const std::vector<Argument>& arguments) {
  const Problem& problem = open.problem;
  const evaluator::CompileOutcome compiled = compiler_.Compile(problem, problem.reference_source, false);
  if (!compiled.Succeeded()) {
    throw Error(KGRPO_ERROR_INVALID,
                problem.directory + "/reference.cu: " + compiled.verdict + ": " + compiled.diagnosis);
  }
  return interpreter::ReferenceOutputs(problem, compiled.kernel, interpreter_, one, arguments);
}

std::vector<Expected> KernelEvaluator::ExpectedOf(const evaluator::OpenProblem& open, const CorrectnessCase& one,
                                                  const std::vector<Argument>& arguments) {
  if (open.oracle != nullptr) return open.oracle->Run(open.problem, *one.size, arguments);
  return ReferenceOutputs(open, one, arguments);
}

std::unique_ptr<const evaluator::OpenProblem> KernelEvaluator::Open(const Problem& problem,
                                                                    const evaluator::EvaluatorOptions& options) const {
  return std::make_unique<const OpenProblem>(problem, options.cache_directory, options.cache, options.rules);
}

std::vector<evaluator::ProblemFinding> KernelEvaluator::FindDegenerateOutputs(const evaluator::OpenProblem& open) {
  return evaluator::FindDegenerate(
      open.problem,
      [&](const CorrectnessCase& one, const std::vector<Argument>& arguments) {
        return ExpectedOf(open, one, arguments);
      },
      open.checker.get());
}

interpreter::InterpretedCases::Options KernelEvaluator::RulesOf(const evaluator::OpenProblem& open,
                                                                const std::vector<CorrectnessCase>& cases) {
  interpreter::InterpretedCases::Options rules =
      interpreter::RulesOf(open, cases, [&](const CorrectnessCase& one, const std::vector<Argument>& arguments) {
        return ReferenceOutputs(open, one, arguments);
      });
  rules.before_each = [this] { ThrowIfCancelled(); };
  return rules;
}

// Lines of a correct kernel that no call ran: sizes that may reach them are tried, and what is left is named.
Trouble KernelEvaluator::TryFurtherSizes(Run& run, KernelEvaluation* evaluation) {
  const Problem& problem = run.open.problem;
  KernelEvaluation of_reference;
  interpreter::FurtherSizes how = {
      problem, run.key, {}, [&](const std::vector<CorrectnessCase>& cases) { return RulesOf(run.open, cases); }};
  if (!options_.timing_size_only && !run.of_triton)  // whose launches are recorded at known sizes
    how.reference = [&] { return Prepare(run.open, problem.reference_source, run.thorough, &of_reference); };
  std::string not_judged = evaluation->not_judged;  // by the call at the timing size
  const Trouble trouble = interpreter::TryFurtherSizes(run, how, &not_judged);
  evaluation->KeepNotJudged(std::move(not_judged));
  return trouble;
}

KernelEvaluation KernelEvaluator::Evaluate(const evaluator::OpenProblem& any, const std::string& source, uint64_t key,
                                           bool thorough, bool show_hidden) {
  const auto& open = static_cast<const OpenProblem&>(any);
  const std::vector<CorrectnessCase> cases =
      evaluator::CorrectnessCases(open.problem, key, options_.seeds * (thorough ? 2 : 1), thorough, show_hidden);
  if (!evaluator::IsTriton(source)) return EvaluateCompiled(open, source, cases, key, thorough, show_hidden, false);
  evaluator::CompileOutcome refused;
  const Clock::time_point start = Clock::now();
  const std::string ptx = triton_.Record(open.problem, source, cases, &refused);
  const double seconds = SecondsSince(start);
  KernelEvaluation evaluation;
  if (ptx.empty()) {
    evaluator::TakeCompiled(refused, &evaluation);
  } else {
    evaluation = EvaluateCompiled(open, ptx, cases, key, thorough, show_hidden, true);
  }
  evaluation.compile_seconds += seconds;
  evaluation.transient = true;  // not kept: another Triton may compile it in another way
  return evaluation;
}

KernelEvaluation KernelEvaluator::EvaluateCompiled(const OpenProblem& open, const std::string& source,
                                                   const std::vector<CorrectnessCase>& cases, uint64_t key,
                                                   bool thorough, bool show_hidden, bool of_triton) {
  KernelEvaluation evaluation;
  const std::unique_ptr<Run> run = Prepare(open, source, thorough, &evaluation);
  if (!run) return evaluation;
  run->key = key;
  run->of_triton = of_triton;
  run->blocks = evaluator::KeyFromText(std::to_string(options_.seed) + open.problem.digest);
  const Problem& problem = open.problem;
  interpreter::InterpretedCases::Options rules = RulesOf(open, cases);
  rules.is_reference = problem.has_reference && source == problem.reference_source;
  interpreter::InterpretedCases interpreted(*run, problem, cases, rules);
  const Clock::time_point start = Clock::now();
  Trouble trouble = options_.timing_size_only ? Trouble{} : interpreted.Run();
  evaluation.oracle_seconds = interpreted.oracle_seconds();
  evaluation.correctness_seconds = SecondsSince(start) - interpreted.oracle_seconds();
  const Clock::time_point correct = Clock::now();
  run->worst = interpreted.worst();
  run->runs_whole = interpreted.runs_whole();
  evaluation.undecided = interpreted.undecided();
  if (!trouble) trouble = Time(*run, &evaluation);
  if (!trouble && thorough && problem.further_cases) trouble = CheckWholeNumbers(*run);
  if (!trouble) trouble = TryFurtherSizes(*run, &evaluation);
  if (!trouble) {
    for (const std::string& note : interpreted.notes()) evaluation.diagnosis += " " + note + ".";
  }
  evaluation.timing_seconds = SecondsSince(correct);
  if (show_hidden) trouble.sentence = evaluator::NameTimingSize(problem, std::move(trouble.sentence));
  if (!trouble) run->worst.Tell(problem, &evaluation.metrics);
  evaluation.metrics.emplace_back("checked_warp_instructions", static_cast<double>(interpreted.warp_instructions()));
  evaluation.Conclude(trouble);
  return evaluation;
}

std::string KernelEvaluator::TimeSource() const { return device_.name + " model"; }

std::string KernelEvaluator::Describe() const {
  return "compiler: " + compiler_.Describe() + "\nsandbox: " + sandbox_.description() + "\ndevice: " + TimeSource() +
         ", kernels interpreted; no GPU is used";
}

std::string KernelEvaluator::Version() const {
  return std::string("evaluator ") + SourceDigest() + "; " + compiler_.Version() + "; " + options_.device + "; " +
         std::to_string(options_.seeds) + "; " + std::to_string(options_.sampled_blocks) + "; " +
         std::to_string(options_.warp_instructions) + "; " + std::to_string(options_.timing_warp_instructions) +
         (options_.timing_size_only ? "; timing size only" : "");
}

}  // namespace kgrpo::evaluator_sim
