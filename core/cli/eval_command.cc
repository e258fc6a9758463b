// `kgrpo-host eval`: the verdict on one kernel (--kernel), or what a policy is worth on held-out problems (--policy).
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "console/console.h"
#include "host/log.h"
#include "loop/evaluate_policy.h"
#include "prompt/template.h"  // FormatSeconds

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EvalOptions {
  std::string file;
  std::string kernel, problem, evaluator;
  std::string policy;
  std::vector<std::string> settings;
  uint64_t seed = 0;
  uint64_t episodes = 0;  // 0: evaluation.episodes of the file
  bool thorough = false;
  bool json = false;
};

void PrintJson(const Json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

// ---- one kernel ---------------------------------------------------------------------------------

std::string ReadKernel(const std::string& file) {
  if (std::filesystem::is_directory(file)) {
    throw Error(KGRPO_ERROR_INVALID, "--kernel " + file + " is a folder: name a CUDA source, such as " +
                                         (std::filesystem::path(file) / "reference.cu").lexically_normal().string());
  }
  std::ifstream stream(file, std::ios::binary);
  std::string source((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream) throw Error(KGRPO_ERROR_NOT_FOUND, "cannot read the kernel " + file);
  return source;
}

Json ToJson(const Evaluation& evaluation) {
  Json json = {{"compiled", evaluation.compiled}, {"correct", evaluation.correct}, {"verdict", evaluation.verdict}};
  if (evaluation.correct) {
    json["seconds"] = evaluation.seconds;
    json["seconds_low"] = evaluation.seconds_low;
    json["seconds_high"] = evaluation.seconds_high;
    json["modelled"] = evaluation.modelled;
    json["time_source"] = evaluation.time_source;
  }
  json["diagnosis"] = evaluation.diagnosis;
  json["metrics"] = Json::object();
  for (const Metric& metric : evaluation.metrics) json["metrics"][metric.name] = metric.value;
  return json;
}

void PrintText(const Evaluation& candidate, const Evaluation& baseline, const std::string& problem) {
  std::printf("problem    %s\nverdict    %s\n", problem.c_str(), candidate.verdict.c_str());
  const std::string source = (candidate.modelled ? "modelled: " : "measured: ") + baseline.time_source;
  std::printf("reference  %s (%s)\n", FormatSeconds(baseline.seconds).c_str(), source.c_str());
  if (candidate.correct) {
    std::printf("kernel     %s", FormatSeconds(candidate.seconds).c_str());
    if (candidate.seconds_low != candidate.seconds_high) {
      std::printf(" (95%%: %s to %s)", FormatSeconds(candidate.seconds_low).c_str(),
                  FormatSeconds(candidate.seconds_high).c_str());
    }
    std::printf("\nspeedup    %.3g\n", baseline.seconds / candidate.seconds);
  }
  if (!candidate.diagnosis.empty()) std::printf("found      %s\n", PrintableText(candidate.diagnosis).c_str());
  if (candidate.metrics.empty()) return;
  size_t width = 0;
  for (const Metric& metric : candidate.metrics) width = std::max(width, metric.name.size());
  std::printf("measures\n");
  for (const Metric& metric : candidate.metrics) {
    std::printf("  %-*s  %.5g\n", static_cast<int>(width), metric.name.c_str(), metric.value);
  }
}

int EvaluateKernel(const Globals& globals, const EvalOptions& options) {
  const std::string source = ReadKernel(options.kernel);
  Session session(globals);
  std::unique_ptr<Evaluator> evaluator;
  if (options.file.empty()) {
    session.StartServices(options.seed);
    evaluator = session.MakeEvaluator(options.evaluator.empty() ? "evaluator_sim" : options.evaluator,
                                      OptionsFromSettings(options.settings));
  } else {
    LoadRequest request;
    request.file = options.file;
    request.settings = options.settings;
    if (!options.evaluator.empty()) request.settings.push_back("evaluator.plugin=" + options.evaluator);
    request.roles = {Role::kEvaluator};
    request.ignore_problems = true;
    const PipelineConfig config = session.Load(request);
    session.StartServices(config.seed);
    evaluator = std::move(session.MakeParts(config, request.roles).evaluator);
  }
  const Problem problem = evaluator->OpenProblem(options.problem);
  const Evaluation baseline = evaluator->Baseline(problem);
  const Evaluation candidate = evaluator->Evaluate(problem, source, options.seed, options.thorough);
  if (!options.json) {
    PrintText(candidate, baseline, problem.name());
    return kFine;
  }
  Json json = {{"problem", problem.name()}, {"kernel", options.kernel}};
  json.update(ToJson(candidate));
  json["baseline"] = ToJson(baseline);
  if (candidate.correct) json["speedup"] = baseline.seconds / candidate.seconds;
  json["evaluator"] = evaluator->Describe();
  PrintJson(json);
  return kFine;
}

// ---- a policy -----------------------------------------------------------------------------------

int EvaluateHeldOut(const Globals& globals, const EvalOptions& options) {
  const PolicyChoice choice = ParsePolicyChoice(options.policy);
  Session session(globals);
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  request.roles = {Role::kCoder, Role::kEvaluator, Role::kReward};
  if (choice.needs_policy()) request.roles.insert(Role::kPolicy);
  request.needs_train_problems = false;
  request.needs_heldout_problems = true;
  const PipelineConfig config = session.Load(request);
  session.StartServices(config.seed);
  PipelineParts parts = session.MakeParts(config, request.roles);
  const uint64_t episodes = options.episodes > 0 ? options.episodes : config.evaluation.episodes;
  const PolicyReport report = EvaluatePolicy(config, parts, choice, episodes);
  if (options.json) {
    PrintJson(report.ToJson());
  } else {
    Console console = StandardConsole();
    report.Show(console);
  }
  return kFine;
}

int Evaluate(const Globals& globals, const EvalOptions& options) {
  const bool of_kernel = !options.kernel.empty();
  const bool of_policy = !options.policy.empty();
  const auto refuse = [](const char* message) {
    std::fprintf(stderr, "%s; see kgrpo-host eval --help\n", message);
    return static_cast<int>(kUsage);
  };
  if (of_kernel == of_policy) return refuse("eval takes either --kernel F.cu and --problem DIR, or FILE and --policy");
  if (of_kernel && options.problem.empty())
    return refuse("--kernel needs --problem DIR: what the kernel is to compute");
  if (of_policy && options.file.empty())
    return refuse("--policy needs a pipeline FILE: its coder, evaluator, reward and held-out problems");
  if (of_policy && !options.problem.empty())
    return refuse("--problem goes with --kernel; choose problems with --set problems.heldout=[DIR]");
  return of_kernel ? EvaluateKernel(globals, options) : EvaluateHeldOut(globals, options);
}

}  // namespace

void AddEvalCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Judge one kernel, or play a policy on held-out problems");
  command->add_option("FILE", options->file, "A pipeline file; for --kernel, its evaluator is used");
  command->add_option("--kernel", options->kernel, "A CUDA source to judge")->type_name("F.cu");
  command->add_option("--problem", options->problem, "The problem that it is to solve")->type_name("DIR");
  command
      ->add_option("--evaluator", options->evaluator,
                   "The evaluator plugin where there is no FILE (default: evaluator_sim)")
      ->type_name("PLUGIN");
  command->add_option("--seed", options->seed, "Of the secret inputs of --kernel")->capture_default_str();
  command->add_flag("--thorough", options->thorough, "Judge as for a record: the most careful route, no cache");
  command->add_option("--policy", options->policy, "A model folder, uniform, or fixed:TECHNIQUE[,TECHNIQUE...]")
      ->type_name("POLICY");
  command->add_option("--episodes", options->episodes, "Episodes of each held-out problem (default: the file's)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  AddSetOption(command, &options->settings, "Changes one key of FILE; without FILE, an option of the evaluator");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  kgrpo-host eval --kernel mine.cu --problem problems/softmax_long --json\n"
      "  kgrpo-host eval configs/quickstart.yaml --policy runs/quickstart/final --episodes 8");
  command->callback([=, &globals] { *action = [=, &globals] { return Evaluate(globals, *options); }; });
}

}  // namespace kgrpo::cli
