#include "evaluator_sim/judge.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "evaluator_shared/comparison.h"
#include "evaluator_shared/cuda_toolkit.h"
#include "evaluator_shared/random.h"
#include "evaluator_sim/judge_run.h"
#include "evaluator_sim/tensors.h"
#include "evaluator_sim/version.h"

namespace kgrpo::evaluator_sim {

using evaluator::Argument;
using evaluator::Bindings;
using evaluator::CorrectnessCase;
using evaluator::Expected;
using evaluator::Parameter;
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
      workers_(sandbox_, helper_directory_, options.concurrency, static_cast<uint64_t>(options.host_seconds * 4) + 1) {}

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
  std::shared_ptr<const simt::Module> module;
  if (compiled.kernel.ptx.empty()) {
    judgement->verdict = "no_launch";
    judgement->diagnosis = "The source defines no kernel.";
    return nullptr;
  }
  try {
    module = simt::Module::Parse(compiled.kernel.ptx);
  } catch (const Error& error) {
    judgement->verdict = "unsupported";
    judgement->diagnosis = std::string("The simulated device cannot run it: ") + error.what();
    return nullptr;
  }
  DeviceSession::Limits limits;
  limits.warp_instructions = options_.warp_instructions;
  limits.device_malloc = open.problem().allow_device_malloc;
  limits.host_seconds = options_.host_seconds;
  auto run = std::make_unique<Run>(open, std::move(compiled.kernel), std::move(module), device_, limits);
  run->thorough = thorough;
  run->worker = workers_.Take();
  if (const Trouble trouble = run->session.Load(*run->worker, run->kernel.object)) {
    judgement->verdict = trouble.code;
    judgement->diagnosis = trouble.sentence;
    return nullptr;
  }
  return run;
}

std::vector<Expected> Judge::ReferenceOutputs(const OpenProblem& open, CorrectnessCase one,
                                              const std::vector<Argument>& arguments) {
  one.aliased = false;  // what is right is the same; the reference may be asked where nothing can go wrong
  Judgement judgement;
  const Problem& problem = open.problem();
  std::unique_ptr<Run> run = Prepare(open, problem.reference_source, false, &judgement);
  if (!run)
    throw Error(KGRPO_ERROR_INVALID,
                problem.directory + "/reference.cu: " + judgement.verdict + ": " + judgement.diagnosis);
  const Tensors tensors(run->session.memory(), problem, one, arguments);
  CallRecord record;
  if (const Trouble trouble = run->session.Call(*run->worker, tensors.values(), simt::Mode::kPlain, {}, &record)) {
    throw Error(KGRPO_ERROR_INVALID, problem.directory + "/reference.cu: " + trouble.code + ": " + trouble.sentence);
  }
  std::vector<Expected> expected(problem.parameters.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    expected[i] = evaluator::ExpectedFrom(parameter, tensors.Read(i));
  }
  return expected;
}

Trouble Judge::RunCase(Run& run, const CorrectnessCase& one, Pass pass) {
  ThrowIfCancelled();
  const Problem& problem = run.open.problem();
  const Bindings& size = *one.size;
  const std::string& where = one.where;
  const std::vector<Argument> arguments = evaluator::DrawArguments(problem, one);
  const Tensors tensors(run.session.memory(), problem, one, arguments);
  CallRecord record;
  const bool checked = pass == Pass::kChecked || pass == Pass::kOtherOrderChecked;
  const BlockChoice choice = {.last_block_first = pass == Pass::kOtherOrder || pass == Pass::kOtherOrderChecked,
                              .unwritten_shared = run.unwritten_shared};
  Trouble trouble = run.session.Call(*run.worker, tensors.values(), checked ? simt::Mode::kChecked : simt::Mode::kPlain,
                                     choice, &record);
  run.warp_instructions += record.warp_instructions;
  run.may_be_unused = record.may_be_unused;
  for (const std::string& note : record.notes) {
    if (std::find(run.notes.begin(), run.notes.end(), note) == run.notes.end()) run.notes.push_back(note);
  }
  run.runs_whole =
      run.runs_whole || record.data_decides || record.launches > 1 || !record.independent || record.host_writes;
  if (trouble) return {trouble.code, "At " + where + ": " + trouble.sentence};
  if (pass == Pass::kOtherOrderChecked) return {};  // what it computes is known to be wrong
  if (record.launches == 0) return {"no_launch", "At " + where + ": the launch function launches no kernel."};
  if (const std::string name = tensors.ModifiedInput(); !name.empty()) {
    return {"input_modified", "At " + where + ": the input " + name + " was overwritten."};
  }
  if (const std::string name = tensors.WrittenBetweenRows(); !name.empty())
    return {"out_of_bounds", "At " + where + ": It writes between the rows of " + name + "."};
  if (pass == Pass::kRepeat) {
    size_t output = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!problem.parameters[i].IsWritten()) continue;
      if (tensors.Read(i) != run.first_outputs[output++]) {
        return {"non_deterministic",
                "Called again with the same inputs it gives another " + problem.parameters[i].name + "."};
      }
    }
    return {};
  }
  const Clock::time_point asked = Clock::now();
  const std::vector<Expected> expected = run.open.oracle() != nullptr ? run.open.oracle()->Run(problem, arguments)
                                                                      : ReferenceOutputs(run.open, one, arguments);
  run.oracle_seconds += SecondsSince(asked);
  const bool extremes = one.DrawsExtremes(problem);
  const double accumulations = problem.accumulations.Evaluate(size);
  const bool first = run.first_outputs.empty();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    const evaluator::ErrorBound bound = evaluator::BoundFor(problem, parameter, accumulations, expected[i], extremes);
    std::vector<uint8_t> got = tensors.Read(i);
    const evaluator::Comparison comparison =
        evaluator::Compare(parameter, parameter.ShapeAt(size), got, expected[i], tensors.Poison(i), bound);
    if (!comparison.matches) return {"wrong", "At " + where + ": " + comparison.sentence + "."};
    run.worst.Add(i, comparison.largest_error);
    if (first) run.first_outputs.push_back(std::move(got));
  }
  return {};
}

Trouble Judge::RunCases(Run& run, const std::vector<CorrectnessCase>& cases) {
  for (const CorrectnessCase& one : cases) {
    Trouble trouble = RunCase(run, one, one.variant == 0 ? Pass::kChecked : Pass::kOtherOrder);
    if (trouble.code == "wrong" && one.variant != 0) {
      if (const Trouble found = RunCase(run, one, Pass::kOtherOrderChecked); found) trouble = found;
    }
    if (trouble) return trouble;
  }
  // Once more with the first case's inputs, at other addresses: state kept between calls shows here.
  return RunCase(run, cases[0], Pass::kRepeat);
}

// A kernel was found to read vectors or matrices of shared memory that nothing has written as a whole. What nobody uses
// of them harms nobody: it is not accused if it is right over zeros, over NaNs, which all arithmetic passes on, and
// over large numbers, which what passes over NaNs (fmaxf) does not. Returns its last run, or null.
std::unique_ptr<Judge::Run> Judge::RunOverOthers(Run& run, const std::string& source,
                                                 const std::vector<CorrectnessCase>& cases) {
  std::unique_ptr<Run> again;
  uint64_t warp_instructions = run.warp_instructions;
  double oracle_seconds = run.oracle_seconds;
  for (const uint8_t unwritten : {0x7B, 0x00, 0xFF}) {
    Judgement ignored;                                          // the same as before
    again = Prepare(run.open, source, run.thorough, &ignored);  // the call that was stopped has ended its process
    if (again == nullptr) return nullptr;
    again->key = run.key;
    again->unwritten_shared = unwritten;
    if (RunCases(*again, cases)) return nullptr;
    warp_instructions += again->warp_instructions;
    oracle_seconds += again->oracle_seconds;
  }
  again->warp_instructions = warp_instructions;
  again->oracle_seconds = oracle_seconds;
  return again;
}

Judgement Judge::Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                          bool show_hidden) {
  Judgement judgement;
  std::unique_ptr<Run> run = Prepare(open, source, thorough, &judgement);
  if (!run) return judgement;
  run->key = key;
  const std::vector<CorrectnessCase> cases =
      evaluator::CorrectnessCases(open.problem(), key, options_.seeds * (thorough ? 2 : 1), show_hidden);
  Trouble trouble;
  const Clock::time_point start = Clock::now();
  trouble = RunCases(*run, cases);
  if (trouble && run->may_be_unused) {
    if (std::unique_ptr<Run> again = RunOverOthers(*run, source, cases); again != nullptr) {
      run = std::move(again);
      trouble = {};
    }
  }
  judgement.oracle_seconds = run->oracle_seconds;
  judgement.correctness_seconds = SecondsSince(start) - run->oracle_seconds;
  const Clock::time_point right = Clock::now();
  if (!trouble) trouble = Time(*run, &judgement);
  if (!trouble) {
    for (const std::string& note : run->notes) judgement.diagnosis += " " + note + ".";
  }
  judgement.timing_seconds = SecondsSince(right);
  if (show_hidden) trouble.sentence = evaluator::NameTimingSize(open.problem(), std::move(trouble.sentence));
  if (!trouble) run->worst.Tell(open.problem(), &judgement.metrics);
  judgement.metrics.emplace_back("checked_warp_instructions", static_cast<double>(run->warp_instructions));
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
