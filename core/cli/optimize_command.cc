// `kgrpo-host optimize`: searches for a faster kernel of one problem with a policy's suggestions (loop/optimize.h).
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/optimize_result.h"
#include "cli/problem_choice.h"
#include "cli/session.h"
#include "config/problems.h"  // HoldsProblemYaml
#include "loop/candidate_lines.h"
#include "loop/candidate_table.h"
#include "loop/evaluate_policy.h"
#include "loop/optimize.h"
#include "loop/optimize_training.h"
#include "loop/rounds_in_flight.h"  // SharedInputsSeed
#include "loop/screen.h"
#include "store/files.h"
#include "store/json.h"
#include "store/run_folder.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kNoScreen = "none";  // --screen

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
    throw Error(KGRPO_ERROR_INVALID, "--budget " + text + " is no time: write 90s, 2m or 1h");
  return value * scale;
}

// A policy, and the pipeline that it was trained with; empty where its folder does not tell.
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
    throw Error(KGRPO_ERROR_INVALID, "--policy " + given + " is an empty folder: it holds no model");
  PolicySource source{ParsePolicyChoice(folder.string()), ""};
  source.choice.label = given;
  if (!run.empty() && fs::exists(run / "resolved.yaml", code)) source.pipeline = (run / "resolved.yaml").string();
  return source;
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
  Target target{"", ReadFile(options.target)};
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

Outcome BestOf(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem, const std::string& start,
               const Evaluation& start_evaluation, SearchResult* result) {
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
  outcome.kernel.start = outcome.kernel.evaluation = start_evaluation;
  for (const SearchCandidate& candidate : result->candidates) {
    if (candidate.speedup == 0 || candidate.evaluation->seconds >= outcome.kernel.evaluation.seconds) continue;
    outcome.kernel.source = candidate.source;
    outcome.kernel.evaluation = *candidate.evaluation;
    outcome.kernel.suggestions = candidate.suggestions;
    outcome.kernel.seed = candidate.evaluation_seed;
  }
  return outcome;
}

std::string Times(double factor) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2fx", factor);
  return text;
}

// Folder of the training run of --train.
fs::path TrainedIn(const fs::path& out) {
  return out / "run";
}

fs::path OutOf(const OptimizeOptions& options, const std::string& problem_folder) {
  const fs::path out =
      options.out.empty() ? fs::path("optimized") / fs::path(problem_folder).filename() : fs::path(options.out);
  std::error_code code;
  if (fs::exists(out / "evidence.json", code))
    throw Error(KGRPO_ERROR_INVALID, out.string() +
                                         " holds the result of an earlier search: name another --out, or "
                                         "delete it");
  if (options.train && fs::exists(TrainedIn(out), code))
    throw Error(KGRPO_ERROR_INVALID, TrainedIn(out).string() +
                                         " holds the run of an earlier --train that did not end: name another --out, "
                                         "or delete it");
  fs::create_directories(out, code);
  if (code) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot make the folder " + out.string() + ": " + code.message());
  return out;
}

void RefuseTraining(const PolicySource& policy, const Target& target) {
  const auto refuse = [](const std::string& why) { throw Error(KGRPO_ERROR_INVALID, "--train " + why); };
  if (policy.choice.model.empty()) refuse("needs a policy that can learn: --policy RUN");
  if (target.start)
    refuse("starts from the problem's reference, as training does: name the problem instead of a kernel");
}

// Configures the training run of --train: the pipeline on this problem alone, in a folder inside --out, with its last
// trainer for as many updates as --evaluations allows.
void PlanTraining(Session& session, const OptimizeOptions& options, const std::string& problem, const fs::path& out,
                  LoadRequest* request) {
  request->roles = {kRoles.begin(), kRoles.end()};
  request->needs_train_problems = true;
  request->ignore_problems = false;
  request->settings.push_back("problems.train=" + nlohmann::json({fs::absolute(problem).string()}).dump());
  request->settings.emplace_back("problems.heldout=[]");
  request->settings.emplace_back("evaluation.every=0");
  request->settings.push_back("output_dir=" + nlohmann::json(TrainedIn(out).string()).dump());
  const PipelineConfig config = session.Load(*request);
  if (config.stages.back().suggestions != SuggestionSource::kPolicy) {
    throw Error(KGRPO_ERROR_INVALID,
                "--train goes on with the last trainer of the run, and " + config.stages.back().trainer.plugin +
                    " there imitates suggestions that are drawn uniformly: name one that learns from rewards, as by "
                    "--set 'trainer={plugin: trainer_grpo, options: {learning_rate: 1.0e-3}}'");
  }
  const PluginChoice& trainer = config.stages.back().trainer;
  const nlohmann::json stage = {
      {"plugin", trainer.plugin}, {"options", trainer.options}, {"steps", UpdatesOf(config, options.plan.evaluations)}};
  request->settings.push_back("trainer=" + stage.dump());
}

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
  // Set before --set, which may set options of this screen. Replaces the file's screen with its options, which belong
  // to another plugin.
  if (!options.screen.empty() && options.screen != kNoScreen)
    request.settings.push_back("screen=" + nlohmann::json({{"plugin", options.screen}}).dump());
  request.settings.insert(request.settings.end(), options.settings.begin(), options.settings.end());
  if (options.seed) request.settings.push_back("seed=" + std::to_string(*options.seed));
  if (options.rounds > 0) request.settings.push_back("loop.rounds=" + std::to_string(options.rounds));
  request.roles = {Role::kCoder, Role::kEvaluator, Role::kReward};
  if (policy.choice.needs_policy()) request.roles.insert(Role::kPolicy);
  request.needs_train_problems = false;
  request.ignore_problems = true;
  request.uses_screen = !options.train && options.screen != kNoScreen;
  if (options.train) RefuseTraining(policy, target);
  const fs::path out = OutOf(options, target.folder);
  if (options.train) PlanTraining(session, options, target.folder, out, &request);
  const PipelineConfig config = session.Load(request);
  session.StartServices(config.seed, options.train ? TrainedIn(out) / "artifacts" : fs::path());
  std::unique_ptr<Evaluator> screening_evaluator;
  if (request.uses_screen && config.screen) screening_evaluator = session.MakeScreen(config);
  PipelineParts parts = session.MakeParts(config, request.roles);
  RequireListed(policy.choice.suggester.sequence, *parts.coder, config.coder.plugin);
  if (!policy.choice.model.empty()) parts.policy->Load(KGRPO_POLICY_CURRENT, policy.choice.model);

  std::unique_ptr<RunProblems> trained;
  std::optional<WorkerPool> pool;
  std::optional<ProblemSet> searched;
  if (options.train) {
    trained = std::make_unique<RunProblems>(config, parts);
    Session::CheckPlans(config, parts, trained->train.size());
  } else {
    searched.emplace(*parts.evaluator, std::vector<std::string>{target.folder}, pool.emplace(config.loop.workers),
                     /*skip_unusable=*/false);
  }
  const OpenProblem& problem = trained ? trained->train[0] : (*searched)[0];
  const std::string start = target.start.value_or(problem.source);
  const uint64_t inputs_seed = SharedInputsSeed(config.seed, problem.name);
  const Evaluation start_evaluation =
      start == problem.source ? problem.baseline : parts.evaluator->Evaluate(problem.problem, start, inputs_seed);
  std::optional<Screen> screen;
  if (screening_evaluator && start_evaluation.correct) {
    options.plan.screen = &screen.emplace(std::move(screening_evaluator), config.screen->plugin, target.folder, start,
                                          start_evaluation, inputs_seed);
  }
  Console console = StandardConsole();
  const bool talks = !options.json && !globals.quiet;
  const double start_speedup = start_evaluation.correct ? problem.baseline.seconds / start_evaluation.seconds : 1;
  const bool moves = talks && console.moves();
  CandidateTable table(options.plan.evaluations, start_speedup);
  CandidateLines lines(start_speedup);
  bool from_list = false;
  const auto tell = [&](const SearchCandidate& candidate) {
    const bool is_new = lines.Add(candidate);
    if (!talks) return;
    const std::string said = lines.Said(candidate);
    if (moves) {
      table.Add(candidate, said);
      console.Redraw(table.Lines());
      return;
    }
    if (candidate.from_list && !std::exchange(from_list, true))
      console.Note("the policy suggests nothing new: now the suggestions of the coder's list");
    if (!is_new) return;
    console.Note(std::to_string(candidate.evaluations) + "/" + std::to_string(options.plan.evaluations) +
                 (options.train ? "  update " + std::to_string(candidate.updates + 1) : "") + "  round " +
                 std::to_string(candidate.round + 1) + "  " + said + "  best " +
                 Times(candidate.best_speedup / start_speedup));
  };
  if (moves) {
    options.plan.under_way = [&](const RoundsUnderWay& rounds) {
      table.SetUnderWay(rounds);
      console.Redraw(table.Lines());
    };
  }
  SearchResult result =
      trained ? SearchByTraining(config, parts, *trained,
                                 RunFolder::Create(config.output_dir, config.resolved_yaml, false, nullptr),
                                 options.plan, tell)
              : Search(config, parts, problem, start, start_evaluation, *pool, options.plan, tell);
  if (moves) {
    table.SetUnderWay({});
    console.Redraw(table.Lines());
  }
  console.Finish();  // the table stays
  if (talks && !moves) {
    for (const std::string& line : lines.Repeats()) console.Note(line);
  }
  const Outcome outcome = BestOf(config, parts, problem, start, start_evaluation, &result);
  const Json evidence = EvidenceOf(options, config, parts, problem, result, outcome);
  WriteResult(out, options, problem, start, parts, result, outcome, evidence);
  if (options.json) {
    std::printf("%s\n", DumpJson(evidence, 2).c_str());
  } else {
    const bool faster = outcome.kernel.source != start && outcome.speedup() >= 1.005;  // else printed as 1.00x
    std::string path;
    for (const std::string& suggestion : outcome.kernel.suggestions) path += (path.empty() ? "" : ", ") + suggestion;
    std::vector<std::pair<std::string, std::string>> summary = {
        {"best", !faster ? "no faster kernel was found"
                         : Times(outcome.speedup()) + " as fast as the start" +
                               (outcome.kernel.evaluation.modelled ? ", by modelled times" : "") +
                               (outcome.thorough ? "; by a thorough evaluation (the search uses quick ones)"
                                                 : "; not confirmed by a thorough evaluation")},
        {"suggestions", !faster || path.empty() ? "none" : path},
        {"searched", std::to_string(result.evaluations) + " kernels in " + FormatDuration(result.seconds) +
                         "; ended by: " + result.ended}};
    if (screen)
      summary.emplace_back("screened out", std::to_string(result.screened_slow) + " kernels as too slow and " +
                                               std::to_string(result.screened_wrong) + " as not correct, by " +
                                               screen->name());
    if (lines.refusals().without_kernel() > 0)
      summary.emplace_back("no kernel", lines.refusals().Text() + "; see docs/optimize.md");
    summary.emplace_back("written to", out.string());
    console.Header(problem.name, summary);
  }
  return result.stopped ? kInterrupted : result.diverged ? kFailed : kFine;
}

}  // namespace

void AddOptimizeCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<OptimizeOptions>();
  CLI::App* command = app.add_subcommand("optimize", "Search for a faster kernel of one problem");
  command
      ->add_option("PROBLEM", options->target, "A problem's folder, its name in problems/, or a kernel to begin with")
      ->type_name("PROBLEM|KERNEL.cu")
      ->required();
  command->add_option("--problem", options->problem, "With KERNEL.cu: what it computes")->type_name("DIR|NAME");
  command
      ->add_option("--policy", options->policy,
                   "The policy: a run's or a model's folder, uniform, or fixed:TECHNIQUE[,TECHNIQUE...]")
      ->type_name("POLICY");
  command->add_option("--pipeline", options->pipeline, "Coder, evaluator and prompt (default: the run's resolved.yaml)")
      ->type_name("FILE");
  command
      ->add_option("--screen", options->screen,
                   "An evaluator that judges new kernels first, so that the pipeline's gets only promising ones; none: "
                   "without (default: the pipeline's screen). Its options: --set screen.options.KEY=VALUE")
      ->type_name("PLUGIN");
  command->add_option("--evaluations", options->plan.evaluations, "Kernels to judge at most")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--budget", options->budget, "Time to search at most: 90s, 2m, 1h")->type_name("TIME");
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
  command
      ->add_flag("--train", options->train,
                 "Train a copy of the policy on this problem with the run's trainer; its samples are the kernels")
      ->excludes("--beam")
      ->excludes("--screen")
      ->excludes("--samples");
  command->add_option("--seed", options->seed, "The search's seed (default: the pipeline's)")->type_name("N");
  command->add_option("--out", options->out, "Where the result goes (default: optimized/PROBLEM)")->type_name("DIR");
  AddSetOption(command, &options->settings, "Changes one key of the pipeline");
  command->add_flag("--json", options->json, "Print the evidence as JSON, and no candidates");
  command->footer(
      "Examples:\n"
      "  kgrpo-host optimize softmax_long --policy runs/quickstart --evaluations 100\n"
      "  kgrpo-host optimize mine.cu --problem my_problem/ --policy runs/quickstart --budget 2m --out faster\n"
      "  kgrpo-host optimize softmax_long --policy runs/quickstart --train --evaluations 640\n"
      "  kgrpo-host optimize softmax_long --policy uniform --pipeline configs/quickstart.yaml\n"
      "  kgrpo-host optimize softmax_long --policy uniform --pipeline configs/quickstart_cuda.yaml --screen "
      "evaluator_sim\n"
      "Writes best.cu, best.diff, evidence.json, candidates.jsonl, and report.html if the evaluator writes "
      "reports.");
  command->callback([=, &globals] { *action = [=, &globals] { return RunOptimize(globals, *options); }; });
}

}  // namespace kgrpo::cli
