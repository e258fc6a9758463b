#include "eval/command.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <kgrpo/support/number_text.h>  // Format, FormatDollars
#include "base/console.h"
#include "cli/command_line.h"
#include "cli/session.h"
#include "common/arguments.h"
#include "compare/compare.h"
#include "compare/comparison_json.h"
#include "compare/evaluation.h"
#include "compare/report_text.h"
#include "eval/evaluate_policy.h"
#include "loop/coder_cost.h"
#include "loop/run_config.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

struct PolicyEvalOptions {
  std::string file, evaluator;
  std::vector<std::string> settings;
  std::vector<std::string> policies;  // values of --policy
  std::string checkpoints;            // a run's folder; every checkpoint is a policy
  uint64_t episodes = 0;              // 0: evaluation.episodes of the file
  uint64_t repeats = 1;
  std::string kernels, out;
  bool json = false;
};

std::vector<PolicyChoice> ChoicesOf(const PolicyEvalOptions& options) {
  if (options.policies.empty() && options.checkpoints.empty())
    throw Error(KGRPO_ERROR_INVALID, "eval policy needs --policy POLICY or --checkpoints RUN");
  std::vector<PolicyChoice> choices;
  for (const std::string& policy : options.policies) {
    choices.push_back(ParsePolicyChoice(policy));
    if (std::ranges::count(options.policies, policy) > 1)
      throw Error(KGRPO_ERROR_INVALID, "--policy " + policy + " is given twice");
  }
  if (options.checkpoints.empty()) return choices;
  for (PolicyChoice& choice : CheckpointChoices(options.checkpoints)) choices.push_back(std::move(choice));
  return choices;
}

// The folder of the evaluations: --output, or evaluated/NAME-N with the first N that is free.
fs::path OutOf(const PolicyEvalOptions& options, const std::string& name) {
  std::error_code code;
  if (!options.out.empty()) {
    RequireEmpty("--output", options.out);
    return options.out;
  }
  for (uint64_t number = 1;; ++number) {
    const fs::path folder = fs::path("evaluated") / (name + "-" + std::to_string(number));
    if (!fs::exists(folder, code)) return folder;
  }
}

// Returns the folder of one policy; of several, each has its own, named after it: "2-uniform".
fs::path FolderOf(const fs::path& all, const PolicyChoice& choice, size_t index, bool alone) {
  if (all.empty() || alone) return all;
  std::string name = std::to_string(index + 1) + "-";
  for (const char c : choice.label) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return all / name;
}

std::string IntervalText(const Interval& interval, const char* unit) {
  if (std::isnan(interval.low)) return Format("%.2f%s", interval.value, unit);  // one episode a problem
  return Format("%.2f%s [%.2f, %.2f]", interval.value, unit, interval.low, interval.high);
}

void ShowPolicy(Console& console, const std::string& label, const RunMeasures& run, const EvaluationFigures& figures) {
  const auto metric = [&](const char* name) {
    const auto found = figures.metrics.find(name);
    return found == figures.metrics.end() ? 0.0 : found->second;
  };
  std::string fast, best, rounds;
  for (const auto& [p, share] : figures.fast_p)
    fast += Format("%sfast_%g %.0f%%", fast.empty() ? "" : "  ", p, 100 * share);
  for (const auto& [k, speedup] : figures.best_of)
    best += Format("%s%llu: %.2fx", best.empty() ? "" : "  ", static_cast<unsigned long long>(k), speedup);
  for (const auto& [text, name] : {std::pair("correct", "kernel/correct_rate"),
                                   {"failed", "kernel/failed_rate"},
                                   {"not applicable", "coder/not_applicable_rate"},
                                   {"unclear", "coder/unclear_rate"},
                                   {"no kernel", "policy/no_kernel_rate"},
                                   {"coder errors", "coder/error_rate"},
                                   {"evaluator errors", "evaluator/error_rate"},
                                   {"reward errors", "reward/error_rate"}})
    rounds += Format("%s%s %.0f%%", rounds.empty() ? "" : "  ", text, 100 * metric(name));
  const double entropy = metric("policy/token_entropy");
  const CoderTotals& coder = figures.coder;
  const std::string reused = ReusedText({coder.answers, coder.reused});
  std::vector<std::pair<std::string, std::string>> lines = {
      {"episodes", Format("%llu, seed %llu", static_cast<unsigned long long>(figures.episodes),
                          static_cast<unsigned long long>(run.seed))},
      {"times", run.times},
      {"reward", IntervalText(figures.reward, "")},
      {"best speedup", IntervalText(figures.best_speedup, "x") + "  (geometric mean over episodes; " +
                           (std::isnan(figures.best_speedup.low) ? "intervals need two a problem)" : "95% intervals)")},
      {"fast_p", fast},
      {"best of k", best},
      {"rounds", rounds},
      {"suggestions", Format("share of the favourite %.0f%%  distinct %.0f", 100 * metric("policy/favourite_share"),
                             metric("policy/distinct_suggestions")) +
                          (entropy > 0 ? Format("  entropy %.3f nats a token", entropy) : "")}};
  if (const std::string refused = RefusedText(figures.refusals, coder.answers); !refused.empty())
    lines.emplace_back("no kernel", refused);
  std::string cost = coder.cost > 0 ? FormatDollars(coder.cost) +
                                          Format(", %llu tokens", static_cast<unsigned long long>(coder.tokens))
                                    : "";
  if (!reused.empty()) cost += (cost.empty() ? "" : "; ") + reused;
  if (!cost.empty()) lines.emplace_back("coder", cost);
  lines.emplace_back("written to", run.folder.string());
  console.Header("policy: " + label, lines);
  std::vector<std::vector<std::string>> rows;
  for (const EvaluationFigures::OfProblem& problem : figures.problems) {
    if (problem.episodes == 0) {  // all were dropped: there is no figure
      rows.push_back({problem.problem, "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const std::string favourite = problem.suggested.favourite();
    const size_t times = problem.suggested.count(favourite);
    rows.push_back({problem.problem, IntervalText(problem.reward, ""), IntervalText(problem.best_speedup, "x"),
                    Format("%.0f%%", 100 * problem.correct_rate), ShownSuggestion(favourite, 40),
                    Format("%.0f%%", 100 * problem.suggested.favourite_share()),
                    Format("%.0f%%", 100.0 * static_cast<double>(problem.applied.count(favourite)) /
                                         static_cast<double>(std::max<size_t>(1, times)))});
  }
  console.Table("", {"problem", "reward", "best speedup", "correct", "favourite suggestion", "share", "applied"}, rows);
}

void ShowAll(Console& console, const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons) {
  std::vector<std::vector<std::string>> rows;
  std::vector<double> rewards;
  for (const RunGroup& group : groups) {
    const RunMeasures& run = group.runs.front();
    const auto value = [&](const char* name) {
      const auto found = run.values.find(name);
      return found == run.values.end() ? 0.0 : found->second;
    };
    rewards.push_back(value("heldout_reward"));
    rows.push_back({group.label, std::to_string(run.episodes.size()), Format("%.3f", rewards.back()),
                    Format("%.2fx", value("heldout_speedup")), Format("%.0f%%", 100 * value("heldout_fast_1")),
                    Format("%.0f%%", 100 * value("heldout_correct"))});
  }
  console.Table("", {"policy", "episodes", "reward", "best speedup", "fast_1", "correct"}, rows);
  if (groups.size() > 2) console.Note("reward in this order: " + Sparkline(rewards, 60));
  for (const std::string& words : WordsOf(groups, comparisons)) console.Note(words);
  for (const std::string& note : NotesOf(groups, {})) console.Note("note: " + note);
}

int EvaluatePolicies(const Globals& globals, const PolicyEvalOptions& options) {
  const std::vector<PolicyChoice> choices = ChoicesOf(options);
  Session session(globals);
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  request.evaluator = options.evaluator;
  request.roles = {Role::kCoder, Role::kEvaluator, Role::kReward};
  if (std::ranges::any_of(choices, &PolicyChoice::needs_policy)) request.roles.insert(Role::kPolicy);
  request.needs_train_problems = false;
  request.needs_heldout_problems = true;
  const PipelineConfig config = session.Load(request);
  EpisodePlan plan;
  plan.episodes = options.episodes > 0 ? options.episodes : config.evaluation.episodes;
  plan.repeats = options.repeats;
  plan.overrides = options.settings;
  if (const std::string mistake = RoundsMistake("an eval", {{"episodes", plan.episodes},
                                                            {"held-out problems", config.heldout_problems.size()},
                                                            {"loop.rounds", config.loop.rounds},
                                                            {"repeats", options.repeats}});
      !mistake.empty()) {
    throw Error(KGRPO_ERROR_INVALID, mistake);
  }
  session.StartServices(config.seed);
  PipelineParts parts = session.MakeParts(config, request.roles, /*identify=*/true);
  const bool alone = choices.size() == 1;
  const fs::path out = OutOf(options, config.name);
  Console console = StandardConsole();
  std::vector<RunMeasures> runs;
  nlohmann::ordered_json policies = nlohmann::ordered_json::array();
  bool complete = true;
  for (const PolicyChoice& choice : choices) {
    const fs::path folder = FolderOf(out, choice, runs.size(), alone);
    plan.kernels = FolderOf(options.kernels, choice, runs.size(), alone);
    try {
      complete = EvaluatePolicy(config, parts, choice, plan, folder);
    } catch (const Error& error) {
      // The message of a coder's own limit includes the cost.
      if (error.code() == KGRPO_ERROR_BUDGET)
        throw Error(
            error.code(),
            error.what() + std::string("; another eval starts from the beginning and pays for all answers again"));
      CoderSpending spending;
      TakeSpending(*parts.coder, &spending);
      throw Error(error.code(), error.what() + CostSoFarText(spending));
    }
    runs.push_back(ReadMeasures(folder, ""));
    const EvaluationFigures figures = ReadEvaluation(runs.back());
    if (options.json) {
      policies.push_back({{"policy", choice.label}});
      policies.back().update(FiguresToJson(figures, runs.back()));
    } else {
      if (alone || options.checkpoints.empty()) ShowPolicy(console, choice.label, runs.back(), figures);
      if (!plan.kernels.empty())
        console.Note(std::to_string(figures.kernels.size()) + " kernels that a thorough evaluation confirmed are in " +
                     plan.kernels.string());
    }
    if (complete) continue;
    std::fprintf(stderr, "interrupted: not all of the fastest kernels were judged thoroughly\n");
    break;
  }
  std::vector<RunGroup> groups;  // in the order of the choices: their configurations differ in the policy
  groups.reserve(runs.size());
  for (RunMeasures& run : runs) groups.push_back({choices[groups.size()].label, {std::move(run)}});
  const std::vector<Comparison> comparisons = Compare(groups);
  if (options.json && alone) {
    PrintJson(policies[0]);
  } else if (options.json) {
    PrintJson({{"policies", policies}, {"comparison", ComparisonToJson(groups, comparisons, {})}});
  } else if (!alone) {
    ShowAll(console, groups, comparisons);
  }
  if (!options.json) {
    console.Note((alone ? "kgrpo-host report " + out.string() : "kgrpo-host compare " + out.string() + "/*") +
                 " shows this again; report shows each round");
  }
  return complete ? kFine : kInterrupted;
}

}  // namespace

void AddEvalPolicy(CLI::App* eval, const Globals& globals, Action* action) {
  auto options = std::make_shared<PolicyEvalOptions>();
  CLI::App* command = eval->add_subcommand("policy", "Evaluate policies on held-out problems, without training");
  command->add_option("FILE", options->file, "The pipeline file: its coder, evaluator, reward and held-out problems")
      ->required();
  command
      ->add_option(
          "--policy", options->policies,
          "A run, a model folder, uniform, or fixed:TECHNIQUE[,TECHNIQUE...]; several are compared with the first, "
          "episode by episode")
      ->type_name("POLICY")
      ->expected(1)
      ->take_all();
  command->add_option("--checkpoints", options->checkpoints, "Evaluate every checkpoint of this run: a learning curve")
      ->type_name("RUN");
  command->add_option("--episodes", options->episodes, "Episodes of each held-out problem (default: the file's)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--repeat", options->repeats, "Evaluate N times, with the seeds SEED, SEED + 1, ...")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--save-kernels", options->kernels,
                   "Keep the best kernel of each problem that a thorough evaluation confirms, with its evidence")
      ->type_name("DIR");
  command
      ->add_option("-o,--output,--out", options->out,
                   "The run's folder, or of several policies that of their runs (default: evaluated/NAME-N)")
      ->type_name("DIR");
  command
      ->add_option("--evaluator", options->evaluator,
                   "Another evaluator than the file's, for a machine without its device")
      ->type_name("PLUGIN");
  AddSetOption(command, &options->settings, "Changes one key of FILE");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  kgrpo-host eval policy configs/quickstart.yaml --policy runs/quickstart/final --episodes 8\n"
      "  kgrpo-host eval policy configs/quickstart.yaml --policy uniform --policy runs/a/final --policy runs/b/final\n"
      "  kgrpo-host eval policy configs/quickstart.yaml --checkpoints runs/quickstart\n"
      "  kgrpo-host eval policy configs/quickstart.yaml --policy runs/quickstart/final --save-kernels best/");
  command->callback([=, &globals] { *action = [=, &globals] { return EvaluatePolicies(globals, *options); }; });
}

}  // namespace kgrpo::cli
