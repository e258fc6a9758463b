#include "eval/command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/evaluation_text.h>
#include <kgrpo/support/number_text.h>  // Format, FormatSeconds
#include "base/cancel.h"
#include "base/default_plugins.h"
#include "base/files.h"  // WriteFileAtomically
#include "base/log.h"
#include "base/worker_pool.h"
#include "cli/command_line.h"
#include "cli/session.h"
#include "common/arguments.h"
#include "common/table.h"
#include "cuda_source/own_headers.h"
#include "eval/kernel_text.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EvalOptions {
  std::vector<std::string> kernels;  // files and folders
  std::string file;                  // a pipeline, whose evaluator is used; or ""
  std::string problem;               // a folder or a name
  std::string evaluator;             // a plugin; "": the pipeline's, or the default
  std::string report;                // an HTML file to write, of one kernel
  std::vector<std::string> settings, include;
  std::optional<uint64_t> seed;  // seed of the secret inputs
  uint64_t jobs = 0;             // kernels at once; 0: as many as cores
  bool quick = false, show_hidden = false, profile = false, dispute_bound = false, json = false;
  std::string format = "text";        // or json, junit, sarif
  bool require_correct = false;       // else exit code 5
  std::optional<double> min_speedup;  // of a correct kernel, likewise

  // One document about all kernels, at the end.
  bool IsDocument() const { return format == "junit" || format == "sarif"; }
};

// Why the kernel fails: what --require or --min-speedup ask for; "" if it does not. `any`: an incorrect kernel fails
// although nothing is asked.
std::string UnmetBy(const EvalOptions& options, const Evaluation& found, bool any = false) {
  if (!found.correct && (any || options.require_correct || options.min_speedup))
    return "verdict " + found.verdict + " where correct is required";
  if (options.min_speedup && found.speedup < *options.min_speedup)
    return Format("speedup %.3g is below the required %.3g", found.speedup, *options.min_speedup);
  return "";
}

// Says on standard error why the kernel fails; the exit code.
int ExitOf(const EvalOptions& options, const std::string& file, const Evaluation& found) {
  const std::string unmet = UnmetBy(options, found);
  if (unmet.empty()) return kFine;
  std::fprintf(stderr, "%s: %s\n", PrintableText(file).c_str(), unmet.c_str());
  return kUnmet;
}

// Words of an evaluator's sentence about a size that the problem hides (docs/judging.md).
constexpr const char* kHiddenSize = "a size that is not shown";

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
  std::string name;  // name of the evaluator's plugin
  std::string folder;
};

Asked AskedOf(Session& session, const EvalOptions& options) {
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  request.evaluator = options.evaluator;
  request.roles = {Role::kEvaluator};
  request.needs_train_problems = false;
  request.ignore_problems = IsFolder(options.problem);
  PipelineConfig config = session.Load(request);
  config.evaluator.options.update(DecidedOptions(session, config.evaluator.plugin, options));
  const std::string folder = PipelineProblem(options.problem, options.file, config);
  session.StartServices(options.file.empty() ? options.seed.value_or(0) : config.seed);
  return {std::move(session.MakeParts(config, request.roles).evaluator), config.evaluator.plugin, folder};
}

Evaluation CandidateOf(Evaluator& evaluator, const Problem& problem, const std::string& source,
                       const EvalOptions& options) {
  return evaluator.Evaluate(problem, source, options.seed.value_or(0), !options.quick, options.show_hidden);
}

// Compares the work that the problem declares with the work counted of the kernel, in the evaluator's words. Uses no
// baseline: if the bound is too high, the reference exceeds it too.
int DisputeBound(const EvalOptions& options, const Asked& asked, const std::string& file, const std::string& source) {
  if (asked.evaluator->Tools().explain_bound == nullptr) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "--dispute-bound: the evaluator " + asked.name +
                                             " does not count what a kernel does; choose one that does by --evaluator "
                                             "PLUGIN");
  }
  const Problem problem = asked.evaluator->OpenProblem(asked.folder);
  const Evaluation candidate = CandidateOf(*asked.evaluator, problem, source, options);
  const auto bound = asked.evaluator->ExplainBound(problem, candidate);
  if (options.json) {
    Json json = {{"problem", problem.name()}, {"kernel", file}};
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
  if (candidate.correct) json["speedup"] = candidate.speedup;
  json["thorough"] = !options.quick;
  json["evaluator"] = evaluator;
  return json;
}

// Returns whether the file may be a kernel: CUDA C++, PTX, or Python with Triton kernels.
bool IsKernelFile(const std::filesystem::path& file) {
  const std::filesystem::path kind = file.extension();
  return kind == ".cu" || kind == ".ptx" || (kind == ".py" && ReadFile(file).find("@triton.jit") != std::string::npos);
}

// The files that the words name: a folder stands for its kernels, in order of their names. Throws KGRPO_ERROR_INVALID
// for a folder without one.
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
      if (IsKernelFile(entry.path())) files.push_back(entry.path().lexically_normal().string());
    }
    if (files.size() == before)
      throw Error(KGRPO_ERROR_INVALID, word + ": the folder has no kernel (.cu, .ptx, .py with @triton.jit)");
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

// Evaluates the files by one evaluator, several at once, and prints a line for each in their order.
int EvaluateKernels(const Globals& globals, const EvalOptions& options, const std::vector<std::string>& files) {
  std::vector<std::string> sources;
  size_t width = 0;
  for (const std::string& file : files) {
    sources.push_back(cuda_source::ReadKernelWithOwnHeaders(file, options.include));
    width = std::max(width, file.size());
  }
  Session session(globals);
  const Asked asked = AskedOf(session, options);
  Evaluator& evaluator = *asked.evaluator;
  const Problem problem = evaluator.OpenProblem(asked.folder);
  const Evaluation baseline =
      evaluator.Baseline(problem, options.seed.value_or(0), !options.quick, options.show_hidden);
  std::vector<std::optional<Evaluation>> judged(files.size());
  std::mutex mutex;
  size_t next = 0;  // the first kernel without a line
  const auto print = [&](size_t i) {
    if (options.IsDocument()) return;
    const Evaluation& candidate = *judged[i];
    if (options.json) {
      const Json json = KernelToJson(files[i], problem, candidate, baseline, options, evaluator.Describe());
      std::printf("%s\n", DumpJson(json).c_str());
    } else {
      const std::string speedup = candidate.correct ? Format("%.3gx", candidate.speedup) : "-";
      std::printf("%-*s  %-14s  %-8s  %-8s  %s\n", static_cast<int>(width), PrintableText(files[i]).c_str(),
                  candidate.verdict.c_str(), candidate.correct ? FormatSeconds(candidate.seconds).c_str() : "-",
                  speedup.c_str(),
                  PrintableText(candidate.diagnosis.substr(0, candidate.diagnosis.find('\n'))).c_str());
    }
    std::fflush(stdout);
  };
  WorkerPool(options.jobs, files.size()).ForEach(files.size(), [&](size_t i) {
    if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "interrupted");
    Evaluation one = CandidateOf(evaluator, problem, sources[i], options);
    one.CompareWith(baseline);
    const std::lock_guard<std::mutex> lock(mutex);
    judged[i] = std::move(one);
    while (next < files.size() && judged[next]) print(next++);
  });
  int code = kFine;
  std::vector<ReportedKernel> reported;
  for (size_t i = 0; i < files.size(); ++i) {
    reported.push_back({files[i], &*judged[i], UnmetBy(options, *judged[i], /*any=*/true)});
    code = std::max(code, ExitOf(options, files[i], *judged[i]));
  }
  if (options.format == "junit") std::printf("%s", JunitReport(problem.name(), reported).c_str());
  if (options.format == "sarif") PrintJson(SarifReport(problem.name(), reported));
  return code;
}

// Evaluates one kernel and prints the whole evidence.
int EvaluateKernel(const Globals& globals, const EvalOptions& options, const std::string& file) {
  std::string shown;  // the file as its author wrote it
  const std::string source = cuda_source::ReadKernelWithOwnHeaders(file, options.include, &shown);
  if (!options.report.empty()) RequireWritable("--report", options.report, "report.html");
  Session session(globals);
  const Asked asked = AskedOf(session, options);
  if (options.dispute_bound) return DisputeBound(options, asked, file, source);
  const auto& [evaluator, name, folder] = asked;
  if (!options.report.empty() && evaluator->Tools().report == nullptr)
    throw Error(KGRPO_ERROR_UNSUPPORTED, "--report: the evaluator " + name + " writes no reports");
  std::optional<Spinner> spinner(std::in_place, "opening the problem and timing its reference");
  const Problem problem = evaluator->OpenProblem(folder);
  const Evaluation baseline =
      evaluator->Baseline(problem, options.seed.value_or(0), !options.quick, options.show_hidden);
  spinner.emplace("compiling, checking and timing " + PrintableText(file));
  Evaluation candidate = CandidateOf(*evaluator, problem, source, options);
  spinner.reset();
  candidate.CompareWith(baseline);
  if (!options.report.empty()) {
    WriteFileAtomically(options.report, evaluator->Report(problem, shown, file, candidate, baseline).value());
  }
  if (!options.json) {
    PrintKernelText(candidate, baseline, problem.name(), shown, evaluator->Describe(), !options.quick, globals.verbose,
                    session.metrics());
    if (!options.show_hidden && candidate.diagnosis.find(kHiddenSize) != std::string::npos)
      std::printf("\nhint       --show-hidden names the size that is not shown\n");
    if (!options.report.empty()) std::printf("\nreport     %s\n", PrintableText(options.report).c_str());
  } else {
    PrintJson(KernelToJson(file, problem, candidate, baseline, options, evaluator->Describe()));
  }
  std::fflush(stdout);
  return ExitOf(options, file, candidate);
}

int Evaluate(const Globals& globals, const EvalOptions& options) {
  const std::vector<std::string> files = KernelFiles(options.kernels);
  const bool of_one = options.dispute_bound || !options.report.empty();
  if (of_one && files.size() > 1) {
    std::fprintf(stderr, "--report and --dispute-bound are about one kernel; see kgrpo-host eval kernel --help\n");
    return kUsage;
  }
  // A folder or --jobs gives a line each, also for one file: a script need not count them.
  if (of_one && options.IsDocument())
    throw Error(KGRPO_ERROR_INVALID, "--format " + options.format + " goes with neither --report nor --dispute-bound");
  if (!of_one && (files.size() > 1 || files != options.kernels || options.jobs > 0 || options.IsDocument()))
    return EvaluateKernels(globals, options, files);
  return EvaluateKernel(globals, options, files.front());
}

}  // namespace

void AddEvalKernel(CLI::App* eval, const Globals& globals, Action* action) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = eval->add_subcommand("kernel", "Evaluate kernels for one problem");
  command
      ->add_option("KERNEL", options->kernels,
                   "Kernel source to evaluate; several, or folders of them, get a line each")
      ->type_name("F.cu|DIR...")
      ->required();
  command
      ->add_option("--problem", options->problem,
                   "The problem that the kernel solves: a folder, or a name among the pipeline's problems or in "
                   "problems/")
      ->type_name("DIR|NAME")
      ->required();
  command->add_option("--pipeline", options->file, "A pipeline file, whose evaluator and problems are used")
      ->type_name("FILE");
  AddIncludeOption(command, &options->include, "the kernel's folder");
  command
      ->add_option("--evaluator", options->evaluator,
                   "The evaluator plugin (default: the pipeline's, or " KGRPO_DEFAULT_EVALUATOR ")")
      ->type_name("PLUGIN");
  command->add_option("--seed", options->seed, "Seed of the secret inputs (default: 0)")->type_name("N");
  CLI::Option* quick =
      command->add_flag("--quick", options->quick, "As in training: fewer inputs, the fast compiler, kept evaluations");
  command
      ->add_flag_callback(
          "--thorough", [] {}, "The default")
      ->excludes(quick);
  command->add_flag("--show-hidden", options->show_hidden,
                    "Name the sizes that the problem hides from policy and coder");
  command->add_flag("--profile", options->profile, "Add profiler counters, if the evaluator has a profiler");
  CLI::Option* dispute = command->add_flag("--dispute-bound", options->dispute_bound,
                                           "Compare the problem's `needs` with the counted work");
  command->add_option("--report", options->report, "Write the evaluation as one self-contained web page")
      ->type_name("FILE.html")
      ->excludes(dispute);
  command->add_option("--jobs", options->jobs, "Kernels evaluated at a time (default: the number of cores)")
      ->type_name("N");
  AddSetOption(command, &options->settings, "Changes one key of the pipeline; without one, an option of the evaluator");
  CLI::Option* json = command->add_flag("--json", options->json, "The same as --format json");
  command
      ->add_option_function<std::string>(
          "--format",
          [options](const std::string& format) {
            options->format = format;
            options->json = format == "json";
          },
          "text, json, or a report for CI: junit, sarif (a kernel that is not correct is a failure there)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json", "junit", "sarif"}))
      ->excludes(json);
  command
      ->add_option_function<std::string>(
          "--require", [options](const std::string&) { options->require_correct = true; },
          "End with exit code 5 unless every kernel is correct")
      ->type_name("correct")
      ->check(CLI::IsMember({"correct"}));
  command
      ->add_option(
          "--min-speedup", options->min_speedup,
          "End with exit code 5 unless every kernel is correct and at least so many times as fast as the reference")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  command->footer(
      "Examples:\n"
      "  kgrpo-host eval kernel mine.cu --problem softmax_long\n"
      "  kgrpo-host eval kernel kernels/ --problem softmax_long --min-speedup 1.1 --format junit > kernels.xml\n"
      "  kgrpo-host eval kernel mine.cu --problem my_problem/ --seed 2 --show-hidden --json\n"
      "  kgrpo-host eval kernel a.cu b.cu variants/ --problem softmax_long --jobs 2\n"
      "  kgrpo-host eval kernel mine.cu --problem problems/softmax_long --report mine.html\n"
      "  kgrpo-host eval kernel mine.cu --problem problems/softmax_long --evaluator evaluator_cuda --profile\n"
      "  kgrpo-host eval kernel mine.cu --problem my_problem/ --dispute-bound");
  command->callback([=, &globals] { *action = [=, &globals] { return Evaluate(globals, *options); }; });
}

}  // namespace kgrpo::cli
