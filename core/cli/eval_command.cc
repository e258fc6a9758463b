// `kgrpo-host eval`: the verdict on one kernel (--kernel), or what a policy is worth on held-out problems (--policy).
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "console/console.h"
#include "host/log.h"
#include "loop/coder_cost.h"
#include "loop/evaluate_policy.h"
#include "prompt/metrics.h"   // GroupFacts
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
  bool profile = false;
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

std::vector<NamedNumber> NumbersOf(const Evaluation& evaluation) {
  std::vector<NamedNumber> numbers;
  for (const Metric& metric : evaluation.metrics) numbers.emplace_back(metric.name, metric.value);
  return numbers;
}

// " (95%: 12.2 us to 12.4 us)", where there is an interval.
std::string IntervalText(const Evaluation& evaluation) {
  if (evaluation.seconds_low == evaluation.seconds_high) return "";
  return " (95%: " + FormatSeconds(evaluation.seconds_low) + " to " + FormatSeconds(evaluation.seconds_high) + ")";
}

// The ratio of the times, with the interval of an evaluator that measures one.
std::string SpeedupText(const Evaluation& candidate, const Evaluation& baseline) {
  char text[96];
  int length = std::snprintf(text, sizeof text, "%.3g", baseline.seconds / candidate.seconds);
  const auto find = [&](const char* name) {
    const auto found = std::find_if(candidate.metrics.begin(), candidate.metrics.end(),
                                    [name](const Metric& metric) { return metric.name == name; });
    return found == candidate.metrics.end() ? 0.0 : found->value;
  };
  if (const double low = find("speedup_low"), high = find("speedup_high"); low > 0 && high > 0) {
    std::snprintf(text + length, sizeof text - static_cast<size_t>(length), " (95%%: %.3g to %.3g)", low, high);
  }
  return text;
}

// Characters, not bytes.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void PrintFacts(const std::vector<FactGroup>& groups) {
  size_t width = 0;
  for (const FactGroup& group : groups) {
    for (const Fact& fact : group.facts) width = std::max(width, Width(PrintableText(fact.label)));
  }
  for (const FactGroup& group : groups) {
    std::printf("\n%s\n", group.title.c_str());
    for (const Fact& fact : group.facts) {
      const std::string label = PrintableText(fact.label);
      std::printf("  %s%s  %s\n", label.c_str(), std::string(width - Width(label), ' ').c_str(), fact.value.c_str());
    }
  }
}

// Behind what is said of a source line, the line.
void QuoteSource(const std::string& source, std::vector<FactGroup>* groups) {
  std::vector<std::string> lines;
  std::istringstream stream(source);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  for (FactGroup& group : *groups) {
    for (Fact& fact : group.facts) {
      unsigned number = 0;
      if (std::sscanf(fact.label.c_str(), "line %u ", &number) != 1 || number == 0 || number > lines.size()) continue;
      const std::string& line = lines[number - 1];
      const size_t first = line.find_first_not_of(" \t");
      if (first != std::string::npos) fact.value += "  " + PrintableText(line.substr(first));
    }
  }
}

// The whole evidence: what was found, the times, every measured fact, and what was in force while it was measured.
void PrintText(const Evaluation& candidate, const Evaluation& baseline, const std::string& problem,
               const std::string& source, const std::string& evaluator) {
  std::printf("problem    %s\nverdict    %s\n", problem.c_str(), candidate.verdict.c_str());
  if (!candidate.diagnosis.empty()) std::printf("found      %s\n", PrintableText(candidate.diagnosis).c_str());
  const std::string clock = (baseline.modelled ? "modelled: " : "measured: ") + baseline.time_source;
  std::printf("reference  %s%s (%s)\n", FormatSeconds(baseline.seconds).c_str(), IntervalText(baseline).c_str(),
              PrintableText(clock).c_str());
  if (candidate.correct) {
    std::printf("kernel     %s%s\nspeedup    %s\n", FormatSeconds(candidate.seconds).c_str(),
                IntervalText(candidate).c_str(), SpeedupText(candidate, baseline).c_str());
  }
  std::vector<FactGroup> facts = GroupFacts(NumbersOf(candidate));
  QuoteSource(source, &facts);
  PrintFacts(facts);
  if (evaluator.empty()) return;
  std::printf("\nEvaluator\n");
  std::istringstream lines(evaluator);
  for (std::string line; std::getline(lines, line);) std::printf("  %s\n", PrintableText(line).c_str());
}

// What --profile sets, where the evaluator has such an option.
void RequireProfiling(Session& session, const std::string& plugin) {
  const auto& schema = session.loader().Load(plugin).OptionsSchema(Role::kEvaluator);
  if (schema.contains("properties") && schema["properties"].contains("profile")) return;
  throw Error(KGRPO_ERROR_INVALID, "--profile: the evaluator " + plugin +
                                       " has no option \"profile\": it does not profile. evaluator_cuda does, on a "
                                       "machine with a GPU and Nsight Compute (--evaluator evaluator_cuda)");
}

int EvaluateKernel(const Globals& globals, const EvalOptions& options) {
  const std::string source = ReadKernel(options.kernel);
  Session session(globals);
  std::unique_ptr<Evaluator> evaluator;
  std::vector<std::string> settings = options.settings;
  if (options.file.empty()) {
    const std::string plugin = options.evaluator.empty() ? "evaluator_sim" : options.evaluator;
    if (options.profile) {
      RequireProfiling(session, plugin);
      settings.emplace_back("profile=right");
    }
    session.StartServices(options.seed);
    evaluator = session.MakeEvaluator(plugin, OptionsFromSettings(settings));
  } else {
    LoadRequest request;
    request.file = options.file;
    request.settings = std::move(settings);
    if (!options.evaluator.empty()) request.settings.push_back("evaluator.plugin=" + options.evaluator);
    if (options.profile) request.settings.emplace_back("evaluator.options.profile=right");
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
    PrintText(candidate, baseline, problem.name(), source, evaluator->Describe());
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
  const PolicyReport report = [&] {
    try {
      return EvaluatePolicy(config, parts, choice, episodes);
    } catch (const Error& error) {
      // The message of a coder's own limit says what it has cost.
      if (error.code() == KGRPO_ERROR_BUDGET) throw;
      throw Error(error.code(), error.what() + CostSoFarText(parts, 0));
    }
  }();
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
  if (of_policy && options.profile)
    return refuse("--profile goes with --kernel; a policy's evaluator profiles by its own option profile");
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
  command->add_flag("--profile", options->profile,
                    "With --kernel: add what Nsight Compute counts, where the evaluator can (evaluator_cuda)");
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
      "  kgrpo-host eval --kernel mine.cu --problem problems/softmax_long --evaluator evaluator_cuda --profile\n"
      "  kgrpo-host eval configs/quickstart.yaml --policy runs/quickstart/final --episodes 8");
  command->callback([=, &globals] { *action = [=, &globals] { return Evaluate(globals, *options); }; });
}

}  // namespace kgrpo::cli
