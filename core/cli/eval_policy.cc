#include "cli/eval_policy.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/console.h"
#include "cli/print_json.h"
#include "cli/session.h"
#include "loop/coder_cost.h"
#include "loop/compare_policies.h"
#include "loop/evaluate_policy.h"
#include "loop/run_config.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

// The policies of a run's checkpoints, by step. Their labels are "step 100".
std::vector<PolicyChoice> CheckpointsOf(const std::string& run) {
  std::vector<std::pair<uint64_t, fs::path>> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(run) / "checkpoints", error)) {
    const std::string name = entry.path().filename().string(), prefix = "step-";
    uint64_t step = 0;
    if (!name.starts_with(prefix)) continue;
    const auto [end, wrong] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
    if (wrong != std::errc() || end != name.data() + name.size() || !fs::is_directory(entry.path() / "policy"))
      continue;
    found.emplace_back(step, entry.path() / "policy");
  }
  if (found.empty()) {
    throw Error(KGRPO_ERROR_NOT_FOUND,
                "--checkpoints " + run + ": there are no checkpoints; a run's folder holds them in checkpoints/step-N");
  }
  std::ranges::sort(found);
  std::vector<PolicyChoice> choices;
  for (const auto& [step, folder] : found) {
    choices.push_back(ParsePolicyChoice(folder.string()));
    choices.back().label = "step " + std::to_string(step);
  }
  return choices;
}

std::vector<PolicyChoice> ChoicesOf(const PolicyEvalOptions& options) {
  std::vector<PolicyChoice> choices;
  for (const std::string& policy : options.policies) {
    choices.push_back(ParsePolicyChoice(policy));
    const auto same = std::ranges::count(options.policies, policy);
    if (same > 1)
      throw Error(KGRPO_ERROR_INVALID, "--policy " + policy + " is there twice: it would be compared with itself");
  }
  if (options.checkpoints.empty()) return choices;
  for (PolicyChoice& choice : CheckpointsOf(options.checkpoints)) choices.push_back(std::move(choice));
  return choices;
}

// The folder for a policy's kernels. With several policies each has a subfolder, named after the policy.
fs::path KernelsOf(const PolicyEvalOptions& options, const PolicyChoice& choice, size_t index, bool alone) {
  if (options.kernels.empty() || alone) return options.kernels;
  std::string name = std::to_string(index + 1) + "-";
  for (const char c : choice.label) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return fs::path(options.kernels) / name;
}

}  // namespace

void AddPolicyEvalOptions(CLI::App* command, PolicyEvalOptions* options) {
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
}

int EvaluatePolicies(const Globals& globals, const PolicyEvalOptions& options) {
  const std::vector<PolicyChoice> choices = ChoicesOf(options);
  Session session(globals);
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  request.roles = {Role::kCoder, Role::kEvaluator, Role::kReward};
  if (std::ranges::any_of(choices, &PolicyChoice::needs_policy)) request.roles.insert(Role::kPolicy);
  request.needs_train_problems = false;
  request.needs_heldout_problems = true;
  const PipelineConfig config = session.Load(request);
  const uint64_t episodes = options.episodes > 0 ? options.episodes : config.evaluation.episodes;
  if (const std::string mistake = RoundsMistake("an eval", {{"episodes", episodes},
                                                            {"held-out problems", config.heldout_problems.size()},
                                                            {"loop.rounds", config.loop.rounds},
                                                            {"repeats", options.repeats}});
      !mistake.empty()) {
    throw Error(KGRPO_ERROR_INVALID, mistake);
  }
  session.StartServices(config.seed);
  PipelineParts parts = session.MakeParts(config, request.roles);
  EpisodePlan plan;
  plan.episodes = episodes;
  plan.repeats = options.repeats;
  const bool alone = choices.size() == 1;
  Console console = StandardConsole();
  std::vector<PolicyReport> reports;
  for (const PolicyChoice& choice : choices) {
    plan.kernels = KernelsOf(options, choice, reports.size(), alone);
    try {
      reports.push_back(EvaluatePolicy(config, parts, choice, plan));
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
    if (!options.json && (alone || options.checkpoints.empty())) reports.back().Show(console);
    if (!options.json && !plan.kernels.empty()) {
      console.Note(std::to_string(reports.back().kernels.size()) +
                   " kernels that a thorough evaluation confirmed are in " + plan.kernels.string());
    }
    if (reports.back().interrupted) {
      std::fprintf(stderr, "interrupted: not all of the fastest kernels were judged thoroughly\n");
      break;
    }
  }
  if (options.json) {
    PrintJson(alone ? reports.front().ToJson() : PoliciesToJson(reports));
  } else if (!alone) {
    ShowPolicies(console, reports);
  }
  return reports.back().interrupted ? kInterrupted : kFine;
}

}  // namespace kgrpo::cli
