#include "eval/suite.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include <spdlog/spdlog.h>

#include <kgrpo/support/metrics.h>
#include <kgrpo/support/sha256.h>
#include "base/cancel.h"
#include "base/log.h"
#include "cli/session.h"
#include "config/problems.h"  // ProblemFolders
#include "cuda_source/own_headers.h"
#include "eval/kernelbench_rules.h"
#include "eval/suite_report.h"
#include "loop/worker_pool.h"
#include "store/files.h"  // ReadFile

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kNotJudged = "not judged";
constexpr const char* kResultFormat = "2";  // version of the results; those of another one are judged again

// A problem of the suite with its kernel.
struct Entry : SuiteEntry {
  std::string folder, source;
  std::unique_ptr<Problem> problem;
  bool known = false;  // from an earlier call
};

// Returns the problem's row of the table: its level, if a trait names one, else its family.
std::string GroupOf(const kgrpo_problem_info& info) {
  for (size_t i = 0; i < info.trait_count; ++i) {
    const std::string trait = Copy(info.traits[i]);
    if (trait.find(" level ") != std::string::npos) return trait;
  }
  return Copy(info.family);
}

// Returns PyTorch's time if the file has one and the problem is timed at the size of that time.
std::optional<double> PytorchSeconds(const PytorchTimes& times, const kgrpo_problem_info& info) {
  for (size_t i = 0; i < info.trait_count; ++i) {
    if (Copy(info.traits[i]) == "small sizes") return std::nullopt;
  }
  return times.SecondsOf(Copy(info.name));
}

bool IsRefused(const kgrpo_problem_info& info) {
  return info.refused.size > 0;
}

// Digest of all files of a problem: problem.yaml, its kernels, oracles and tapes.
std::string DigestOfFolder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::string digest;
  for (const fs::path& file : files)
    digest = Sha256OfParts({digest, file.lexically_relative(folder).string(), ReadFile(file)});
  return digest;
}

// True if a busy machine may have caused the result, of the kernel or of the problem's reference; such kernels are
// judged again.
bool OfTheMoment(const std::optional<SuiteResult>& result) {
  return result && (result->verdict == "timeout" || result->verdict == "interference" || result->verdict == kNotJudged);
}

// True if the file's last line has no newline.
bool EndsWithinALine(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream || stream.tellg() <= 0) return false;
  stream.seekg(-1, std::ios::end);
  return stream.get() != '\n';
}

// Returns results of earlier calls by key, without those that OfTheMoment excludes. Skips a line that a killed process
// left unfinished.
using KnownResults = std::map<std::string, std::pair<SuiteResult, std::optional<SuiteResult>>>;
KnownResults ReadResults(const fs::path& file) {
  KnownResults results;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("key")) continue;
    std::optional<SuiteResult> published;
    if (json.contains("as_kernelbench")) published = SuiteResultFromJson(json["as_kernelbench"]);
    SuiteResult result = SuiteResultFromJson(json);
    if (OfTheMoment(result) || OfTheMoment(published)) continue;
    results[json["key"].get<std::string>()] = {std::move(result), std::move(published)};
  }
  return results;
}

// Judges the kernel and fills in `result`, which already has problem and group. Without `pytorch` the speedup is over
// the reference. With `pytorch` it is over PyTorch's time: that of the file, else that measured by the evaluator, else
// the reference's time.
void Judge(Evaluator& evaluator, Problem& problem, const std::string& source, bool thorough,
           const PytorchTimes* pytorch, SuiteResult& result) {
  Evaluation found;
  try {
    found = evaluator.Evaluate(problem, source, 0, thorough);
  } catch (const Error& error) {
    // A reference that does not work on this device must not end the suite.
    if (ExitCodeOf(error.code()) != kBadInput) throw;
    result.verdict = kNotJudged;
    result.diagnosis = error.what();
    return;
  }
  result.verdict = found.verdict;
  result.compiled = found.compiled;
  result.correct = found.correct;
  result.diagnosis = found.diagnosis;
  if (!found.correct) return;
  result.seconds = found.seconds;
  result.modelled = found.modelled;
  if (pytorch != nullptr) result.pytorch_seconds = PytorchSeconds(*pytorch, problem.info());
  result.pytorch_listed = result.pytorch_seconds.has_value();
  try {
    double compared = result.pytorch_seconds.value_or(0);
    if (!result.pytorch_listed) {
      const Evaluation baseline = evaluator.Baseline(problem);
      if (pytorch != nullptr) result.pytorch_seconds = ValueOf(baseline.metrics, "pytorch_seconds");
      compared = result.pytorch_seconds.value_or(baseline.seconds);
    }
    if (found.seconds > 0) result.speedup = compared / found.seconds;
  } catch (const Error& error) {
    // Without a usable reference there is no speedup; the kernel still counts as correct.
    if (ExitCodeOf(error.code()) != kBadInput) throw;
  }
}

// Warns of kernels that are not judged, because no problem has their name.
void WarnOfOtherKernels(const fs::path& kernels, const std::vector<Entry>& entries) {
  constexpr size_t kMostNamed = 10;
  std::vector<std::string> others, expected;
  for (const fs::directory_entry& file : fs::directory_iterator(kernels)) {
    if (file.path().extension() != ".cu") continue;
    const bool known = std::ranges::any_of(
        entries, [&](const Entry& entry) { return entry.result.problem == file.path().stem().string(); });
    if (!known) others.push_back(file.path().filename().string());
  }
  if (others.empty()) return;
  for (const Entry& entry : entries) {
    if (entry.source.empty() && !IsRefused(entry.problem->info())) expected.push_back(entry.result.problem + ".cu");
  }
  const auto listed = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    std::string list;
    for (size_t i = 0; i < names.size() && i < kMostNamed; ++i) list += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kMostNamed) list += " and " + std::to_string(names.size() - kMostNamed) + " more";
    return list;
  };
  spdlog::warn("{}: not judged, as no problem of the suite has the name: {}; {}", kernels.string(),
               PrintableText(listed(others)),
               expected.empty() ? "every problem has its kernel" : "expected: " + listed(expected));
}

}  // namespace

std::string ResultsFile(const SuiteOptions& options) {
  return (fs::path(options.kernels) / "results.jsonl").string();
}

namespace {

// Evaluates every kernel that has no result yet, prints the table, and keeps the results in KERNELS/results.jsonl.
int EvaluateSuite(const Globals& globals, const SuiteOptions& options) {
  const fs::path kernels(options.kernels);
  if (!fs::is_directory(kernels))
    throw Error(KGRPO_ERROR_NOT_FOUND,
                "--kernels " + options.kernels + ": there is no such folder; it holds PROBLEM.cu");
  const std::vector<std::string> folders = ProblemFolders(options.suite);
  Session session(globals);
  session.StartServices(0);
  const std::unique_ptr<Evaluator> evaluator =
      session.MakeEvaluator(options.evaluator, OptionsFromSettings(options.settings));
  const PytorchTimes pytorch = options.pytorch_times.empty() ? PytorchTimes() : PytorchTimes(options.pytorch_times);
  const std::string pytorch_text = options.pytorch_times.empty() ? "" : ReadFile(options.pytorch_times);
  std::unique_ptr<Evaluator> as_kernelbench;
  if (options.kernelbench) {
    std::vector<std::string> settings = options.settings;
    settings.emplace_back("rules=kernelbench");
    as_kernelbench = session.MakeEvaluator(options.evaluator, OptionsFromSettings(settings));
  }
  std::string settings;
  for (const std::string& setting : options.settings) settings = Sha256OfParts({settings, setting});
  const fs::path results_file = ResultsFile(options);
  const KnownResults known = ReadResults(results_file);

  std::vector<Entry> entries(folders.size());
  WorkerPool pool(options.jobs, folders.size());
  pool.ForEach(folders.size(), [&](size_t i) {
    Entry& entry = entries[i];
    entry.folder = folders[i];
    entry.problem = std::make_unique<Problem>(evaluator->OpenProblem(folders[i]));
    const kgrpo_problem_info& info = entry.problem->info();
    entry.result.problem = Copy(info.name);
    entry.result.group = GroupOf(info);
    entry.result.verdict = kNoKernel;
    entry.kernel_file = (kernels / (entry.result.problem + ".cu")).string();
    if (!fs::exists(entry.kernel_file) || IsRefused(info)) return;
    entry.source = cuda_source::ReadKernelWithOwnHeaders(entry.kernel_file, options.include);
    entry.key = Sha256OfParts({entry.source, DigestOfFolder(folders[i]), evaluator->Describe(), settings,
                               options.thorough ? "thorough" : "quick", options.kernelbench ? "kernelbench" : "",
                               kResultFormat, pytorch_text})
                    .substr(0, 32);
    if (const auto found = known.find(entry.key); found != known.end()) {
      std::tie(entry.result, entry.published) = found->second;
      entry.known = true;
    }
  });
  WarnOfOtherKernels(kernels, entries);
  const size_t before = entries.size();
  std::erase_if(entries, [](const Entry& entry) { return IsRefused(entry.problem->info()); });
  const size_t refused = before - entries.size();

  std::vector<size_t> open;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].source.empty() && !entries[i].known) open.push_back(i);
  }
  std::mutex mutex;
  size_t done = 0;
  const bool terminal = isatty(STDERR_FILENO) != 0 && !globals.quiet;
  std::ofstream file(results_file, std::ios::app);
  const auto require_written = [&] {
    if (!file) throw Error(KGRPO_ERROR_UNAVAILABLE, results_file.string() + ": cannot be written; is there room?");
  };
  require_written();
  if (EndsWithinALine(results_file)) file << '\n';  // a killed process's: the next result gets a line of its own
  pool.ForEach(open.size(), [&](size_t i) {
    if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "interrupted; the same command continues from here");
    Entry& entry = entries[open[i]];
    if (as_kernelbench) {
      SuiteResult& published = entry.published.emplace(entry.result);
      Problem problem = as_kernelbench->OpenProblem(entry.folder);
      Judge(*as_kernelbench, problem, entry.source, false, &pytorch, published);
      published.correct = CountsAsCorrect(published.verdict);
    }
    Judge(*evaluator, *entry.problem, entry.source, options.thorough, nullptr, entry.result);
    const std::lock_guard<std::mutex> lock(mutex);
    file << SuiteEntryToJson(entry).dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    require_written();
    if (terminal) std::fprintf(stderr, "\r%zu/%zu %-60.60s", ++done, open.size(), entry.result.problem.c_str());
  });
  if (terminal && !open.empty()) std::fprintf(stderr, "\r%-80s\r", "");
  PrintSuite(options, {entries.begin(), entries.end()}, refused, evaluator->Describe(), pytorch.hardware());
  return kFine;
}

}  // namespace

void AddEvalSuite(CLI::App* eval, const Globals& globals, Action* action) {
  auto options = std::make_shared<SuiteOptions>();
  options->evaluator = KGRPO_DEFAULT_EVALUATOR;
  CLI::App* command = eval->add_subcommand("suite", "Evaluate a kernel for each problem of a folder, and count fast_p");
  command->add_option("DIR", options->suite, "The folder of problems")->required();
  command->add_option("--kernels", options->kernels, "PROBLEM.cu of each; results.jsonl is kept there")
      ->type_name("FOLDER")
      ->required();
  command->add_option("--evaluator", options->evaluator, "The evaluator plugin")
      ->type_name("PLUGIN")
      ->capture_default_str();
  AddIncludeOption(command, &options->include, "each kernel's folder");
  command->add_flag("--thorough", options->thorough, "Thorough evaluation: all inputs, the optimising compiler");
  command->add_option("--jobs", options->jobs, "Kernels evaluated at a time (default: the number of cores)")
      ->type_name("N");
  command->add_flag("--as-kernelbench", options->kernelbench,
                    "Count by KernelBench's rules too, and name each verdict that differs");
  command
      ->add_option("--pytorch-times", options->pytorch_times,
                   "Speedups over PyTorch's times, by a file of KernelBench's results/timing; as --as-kernelbench")
      ->type_name("FILE.json");
  AddSetOption(command, &options->settings, "Changes an option of the evaluator");
  CLI::Option* json = command->add_flag("--json", options->json, "Print as JSON");
  command->add_flag("--markdown", options->markdown, "Print the table as Markdown")->excludes(json);
  command->footer("Example:\n  kgrpo-host eval suite kernelbench/ --kernels mine/ --jobs 2 --as-kernelbench");
  command->callback([=, &globals] {
    *action = [=, &globals] {
      options->kernelbench = options->kernelbench || !options->pytorch_times.empty();
      return EvaluateSuite(globals, *options);
    };
  });
}

}  // namespace kgrpo::cli
