// kgrpo-optimize, which `kgrpo-host optimize` runs: searches for a faster kernel of one problem with a policy's
// suggestions (optimize.h).
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kgrpo/support/closest.h>  // JoinedText
#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/evaluation_json.h>
#include <kgrpo/support/number_text.h>  // Format
#include <kgrpo/support/sha256.h>
#include "base/console.h"
#include "base/files.h"
#include "base/wall_clock.h"
#include "cli/command_line.h"
#include "cli/session.h"
#include "common/arguments.h"
#include "compare/report_text.h"  // RefusedText
#include "config/problems.h"      // HoldsProblemYaml
#include "cuda_source/own_headers.h"
#include "eval/evaluate_policy.h"
#include "loop/identity.h"
#include "loop/rounds_in_flight.h"  // SharedInputsSeed
#include "optimize/optimize.h"
#include "plugin/parts.h"
#include "store/database.h"
#include "store/run_folder.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct OptimizeOptions {
  std::string target, problem, policy, pipeline, out, budget;
  std::vector<std::string> settings, include;
  std::optional<uint64_t> seed;
  uint32_t rounds = 0;  // 0: the pipeline's
  SearchPlan plan;
  bool json = false, json_lines = false;
};

// "90", "90s", "2m", "1h" in seconds.
double SecondsOf(const std::string& text) {
  size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const std::string unit = text.substr(end);
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (end == 0 || scale == 0 || !(value > 0) || value > 1e9)
    throw Error(KGRPO_ERROR_INVALID, "--budget " + text + " is not a time: write 90s, 2m or 1h");
  return value * scale;
}

// A policy, and the pipeline that it was trained with; empty if its folder does not name one.
struct PolicySource {
  PolicyChoice choice;
  std::string pipeline;
};

PolicySource PolicyOf(const std::string& given) {
  std::error_code code;
  fs::path folder = fs::path(given).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  if (!fs::is_directory(folder, code)) {
    try {
      return {ParsePolicyChoice(given), ""};
    } catch (const Error& error) {
      const std::string message = error.what();
      if (!message.ends_with("--policy uniform")) throw;
      throw Error(error.code(), message + " --pipeline configs/quickstart.yaml");  // no run names the pipeline
    }
  }
  fs::path run;
  if (fs::exists(folder / "run.sqlite", code)) {
    run = folder;
    folder = ParsePolicyChoice(given).model;
  } else if (fs::exists(folder.parent_path() / "resolved.yaml", code)) {
    run = folder.parent_path();
  }
  if (fs::is_empty(folder, code))
    throw Error(KGRPO_ERROR_INVALID, "--policy " + given + " is an empty folder: it contains no model");
  PolicySource source{ParsePolicyChoice(folder.string()), ""};
  source.choice.label = given;
  if (!run.empty() && fs::exists(run / "resolved.yaml", code)) source.pipeline = (run / "resolved.yaml").string();
  return source;
}

// Advice for an error in the pipeline of the run that --policy names.
std::string HintFor(const std::string& pipeline) {
  const fs::path database = fs::path(pipeline).parent_path() / "run.sqlite";
  std::error_code code;
  bool foreign = false;
  try {
    foreign = fs::exists(database, code) && ReadProgress(database).is_foreign;
  } catch (const Error&) {
    // The caller's error is the one to show.
  }
  if (foreign)
    return "\n" + pipeline + " is of another version of this program: name a pipeline file by --pipeline FILE";
  return "\nThe paths in " + pipeline +
         " are relative to the folder in which that run was started: start optimize there, or name a pipeline file by "
         "--pipeline FILE";
}

// The target: a problem's folder, and the kernel to begin with; none: the reference.
struct Target {
  std::string folder;
  std::optional<std::string> start;
};

Target TargetOf(const OptimizeOptions& options) {
  std::error_code code;
  const bool is_kernel = options.target.ends_with(".cu") || fs::is_regular_file(options.target, code);
  if (!is_kernel) {
    if (!options.problem.empty())
      throw Error(KGRPO_ERROR_INVALID, "--problem goes with a kernel: " + options.target + " names a problem itself");
    return {ShippedProblem(options.target, ProblemArgument::kTarget), {}};
  }
  Target target{"", cuda_source::ReadKernelWithOwnHeaders(options.target, options.include)};
  if (!options.problem.empty()) {
    target.folder = ShippedProblem(options.problem, ProblemArgument::kOption);
    return target;
  }
  const fs::path folder = fs::absolute(options.target).parent_path();
  if (!HoldsProblemYaml(folder.string()))
    throw Error(KGRPO_ERROR_INVALID,
                options.target +
                    " lies in no problem's folder, so nothing says what it computes: name its problem by "
                    "--problem DIR, or draft one with kgrpo-host problems new " +
                    options.target);
  target.folder = folder.string();
  return target;
}

// The result, written to files and shown at the end.
struct Outcome {
  ConfirmedKernel kernel;
  bool thorough = true;  // false: stopped by the user, and the best has only the evaluation of the search
  double speedup() const { return kernel.start.seconds / kernel.evaluation.seconds; }
};

Outcome BestOf(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem, const std::string& start,
               const Evaluation& start_evaluation, uint64_t start_seed, SearchResult* result) {
  Outcome outcome;
  if (!result->stopped) {
    try {
      outcome.kernel = Confirm(config, parts, problem, start, result->candidates);
      return outcome;
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_CANCELLED) throw;
      result->stopped = true;
    }
  }
  outcome.thorough = false;
  outcome.kernel.source = start;
  outcome.kernel.seed = start_seed;
  outcome.kernel.start = outcome.kernel.evaluation = start_evaluation;
  for (const SearchCandidate& candidate : result->candidates) {
    const RoundRecord& round = candidate.round;
    if (round.speedup == 0 || round.evaluation->seconds >= outcome.kernel.evaluation.seconds) continue;
    outcome.kernel.source = round.answer.source;
    outcome.kernel.evaluation = *round.evaluation;
    outcome.kernel.suggestions = candidate.suggestions;
    outcome.kernel.seed = round.evaluation_seed;
  }
  return outcome;
}

Json EvidenceOf(const OptimizeOptions& options, const PipelineConfig& config, const PipelineParts& parts,
                const OpenProblem& problem, const SearchResult& result, const Outcome& outcome) {
  return {{"problem", problem.name},
          {"speedup", outcome.speedup()},
          {"speedup_is_over", "the start"},
          {"thorough", outcome.thorough},
          {"modelled", outcome.kernel.evaluation.modelled},
          {"suggestions", outcome.kernel.suggestions},
          {"source_sha256", Sha256(outcome.kernel.source)},
          {"evaluation", EvaluationToJson(outcome.kernel.evaluation)},
          {"start", EvaluationToJson(outcome.kernel.start)},
          {"input_seed", outcome.kernel.seed},
          {"refuted", outcome.kernel.refuted},
          {"policy", options.policy},
          {"seed", config.seed},
          {"rounds", config.loop.rounds},
          {"beam", options.plan.beam},
          {"samples", options.plan.samples},
          {"evaluations", result.evaluations},
          {"candidates", result.candidates.size()},
          {"cost", result.cost},
          {"ended", result.ended},
          {"evaluator", parts.evaluator->Describe()}};
}

// Writes every file of the result, evidence.json last.
void WriteResult(const fs::path& folder, const OpenProblem& problem, const std::string& start, PipelineParts& parts,
                 const Outcome& outcome, const Json& evidence) {
  WriteFileAtomically(folder / "start.cu", start);
  WriteFileAtomically(folder / "best.cu", outcome.kernel.source);
  const auto page = outcome.thorough ? parts.evaluator->Report(problem.problem, outcome.kernel.source, "best.cu",
                                                               outcome.kernel.evaluation, outcome.kernel.start)
                                     : std::nullopt;
  if (page) WriteFileAtomically(folder / "best.html", *page);
  WriteFileAtomically(folder / "evidence.json", DumpJson(evidence, 2) + "\n");
}

std::string Times(double factor) { return Format("%.2fx", factor); }

// Shows the candidates: a line for each new kernel, and for each other result the first time. On a terminal only for
// each faster kernel, and one line about the rounds in progress.
class Progress {
 public:
  Progress(Console& console, uint64_t evaluations, double start_speedup)
      : console_(console), evaluations_(evaluations), start_speedup_(start_speedup), best_(start_speedup) {}

  void Add(const SearchCandidate& candidate) {
    ++answers_;
    const RoundRecord& round = candidate.round;
    if (round.answer.outcome != KGRPO_CODER_OK) refusals_.Add(round.answer.message);
    if (candidate.from_list && !std::exchange(from_list_, true))
      console_.Note("the policy suggests nothing new: now suggestions of the coder's list");
    std::string line = round.suggestion + ": " + candidate.outcome() + ReasonOf(round);
    if (round.speedup > 0) line += " " + Times(round.speedup / start_speedup_);
    if (candidate.repeated) line += " (judged before)";
    const bool is_new = shown_.insert(line).second || (round.evaluation && !candidate.repeated);
    const bool faster = candidate.best_speedup > best_;
    best_ = candidate.best_speedup;
    status_ = std::to_string(candidate.evaluations) + "/" + std::to_string(evaluations_);
    if (console_.moves() ? faster : is_new)
      console_.Note(status_ + "  round " + std::to_string(round.round + 1) + "  " + line + "  best " +
                    Times(best_ / start_speedup_));
  }

  void UnderWay(const RoundsUnderWay& rounds) {
    console_.UnderWay(status_ + " kernels  best " + Times(best_ / start_speedup_) + "  " + UnderWayText(rounds));
  }

  std::string Refused() const { return RefusedText(refusals_, answers_); }

 private:
  // Why there is no evaluation, as one short line.
  static std::string ReasonOf(const RoundRecord& round) {
    constexpr size_t kMost = 160;
    if (round.evaluation) return "";
    const std::string& message = round.failure ? round.failure->message : round.answer.message;
    std::string line = message.substr(0, message.find('\n'));
    if (const std::string known = "not applicable: "; line.starts_with(known)) line.erase(0, known.size());
    if (line.size() > kMost) line = line.substr(0, kMost) + "...";
    return line.empty() ? "" : " (" + line + ")";
  }

  Console& console_;
  uint64_t evaluations_;
  double start_speedup_, best_;
  std::set<std::string> shown_;
  std::string status_ = "0";
  Tally refusals_;  // the coder's messages in answers without a kernel
  uint64_t answers_ = 0;
  bool from_list_ = false;
};

int RunOptimize(const Globals& globals, OptimizeOptions options) {
  if (!options.budget.empty()) options.plan.seconds = SecondsOf(options.budget);
  if (options.policy.empty())
    throw Error(KGRPO_ERROR_INVALID,
                "optimize needs --policy: a run's folder, a model's folder, uniform, or fixed:TECHNIQUE,...");
  const Target target = TargetOf(options);
  const PolicySource policy = PolicyOf(options.policy);
  options.plan.suggester = policy.choice.suggester;
  Session session(globals);
  LoadRequest request;
  request.file = options.pipeline.empty() ? policy.pipeline : options.pipeline;
  if (request.file.empty())
    throw Error(KGRPO_ERROR_INVALID, "--policy " + options.policy +
                                         " names no coder and no evaluator: name a pipeline "
                                         "by --pipeline FILE");
  const fs::path out =
      options.out.empty() ? fs::path("optimized") / fs::path(target.folder).filename() : fs::path(options.out);
  RequireEmpty("--output", out);
  request.settings = options.settings;
  if (options.seed) request.settings.push_back("seed=" + std::to_string(*options.seed));
  if (options.rounds > 0) request.settings.push_back("loop.rounds=" + std::to_string(options.rounds));
  request.settings.push_back("problems.train=" + DumpJson({fs::absolute(target.folder).string()}));
  request.settings.push_back("output_dir=" + DumpJson(out.string()));
  request.roles = {Role::kCoder, Role::kEvaluator, Role::kReward};
  if (policy.choice.needs_policy()) request.roles.insert(Role::kPolicy);
  request.needs_train_problems = false;
  request.ignore_problems = true;
  PipelineConfig config;
  PipelineParts parts;
  try {
    config = session.Load(request);
    session.StartServices(config.seed);
    parts = session.MakeParts(config, request.roles, /*identify=*/true);
  } catch (const Error& error) {
    const bool may_be_a_path = error.code() == KGRPO_ERROR_INVALID || error.code() == KGRPO_ERROR_NOT_FOUND;
    if (request.file != policy.pipeline || !may_be_a_path) throw;
    throw Error(error.code(), error.what() + HintFor(policy.pipeline));
  }
  RequireListed(policy.choice.suggester.sequence, *parts.coder, config.coder.plugin);
  if (!policy.choice.model.empty()) parts.policy->Load(KGRPO_POLICY_CURRENT, policy.choice.model);

  WorkerPool pool(config.loop.workers);
  const ProblemSet problems(*parts.evaluator, {target.folder}, pool, /*skip_unusable=*/false);
  const OpenProblem& problem = problems[0];
  const std::string start = target.start.value_or(problem.source);
  const uint64_t start_seed = start == problem.source ? 0 : SharedInputsSeed(config.seed, problem.name);
  Evaluation start_evaluation =
      start == problem.source ? problem.baseline : parts.evaluator->Evaluate(problem.problem, start, start_seed);
  start_evaluation.CompareWith(problem.baseline);
  RequireSearchable(options.plan, start_evaluation, parts);
  const RunFolder folder = RunFolder::Create(out, config.resolved_yaml, /*overwrite=*/false);
  RunDatabase database(folder.database());
  Json recorded = {{"--policy", options.policy},
                   {"--beam", options.plan.beam},
                   {"--samples", options.plan.samples},
                   {"--evaluations", options.plan.evaluations},
                   {"start", Sha256(start)}};
  if (std::isfinite(options.plan.seconds)) recorded["--budget"] = options.plan.seconds;
  if (std::isfinite(options.plan.max_cost)) recorded["--max-cost"] = options.plan.max_cost;
  BeginRecord(Purpose::kSearch, problems, recorded, database);
  std::vector<Input> inputs = config.inputs;
  inputs.push_back({"problems." + problem.name, target.folder});
  if (!policy.choice.model.empty()) inputs.push_back({"--policy", policy.choice.model});
  parts.inputs = DigestsOf(inputs);
  WriteIdentity(config, parts, 0, options.settings, std::nullopt, folder, database);

  Console console = StandardConsole();
  const bool talks = !options.json && !options.json_lines && !globals.quiet;
  Progress progress(console, options.plan.evaluations, start_evaluation.speedup);
  SearchListener listener;
  listener.wave = [&](const StepRecord& wave) { database.WriteStep(wave, {}); };
  if (talks) listener.candidate = [&](const SearchCandidate& candidate) { progress.Add(candidate); };
  if (options.json_lines) {
    listener.candidate = [&](const SearchCandidate& candidate) {
      const Json line = {{"candidate", candidate.round.suggestion},
                         {"outcome", candidate.outcome()},
                         {"evaluations", candidate.evaluations},
                         {"of", options.plan.evaluations},
                         {"best_speedup", candidate.best_speedup / start_evaluation.speedup}};
      std::printf("%s\n", DumpJson(line).c_str());
      std::fflush(stdout);
    };
  }
  if (talks && console.moves())
    options.plan.under_way = [&](const RoundsUnderWay& rounds) { progress.UnderWay(rounds); };
  SearchResult result = Search(config, parts, problem, start, start_evaluation, pool, options.plan, listener);
  console.Finish();
  const Outcome outcome = BestOf(config, parts, problem, start, start_evaluation, start_seed, &result);
  if (outcome.thorough && outcome.kernel.source != start) {
    BestKernel best{.problem = problem.name,
                    .source = outcome.kernel.source,
                    .step = result.waves,
                    .evaluation = outcome.kernel.evaluation,
                    .baseline = outcome.kernel.start,
                    .speedup = outcome.speedup(),
                    .suggestions = outcome.kernel.suggestions};
    database.WriteJudged(result.waves, {.complete = true, .best = {best}, .refuted = {}, .failed = {}});
  }
  database.SetFinished(SecondsSince1970());
  const Json evidence = EvidenceOf(options, config, parts, problem, result, outcome);
  WriteResult(out, problem, start, parts, outcome, evidence);
  if (options.json_lines) std::printf("%s\n", DumpJson(evidence).c_str());
  if (options.json) PrintJson(evidence);
  if (options.json || options.json_lines) return result.stopped ? kInterrupted : kFine;
  const bool faster = outcome.kernel.source != start && outcome.speedup() >= 1.005;  // else printed as 1.00x
  const std::string path = JoinedText(outcome.kernel.suggestions);
  std::vector<std::pair<std::string, std::string>> summary = {
      {"best", !faster ? "no faster kernel was found"
                       : Times(outcome.speedup()) + " as fast as the start" +
                             (outcome.kernel.evaluation.modelled ? ", by modelled times" : "") +
                             (outcome.thorough ? "; by a thorough evaluation (the search uses quick ones)"
                                               : "; not confirmed by a thorough evaluation")},
      {"suggestions", !faster || path.empty() ? "none" : path},
      {"searched", std::to_string(result.evaluations) + " kernels in " + FormatDuration(result.seconds) +
                       "; ended by: " + result.ended}};
  if (const std::string refused = progress.Refused(); !refused.empty())
    summary.emplace_back("no kernel", refused + "; see docs/optimize.md");
  summary.emplace_back("written to", out.string() + "; kgrpo-host report " + out.string() + " shows each suggestion");
  console.Header(problem.name, summary);
  return result.stopped ? kInterrupted : kFine;
}

void AddOptimizeCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<OptimizeOptions>();
  CLI::App* command = app.add_subcommand("optimize", "Search for a faster kernel of one problem");
  command
      ->add_option("PROBLEM", options->target, "A problem's folder, its name in problems/, or a kernel to begin with")
      ->type_name("PROBLEM|KERNEL.cu")
      ->required();
  command->add_option("--problem", options->problem, "With KERNEL.cu: what it computes")->type_name("DIR|NAME");
  AddIncludeOption(command, &options->include, "the kernel's folder");
  command
      ->add_option("--policy", options->policy,
                   "The policy: a run's or a model's folder, uniform, or fixed:TECHNIQUE[,TECHNIQUE...]")
      ->type_name("POLICY");
  command->add_option("--pipeline", options->pipeline, "Coder, evaluator and prompt (default: the run's resolved.yaml)")
      ->type_name("FILE");
  command->add_option("--evaluations", options->plan.evaluations, "Maximum number of kernels to evaluate")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--budget", options->budget, "Maximum search time: 90s, 2m, 1h")->type_name("TIME");
  command
      ->add_option("--max-cost", options->plan.max_cost, "US dollars for the coder; the search ends after exceeding it")
      ->type_name("USD")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--beam", options->plan.beam, "Kernels that each round continues from")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--samples", options->plan.samples, "Suggestions for each of them")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Rounds before the search restarts (default: the pipeline's)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  command->add_option("--seed", options->seed, "The search's seed (default: the pipeline's)")->type_name("N");
  command->add_option("-o,--output,--out", options->out, "Where the result goes (default: optimized/PROBLEM)")
      ->type_name("DIR");
  AddSetOption(command, &options->settings, "Changes one key of the pipeline");
  CLI::Option* json = command->add_flag("--json", options->json, "Print the evidence as JSON, and no candidates");
  command
      ->add_option_function<std::string>(
          "--progress", [options](const std::string&) { options->json_lines = true; },
          "Print a line of JSON for each candidate; the evidence is the last line")
      ->type_name("jsonl")
      ->check(CLI::IsMember({"jsonl"}))
      ->excludes(json);
  command->footer(
      "Examples:\n"
      "  kgrpo-host optimize softmax_long --policy runs/quickstart --evaluations 100\n"
      "  kgrpo-host optimize mine.cu --problem my_problem/ --policy runs/quickstart --budget 2m --out faster\n"
      "  kgrpo-host optimize softmax_long --policy uniform --pipeline configs/quickstart.yaml\n"
      "Writes start.cu, best.cu, evidence.json, best.html if the evaluator writes reports, and the run's record, "
      "which\n"
      "report, compare and export read.");
  command->callback([=, &globals] { *action = [=, &globals] { return RunOptimize(globals, *options); }; });
}

}  // namespace
}  // namespace kgrpo::cli

int main(int argc, char** argv) {
  kgrpo::cli::CommandLine line("Searches for a faster kernel of one problem.");
  line.Add(kgrpo::cli::AddOptimizeCommand);
  return line.Run({argv + 1, argv + argc});
}
