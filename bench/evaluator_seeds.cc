// Is an honest kernel ever accused, or a cheat ever missed? Judges every reference of problems/ and every honest kernel
// of tests/judging by several keys of the secret inputs, and every cheat by one.
//
//   evaluator_seeds [--evaluator sim|cuda] [--seeds 5] [--first 1] [--thorough] [--threads 2] [--filter REGEX]
//
// Prints a line a kernel as soon as all of its keys are judged: "ok" or "AMISS", its name, the verdicts, the largest of
// its errors in units of the tolerance, seconds; below it the diagnosis of each verdict that its file does not expect.
// The last line counts. Exits with 1 if a verdict was amiss. Times are not looked at: a GPU measures a few rounds only.
#include <kgrpo/sdk/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <string>
#include <vector>

#include "common/cache_folder.h"
#include "common/command.h"
#include "common/figures.h"
#include "common/parallel.h"
#include "evaluator_cuda/device_evaluators.h"
#include "evaluator_sim/kernel_evaluator.h"
#include "judge/problem/random.h"
#include "judging/catalogue.h"

namespace {

using Clock = std::chrono::steady_clock;
using kgrpo::evaluator::Backend;
using kgrpo::evaluator::KernelEvaluation;
using kgrpo::evaluator::OpenProblem;
using kgrpo::judging::Entry;

struct Arguments {
  std::string evaluator = "sim", filter;
  uint64_t seeds = 5, first = 1;
  size_t threads = 2;
  bool thorough = false;
};

// One kernel, and what is known of it so far.
struct Subject {
  Entry entry;
  const OpenProblem* open = nullptr;
  uint64_t seeds = 1, judged = 0;
  std::map<std::string, int> verdicts;
  double worst = 0, seconds = 0;
  std::string amiss;
};

std::unique_ptr<Backend> MakeEvaluator(const Arguments& arguments, const std::string& cache) {
  const auto set = [&](kgrpo::evaluator::BackendOptions& options) {
    options.compile_cache = cache + "/compiled.sqlite";
    options.compile_seconds = 20;
  };
  if (arguments.evaluator == "sim") {
    kgrpo::evaluator_sim::KernelEvaluator::Options options;
    set(options);
    options.concurrency = arguments.threads;
    return std::make_unique<kgrpo::evaluator_sim::KernelEvaluator>(options);
  }
  kgrpo::evaluator_cuda::DeviceEvaluator::Options options;
  set(options);
  options.compilers = arguments.threads;
  options.call_seconds = 3;
  options.timing.memory_bytes = uint64_t{512} << 20;
  options.timing.fewest_rounds = 3;
  options.timing.budget_seconds = 0.02;
  return std::make_unique<kgrpo::evaluator_cuda::DeviceEvaluators>(options, std::vector<int>{0});
}

std::vector<Subject> Subjects(const Arguments& arguments) {
  std::vector<Entry> entries;
  for (const auto& folder : std::filesystem::directory_iterator(std::string(KGRPO_SOURCE_DIR) + "/problems")) {
    if (!std::filesystem::exists(folder.path() / "reference.cu")) continue;
    Entry entry;
    entry.name = "problems/" + folder.path().filename().string();
    entry.problem = folder.path().string();
    entry.verdicts[arguments.evaluator] = {"correct"};
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  const std::vector<Entry>& known = kgrpo::judging::Catalogue();
  entries.insert(entries.end(), known.begin(), known.end());
  const std::regex filter(arguments.filter);
  std::vector<Subject> subjects;
  for (Entry& entry : entries) {
    if (!std::regex_search(entry.name, filter)) continue;
    Subject subject;
    subject.seeds = entry.is_cheat ? 1 : arguments.seeds;
    subject.entry = std::move(entry);
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

void Add(const KernelEvaluation& evaluation, uint64_t seed, const std::string& evaluator, Subject* subject) {
  ++subject->judged;
  ++subject->verdicts[evaluation.verdict];
  for (const auto& [name, value] : evaluation.metrics) {
    if (name.starts_with("worst_error/")) subject->worst = std::max(subject->worst, value);
  }
  const std::vector<std::string>& wanted = subject->entry.verdicts.at(evaluator);
  if (std::find(wanted.begin(), wanted.end(), evaluation.verdict) != wanted.end()) return;
  std::string text = evaluation.diagnosis.substr(0, 600);
  std::replace(text.begin(), text.end(), '\n', ' ');
  subject->amiss += "  key " + std::to_string(seed) + ": " + evaluation.verdict + ": " + text + "\n";
}

bool Judge(const Arguments& arguments) {
  const std::string cache = kgrpo::bench::CacheFolder("evaluator-seeds");
  const std::unique_ptr<Backend> evaluator = MakeEvaluator(arguments, cache);
  std::vector<Subject> subjects = Subjects(arguments);
  std::map<std::string, std::unique_ptr<const OpenProblem>> problems;
  kgrpo::evaluator::EvaluatorOptions open_options;
  open_options.cache_directory = cache;
  std::vector<std::pair<size_t, uint64_t>> tasks;
  for (size_t s = 0; s < subjects.size(); ++s) {
    Subject& subject = subjects[s];
    std::unique_ptr<const OpenProblem>& open = problems[subject.entry.problem];
    if (!open) open = evaluator->Open(kgrpo::evaluator::LoadProblem(subject.entry.problem), open_options);
    subject.open = open.get();
    if (subject.entry.source.empty()) subject.entry.source = open->problem.reference_source;
    for (uint64_t i = 0; i < subject.seeds; ++i) tasks.emplace_back(s, arguments.first + i);
  }
  std::printf("# %s\n", evaluator->Describe().c_str());
  std::mutex mutex;  // guards the output and the subjects
  size_t amiss = 0;
  const Clock::time_point start = Clock::now();
  kgrpo::bench::InParallel(arguments.threads, 0, tasks.size(), [&](uint64_t i) {
    const auto [s, seed] = tasks[i];
    Subject& subject = subjects[s];
    const Clock::time_point begin = Clock::now();
    const KernelEvaluation evaluation =
        evaluator->Evaluate(*subject.open, subject.entry.source, kgrpo::evaluator::SubKey(0x5eed, seed),
                            arguments.thorough, /*show_hidden=*/true);
    const std::lock_guard lock(mutex);
    subject.seconds += kgrpo::bench::SecondsSince(begin);
    Add(evaluation, seed, arguments.evaluator, &subject);
    if (subject.judged < subject.seeds) return;
    std::printf("%s %s", subject.amiss.empty() ? "ok" : "AMISS", subject.entry.name.c_str());
    for (const auto& [verdict, count] : subject.verdicts) std::printf(" %d x %s", count, verdict.c_str());
    std::printf(" error %.3g %.2f s\n%s", subject.worst, subject.seconds, subject.amiss.c_str());
    std::fflush(stdout);
    amiss += subject.amiss.empty() ? 0 : 1;
  });
  std::printf("# %zu kernels, %zu evaluations, %zu kernels amiss, %.0f s\n", subjects.size(), tasks.size(), amiss,
              kgrpo::bench::SecondsSince(start));
  return amiss == 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kgrpo::bench;
  Arguments arguments;
  CLI::App app("Judges honest kernels by several keys, and cheats by one.", "evaluator_seeds");
  app.add_option("--evaluator", arguments.evaluator, "sim or cuda")
      ->check(CLI::IsMember({"sim", "cuda"}))
      ->capture_default_str();
  app.add_option("--seeds", arguments.seeds, "Keys of an honest kernel")->capture_default_str();
  app.add_option("--first", arguments.first, "The first of them")->capture_default_str();
  app.add_option("--filter", arguments.filter, "Only kernels with such names");
  app.add_flag("--thorough", arguments.thorough, "Thorough evaluations");
  AddThreads(app, arguments.threads);
  return RunCommand(app, argc, argv, [&] { return Judge(arguments); });
}
