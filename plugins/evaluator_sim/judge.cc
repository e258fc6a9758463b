#include "evaluator_sim/judge.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "evaluator_shared/cases.h"
#include "evaluator_shared/cuda_toolkit.h"
#include "evaluator_sim/judge_run.h"
#include "evaluator_sim/version.h"
#include "interpreter/interpreted_cases.h"

namespace kgrpo::evaluator_sim {

using evaluator::Argument;
using evaluator::CorrectnessCase;
using evaluator::Expected;
using evaluator::Problem;

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Judge::Judge(const Options& options)
    : options_(options),
      helper_directory_(options.helper_directory.empty() ? evaluator::FindHelperDirectory() : options.helper_directory),
      toolkit_(evaluator::CudaToolkit::Find(options.cuda_home)),
      sandbox_(options.sandbox, helper_directory_, toolkit_.readable),
      device_(simt::Device::Load(helper_directory_ + "/devices/" + options.device + ".yaml")),
      compiler_(toolkit_, sandbox_, helper_directory_,
                {.route = options.route,
                 .seconds = options.compile_seconds,
                 .workers = options.concurrency,
                 .library_directory = helper_directory_,
                 .cache_file = options.compile_cache,
                 .on_fallback = options.on_compile_fallback}),
      workers_(sandbox_, helper_directory_, options.concurrency, static_cast<uint64_t>(options.host_seconds * 4) + 1),
      interpreter_{device_, workers_, options.warp_instructions, options.host_seconds} {}

void Judge::ThrowIfCancelled() const {
  if (options_.cancelled && options_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
}

std::unique_ptr<Judge::Run> Judge::Prepare(const OpenProblem& open, const std::string& source, bool thorough,
                                           Judgement* judgement) {
  evaluator::CompileOutcome compiled = compiler_.Compile(open.problem(), source, thorough);
  judgement->compile_seconds = compiled.seconds;
  judgement->compile_cached = compiled.cached;
  judgement->transient = compiled.transient;
  if (!compiled.Succeeded()) {
    judgement->verdict = compiled.verdict;
    judgement->diagnosis = compiled.diagnosis;
    return nullptr;
  }
  judgement->compiled = true;
  judgement->metrics = evaluator::UsageMetrics(compiled.kernel.usage);
  Trouble trouble;
  std::unique_ptr<Run> run;
  if (std::shared_ptr<const simt::Module> module = interpreter::ParsePtx(compiled.kernel, &trouble)) {
    run = std::make_unique<Run>(open, std::move(compiled.kernel), std::move(module), interpreter_);
    run->thorough = thorough;
    trouble = run->Start();
  }
  if (!trouble) return run;
  judgement->verdict = trouble.code;
  judgement->diagnosis = trouble.sentence;
  return nullptr;
}

std::vector<Expected> Judge::ReferenceOutputs(const OpenProblem& open, const CorrectnessCase& one,
                                              const std::vector<Argument>& arguments) {
  const Problem& problem = open.problem();
  const evaluator::CompileOutcome compiled = compiler_.Compile(problem, problem.reference_source, false);
  if (!compiled.Succeeded()) {
    throw Error(KGRPO_ERROR_INVALID,
                problem.directory + "/reference.cu: " + compiled.verdict + ": " + compiled.diagnosis);
  }
  return interpreter::ReferenceOutputs(problem, compiled.kernel, interpreter_, one, arguments);
}

Judgement Judge::Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                          bool show_hidden) {
  Judgement judgement;
  const std::unique_ptr<Run> run = Prepare(open, source, thorough, &judgement);
  if (!run) return judgement;
  run->key = key;
  const Problem& problem = open.problem();
  const std::vector<CorrectnessCase> cases =
      evaluator::CorrectnessCases(problem, key, options_.seeds * (thorough ? 2 : 1), show_hidden);
  interpreter::InterpretedCases interpreted(*run, problem, cases,
                                            {.expected =
                                                 [&](size_t i, const std::vector<Argument>& arguments) {
                                                   return open.oracle() != nullptr
                                                              ? open.oracle()->Run(problem, arguments)
                                                              : ReferenceOutputs(open, cases[i], arguments);
                                                 },
                                             .before_each = [this] { ThrowIfCancelled(); }});
  const Clock::time_point start = Clock::now();
  Trouble trouble = interpreted.Run();
  judgement.oracle_seconds = interpreted.oracle_seconds();
  judgement.correctness_seconds = SecondsSince(start) - interpreted.oracle_seconds();
  const Clock::time_point correct = Clock::now();
  run->worst = interpreted.worst();
  run->runs_whole = interpreted.runs_whole();
  if (!trouble) trouble = Time(*run, &judgement);
  if (!trouble) {
    for (const std::string& note : interpreted.notes()) judgement.diagnosis += " " + note + ".";
  }
  judgement.timing_seconds = SecondsSince(correct);
  if (show_hidden) trouble.sentence = evaluator::NameTimingSize(problem, std::move(trouble.sentence));
  if (!trouble) run->worst.Tell(problem, &judgement.metrics);
  judgement.metrics.emplace_back("checked_warp_instructions", static_cast<double>(interpreted.warp_instructions()));
  judgement.Conclude(trouble);
  return judgement;
}

std::string Judge::TimeSource() const {
  return device_.name + " model";
}

std::string Judge::Describe() const {
  return "compiler: " + compiler_.Describe() + "\nsandbox: " + sandbox_.description() + "\ndevice: " + TimeSource() +
         ", kernels interpreted; no GPU is used";
}

std::string Judge::Version() const {
  return std::string("judge ") + SourceDigest() + "; " + compiler_.Version() + "; " + options_.device + "; " +
         std::to_string(options_.seeds) + "; " + std::to_string(options_.sampled_blocks) + "; " +
         std::to_string(options_.warp_instructions) + "; " + std::to_string(options_.timing_warp_instructions);
}

}  // namespace kgrpo::evaluator_sim
