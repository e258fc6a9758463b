// `kgrpo-host eval`: judges kernels for one problem (--kernel), a kernel for each problem of a suite (--suite;
// suite.cc), or a policy on held-out problems (--policy).
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <kgrpo/support/evaluation_text.h>
#include <kgrpo/support/number_text.h>  // FormatSeconds
#include <kgrpo/support/own_headers.h>
#include "base/cancel.h"
#include "base/default_plugins.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/eval_policy.h"
#include "cli/kernel_text.h"
#include "cli/output_file.h"
#include "cli/parallel.h"
#include "cli/print_json.h"
#include "cli/problem_choice.h"
#include "cli/session.h"
#include "cli/suite.h"
#include "store/files.h"  // WriteFileAtomically
#include "store/json.h"   // DumpJson

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

// Words of an evaluator's sentence about a size that the problem hides (docs/judging.md).
constexpr const char* kHiddenSize = "a size that is not shown";

struct EvalOptions {
  std::string file;
  std::vector<std::string> kernels_of_problem;  // files and folders
  std::string kernel, problem, evaluator;       // kernel: the one file, if it is one
  std::string report;
  std::string suite, kernels;
  uint64_t jobs = 0;
  bool thorough = false, markdown = false, kernelbench = false;
  std::string pytorch_times;
  std::vector<std::string> settings, include;
  std::optional<uint64_t> seed;
  PolicyEvalOptions policies;
  bool quick = false;
  bool show_hidden = false;
  bool profile = false;
  bool dispute_bound = false;
  bool json = false;
};

// ---- one kernel ---------------------------------------------------------------------------------

// The files that --kernel names: a folder stands for its .cu files, in order of their names.
std::vector<std::string> KernelFiles(const std::vector<std::string>& words) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& word : words) {
    if (!fs::is_directory(word)) {
      files.push_back(word);
      continue;
    }
    const size_t before = files.size();
    for (const fs::directory_entry& entry : fs::directory_iterator(word)) {
      if (entry.path().extension() == ".cu") files.push_back(entry.path().lexically_normal().string());
    }
    if (files.size() == before) throw Error(KGRPO_ERROR_INVALID, "--kernel " + word + ": the folder has no .cu file");
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

// Returns the text of the file without its headers, for reports.
std::string ReadKernel(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string source((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream) throw Error(KGRPO_ERROR_NOT_FOUND, "cannot read the kernel " + file);
  return source;
}

Json EvaluationAsShown(const Evaluation& evaluation) {
  Json json = {{"compiled", evaluation.compiled}, {"correct", evaluation.correct}, {"verdict", evaluation.verdict}};
  if (evaluation.correct) {
    json["seconds"] = evaluation.seconds;
    json["seconds_low"] = evaluation.seconds_low;
    json["seconds_high"] = evaluation.seconds_high;
    json["modelled"] = evaluation.modelled;
    json["time_source"] = evaluation.time_source;
    if (const std::optional<WorstError> error = WorstErrorOf(evaluation))
      json["worst_error"] = {{"output", error->output}, {"of_tolerance", error->ratio}};
  }
  json["diagnosis"] = evaluation.diagnosis;
  json["metrics"] = Json::object();
  for (const Metric& metric : evaluation.metrics) json["metrics"][metric.name] = metric.value;
  return json;
}

// The option of the evaluator whose schema has the keyword ("x-seed"), and the keyword's value; docs/plugins.md.
std::optional<std::pair<std::string, Json>> MarkedOption(Session& session, const std::string& plugin,
                                                         const char* keyword) {
  const auto schema = session.loader().Load(plugin).OptionsSchema(Role::kEvaluator);
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, option] : properties.items()) {
    if (option.contains(keyword)) return std::pair(name, option[keyword]);
  }
  return std::nullopt;
}

// Returns evaluator options that the command line sets.
Json DecidedOptions(Session& session, const std::string& plugin, const EvalOptions& options) {
  Json decided = Json::object();
  if (options.profile) {
    const auto profile = MarkedOption(session, plugin, "x-profile");
    if (!profile) {
      throw Error(KGRPO_ERROR_INVALID, "--profile: the evaluator " + plugin +
                                           " does not profile (none of its options is marked x-profile). "
                                           "Choose one that does by --evaluator PLUGIN");
    }
    decided[profile->first] = profile->second;
  }
  // A quick evaluation may be one that is kept, with inputs that depend on the evaluator's own seed option.
  if (options.quick && options.seed) {
    if (const auto seed = MarkedOption(session, plugin, "x-seed")) decided[seed->first] = *options.seed;
  }
  return decided;
}

// An evaluator and the folder of the problem that is asked about.
struct Asked {
  std::unique_ptr<Evaluator> evaluator;
  std::string name;  // of the evaluator's plugin
  std::string folder;
};

Asked AskedOf(Session& session, const EvalOptions& options) {
  if (options.file.empty()) {
    const std::string folder = ShippedProblem(options.problem, ProblemArgument::kOption);
    const std::string plugin = options.evaluator.empty() ? KGRPO_DEFAULT_EVALUATOR : options.evaluator;
    Json evaluator_options = OptionsFromSettings(options.settings);
    evaluator_options.update(DecidedOptions(session, plugin, options));
    session.StartServices(options.seed.value_or(0));
    return {session.MakeEvaluator(plugin, evaluator_options), plugin, folder};
  }
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  if (!options.evaluator.empty()) request.settings.push_back("evaluator.plugin=" + options.evaluator);
  request.roles = {Role::kEvaluator};
  request.needs_train_problems = false;
  request.ignore_problems = NamesFolder(options.problem);
  PipelineConfig config = session.Load(request);
  config.evaluator.options.update(DecidedOptions(session, config.evaluator.plugin, options));
  std::vector<std::string> folders = config.train_problems;
  folders.insert(folders.end(), config.heldout_problems.begin(), config.heldout_problems.end());
  const std::string folder = ProblemFolder(options.problem, folders, options.file, ProblemArgument::kOption);
  session.StartServices(config.seed);
  return {std::move(session.MakeParts(config, request.roles).evaluator), config.evaluator.plugin, folder};
}

// The baseline of the comparison. A modelled time depends a little on the compiler and on the number of sampled blocks,
// so the reference is judged in the same way as the kernel. Evaluators that measure already do so.
Evaluation BaselineOf(Evaluator& evaluator, const Problem& problem, const EvalOptions& options) {
  Evaluation baseline = evaluator.Baseline(problem);
  if (options.quick || !baseline.modelled) return baseline;
  baseline =
      evaluator.Evaluate(problem, Copy(problem.info().source), options.seed.value_or(0), true, options.show_hidden);
  if (!baseline.correct) {
    throw Error(KGRPO_ERROR_INVALID, "the reference kernel of " + problem.name() +
                                         " is not correct when it is judged " + "thoroughly (" + baseline.verdict +
                                         "): " + baseline.diagnosis);
  }
  return baseline;
}

// Compares the work that the problem declares with the work counted of the kernel, in the evaluator's words. Uses no
// baseline: if the bound is too high, the reference exceeds it too.
int DisputeBound(const EvalOptions& options, const Asked& asked, const std::string& source) {
  if (!asked.evaluator->CountsWork()) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "--dispute-bound: the evaluator " + asked.name +
                                             " does not count what a kernel does; choose one that does by --evaluator "
                                             "PLUGIN");
  }
  const Problem problem = asked.evaluator->OpenProblem(asked.folder);
  const Evaluation candidate =
      asked.evaluator->Evaluate(problem, source, options.seed.value_or(0), !options.quick, options.show_hidden);
  const auto bound = asked.evaluator->ExplainBound(problem, candidate);
  if (options.json) {
    Json json = {{"problem", problem.name()}, {"kernel", options.kernel}};
    json.update(EvaluationAsShown(candidate));
    if (bound) json["bound"] = Json::parse(bound->json);
    PrintJson(json);
    return kFine;
  }
  std::printf("problem    %s\nverdict    %s\n", problem.name().c_str(), candidate.verdict.c_str());
  if (!candidate.diagnosis.empty()) std::printf("found      %s\n", PrintableText(candidate.diagnosis).c_str());
  if (bound) {
    std::printf("\n");
    std::istringstream lines(bound->text);
    for (std::string line; std::getline(lines, line);) std::printf("%s\n", PrintableText(line).c_str());
  } else {
    std::printf("\nThe bound is asked of kernels that pass every other check.\n");
  }
  return kFine;
}

Json KernelToJson(const std::string& kernel, const Problem& problem, const Evaluation& candidate,
                  const Evaluation& baseline, const EvalOptions& options, const std::string& evaluator) {
  Json json = {{"problem", problem.name()}, {"kernel", kernel}};
  json.update(EvaluationAsShown(candidate));
  json["baseline"] = EvaluationAsShown(baseline);
  if (candidate.correct) json["speedup"] = baseline.seconds / candidate.seconds;
  json["thorough"] = !options.quick;
  json["evaluator"] = evaluator;
  return json;
}

// Judges the kernels by one evaluator, --jobs at once, and prints a line for each in their order.
int EvaluateKernels(const Globals& globals, const EvalOptions& options, const std::vector<std::string>& files) {
  std::vector<std::string> sources;
  size_t width = 0;
  for (const std::string& file : files) {
    sources.push_back(ReadKernelWithOwnHeaders(file, options.include));
    width = std::max(width, file.size());
  }
  Session session(globals);
  const Asked asked = AskedOf(session, options);
  Evaluator& evaluator = *asked.evaluator;
  const Problem problem = evaluator.OpenProblem(asked.folder);
  const Evaluation baseline = BaselineOf(evaluator, problem, options);
  std::vector<std::optional<Evaluation>> judged(files.size());
  std::mutex mutex;
  size_t next = 0;  // the first kernel without a line
  const auto print = [&](size_t i) {
    const Evaluation& candidate = *judged[i];
    if (options.json) {
      const Json json = KernelToJson(files[i], problem, candidate, baseline, options, evaluator.Describe());
      std::printf("%s\n", DumpJson(json).c_str());
    } else {
      char speedup[32] = "-";
      if (candidate.correct) std::snprintf(speedup, sizeof speedup, "%.3gx", baseline.seconds / candidate.seconds);
      std::printf("%-*s  %-14s  %-8s  %-8s  %s\n", static_cast<int>(width), PrintableText(files[i]).c_str(),
                  candidate.verdict.c_str(), candidate.correct ? FormatSeconds(candidate.seconds).c_str() : "-",
                  speedup, PrintableText(candidate.diagnosis.substr(0, candidate.diagnosis.find('\n'))).c_str());
    }
    std::fflush(stdout);
  };
  ParallelFor(
      files.size(),
      [&](size_t i) {
        if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "interrupted");
        Evaluation one =
            evaluator.Evaluate(problem, sources[i], options.seed.value_or(0), !options.quick, options.show_hidden);
        const std::lock_guard<std::mutex> lock(mutex);
        judged[i] = std::move(one);
        while (next < files.size() && judged[next]) print(next++);
      },
      options.jobs);
  return kFine;
}

int EvaluateKernel(const Globals& globals, const EvalOptions& options) {
  const std::string shown = ReadKernel(options.kernel),
                    source = ReadKernelWithOwnHeaders(options.kernel, options.include);
  if (!options.report.empty()) RequireWritable("--report", options.report, "report.html");
  Session session(globals);
  const Asked asked = AskedOf(session, options);
  if (options.dispute_bound) return DisputeBound(options, asked, source);
  const auto& [evaluator, name, folder] = asked;
  if (!options.report.empty() && evaluator->api()->report == nullptr)
    throw Error(KGRPO_ERROR_UNSUPPORTED, "--report: the evaluator " + name + " writes no reports");
  const Problem problem = evaluator->OpenProblem(folder);
  const Evaluation baseline = BaselineOf(*evaluator, problem, options);
  const Evaluation candidate =
      evaluator->Evaluate(problem, source, options.seed.value_or(0), !options.quick, options.show_hidden);
  if (!options.report.empty()) {
    WriteFileAtomically(options.report, evaluator->Report(problem, shown, options.kernel, candidate, baseline).value());
  }
  if (!options.json) {
    PrintKernelText(candidate, baseline, problem.name(), shown, evaluator->Describe(), !options.quick,
                    session.metrics());
    if (!options.show_hidden && candidate.diagnosis.find(kHiddenSize) != std::string::npos)
      std::printf("\nhint       --show-hidden names the size that is not shown\n");
    if (!options.report.empty()) std::printf("\nreport     %s\n", PrintableText(options.report).c_str());
    return kFine;
  }
  PrintJson(KernelToJson(options.kernel, problem, candidate, baseline, options, evaluator->Describe()));
  return kFine;
}

int Evaluate(const Globals& globals, EvalOptions options) {
  const bool of_kernel = !options.kernels_of_problem.empty();
  const std::vector<std::string> files = KernelFiles(options.kernels_of_problem);
  const bool several = files.size() > 1;
  if (files.size() == 1) options.kernel = files[0];
  const bool of_policy = !options.policies.policies.empty() || !options.policies.checkpoints.empty();
  const auto refuse = [](const char* message) {
    std::fprintf(stderr, "%s; see kgrpo-host eval --help\n", message);
    return static_cast<int>(kUsage);
  };
  if (!options.suite.empty() || !options.kernels.empty()) {
    if (of_kernel || of_policy || options.suite.empty() || options.kernels.empty() || !options.file.empty())
      return refuse("--suite DIR and --kernels FOLDER go together, with neither FILE nor --kernel nor --policy");
    if (!options.problem.empty() || !options.report.empty() || options.seed || options.quick || options.show_hidden ||
        options.profile || options.policies.IsAskedFor())
      return refuse(
          "--problem, --report, --seed, --quick, --show-hidden and --profile go with --kernel, --episodes, --repeat, "
          "--save-kernels and --out with --policy; --suite has none of them");
    return EvaluateSuite(globals, {.suite = options.suite,
                                   .kernels = options.kernels,
                                   .evaluator = options.evaluator.empty() ? KGRPO_DEFAULT_EVALUATOR : options.evaluator,
                                   .settings = options.settings,
                                   .jobs = options.jobs,
                                   .thorough = options.thorough,
                                   .kernelbench = options.kernelbench || !options.pytorch_times.empty(),
                                   .pytorch_times = options.pytorch_times,
                                   .json = options.json,
                                   .markdown = options.markdown});
  }
  if (options.kernelbench || !options.pytorch_times.empty() || options.markdown)
    return refuse("--as-kernelbench, --pytorch-times and --markdown go with --suite");
  if (options.jobs > 0 && !several) return refuse("--jobs goes with --suite, or with several kernels");
  if (several && (options.dispute_bound || !options.report.empty()))
    return refuse("--report and --dispute-bound are about one kernel");
  if (of_kernel == of_policy) return refuse("eval takes either --kernel F.cu and --problem DIR, or FILE and --policy");
  if (options.dispute_bound && !options.report.empty())
    return refuse("--dispute-bound prints what was counted and writes no report: leave --report out");
  if (!of_kernel && !options.include.empty()) return refuse("--include goes with --kernel");
  if (of_kernel && options.problem.empty())
    return refuse("--kernel needs --problem DIR: what the kernel is to compute");
  if (of_policy && options.file.empty())
    return refuse("--policy needs a pipeline FILE: its coder, evaluator, reward and held-out problems");
  if (of_policy && options.profile)
    return refuse("--profile goes with --kernel; a policy's evaluator profiles by its own option profile");
  if (of_policy && !options.report.empty()) return refuse("--report goes with --kernel: it is about one kernel");
  if (of_policy && (options.seed || options.quick || options.thorough))
    return refuse("--seed, --quick and --thorough go with --kernel; a policy's episodes follow --set seed=N");
  if (of_policy && options.show_hidden)
    return refuse("--show-hidden goes with --kernel: a policy may not know what is hidden");
  if (of_policy && !options.problem.empty())
    return refuse("--problem goes with --kernel; choose problems with --set problems.heldout=[DIR]");
  if (of_policy && options.dispute_bound) return refuse("--dispute-bound goes with --kernel: it is about one kernel");
  if (of_kernel && options.policies.IsAskedFor())
    return refuse("--episodes, --repeat, --save-kernels and --out go with --policy");
  if (several) return EvaluateKernels(globals, options, files);
  return of_kernel ? EvaluateKernel(globals, options) : EvaluatePolicies(globals, options.policies);
}

}  // namespace

void AddEvalCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Judge one kernel, or play a policy on held-out problems");
  command->add_option("FILE", options->file, "A pipeline file; for --kernel, its evaluator is used");
  command
      ->add_option("--kernel", options->kernels_of_problem,
                   "The source to judge; several, or folders of them, get a line each")
      ->type_name("F.cu|DIR...");
  command->add_option("--include", options->include, "A folder of the kernel's own headers, besides the one it lies in")
      ->type_name("DIR")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--problem", options->problem,
                   "The problem that it is to solve: a folder, or a name among FILE's problems or in problems/")
      ->type_name("DIR|NAME");
  command
      ->add_option("--evaluator", options->evaluator,
                   "The evaluator plugin, without FILE (default: " KGRPO_DEFAULT_EVALUATOR ")")
      ->type_name("PLUGIN");
  command->add_option("--seed", options->seed, "Seed of the secret inputs of --kernel (default: 0)")->type_name("N");
  CLI::Option* quick =
      command->add_flag("--quick", options->quick,
                        "With --kernel: judge as in training: fewer inputs, the fast compiler, kept evaluations");
  command
      ->add_flag_callback(
          "--thorough", [options] { options->thorough = true; },
          "Thorough evaluation: the default with --kernel, not with --suite")
      ->excludes(quick);
  command->add_flag("--show-hidden", options->show_hidden,
                    "With --kernel: name the sizes that the problem hides from policy and coder");
  command->add_flag("--profile", options->profile,
                    "With --kernel: add what a profiler counts, where the evaluator has one");
  command->add_flag("--dispute-bound", options->dispute_bound,
                    "With --kernel: compare the problem's `needs` with the counted work");
  command
      ->add_option("--report", options->report, "With --kernel: write all of it as a web page that needs nothing else")
      ->type_name("FILE.html");
  AddPolicyEvalOptions(command, &options->policies);
  command->add_option("--suite", options->suite, "Judge a kernel for each problem in this folder, and count fast_p")
      ->type_name("DIR");
  command->add_option("--kernels", options->kernels, "With --suite: PROBLEM.cu of each; results.jsonl is kept there")
      ->type_name("FOLDER");
  command->add_option("--jobs", options->jobs, "Of several kernels: so many at once (default: as many as cores)")
      ->type_name("N");
  command->add_flag("--as-kernelbench", options->kernelbench,
                    "With --suite: count by KernelBench's rules too, and name each verdict that differs");
  command
      ->add_option("--pytorch-times", options->pytorch_times,
                   "With --as-kernelbench: speedups over PyTorch's times, by a file of KernelBench's results/timing")
      ->type_name("FILE.json");
  command->add_flag("--markdown", options->markdown, "With --suite: print the table as Markdown");
  AddSetOption(command, &options->settings, "Changes one key of FILE; without FILE, an option of the evaluator");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  kgrpo-host eval --kernel mine.cu --problem softmax_long\n"
      "  kgrpo-host eval --kernel mine.cu --problem my_problem/ --seed 2 --show-hidden --json\n"
      "  kgrpo-host eval --kernel a.cu b.cu variants/ --problem softmax_long --jobs 2\n"
      "  kgrpo-host eval --kernel mine.cu --problem problems/softmax_long --report mine.html\n"
      "  kgrpo-host eval --kernel mine.cu --problem problems/softmax_long --evaluator evaluator_cuda --profile\n"
      "  kgrpo-host eval --kernel mine.cu --problem my_problem/ --dispute-bound\n"
      "  kgrpo-host eval --suite kernelbench/ --kernels mine/ --jobs 2 --as-kernelbench\n"
      "  kgrpo-host eval configs/quickstart.yaml --policy runs/quickstart/final --episodes 8\n"
      "  kgrpo-host eval configs/quickstart.yaml --policy uniform --policy runs/a/final --policy runs/b/final\n"
      "  kgrpo-host eval configs/quickstart.yaml --checkpoints runs/quickstart\n"
      "  kgrpo-host eval configs/quickstart.yaml --policy runs/quickstart/final --save-kernels best/");
  command->callback([=, &globals] {
    *action = [=, &globals] {
      options->policies.file = options->file;
      options->policies.settings = options->settings;
      options->policies.json = options->json;
      return Evaluate(globals, *options);
    };
  });
}

}  // namespace kgrpo::cli
