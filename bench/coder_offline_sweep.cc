// coder_offline_sweep: measures what each technique gains on each problem, by an evaluator (evaluator_sim).
//
//   coder_offline_sweep [--problems DIR] [--evaluator NAME] [--threads N] [--cap 8] [--no-references] [name ...]
//
// Prints for each problem the speedup (or verdict) of each suggestion on the starting kernel, and the greedy sequence
// of four. Then prints the mean reward a round of simple strategies, on the training and on the held-out problems:
// random suggestions, always the single best one, the best fixed sequence of four (by coordinate ascent on the training
// problems), and the greedy choice for each problem. The evaluator caches its evaluations, so that a second run takes
// seconds. Exit codes: 0 every kernel is correct or uses a technique documented as bad, 1 some do not, 2 bad usage.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <kgrpo/sdk/text.h>
#include "coder_offline/coder.h"
#include "coder_offline/techniques.h"

#include "base/services.h"
#include "plugin/instances.h"
#include "plugin/loader.h"

namespace {

using kgrpo::Evaluation;
using kgrpo::Evaluator;
using kgrpo::coder_offline::Implement;
using kgrpo::coder_offline::Suggestions;

constexpr int kRounds = 4;
constexpr double kNotCompiled = -1.0, kWrong = -0.5, kCorrect = 0.3, kNotApplicable = 0.0;  // reward_speedup's defaults

// True for techniques that docs/coder_offline.md calls bad for some kernels: a failure with one of them is expected.
bool HonestlyBad(const std::string& schedule) {
  for (const char* option :
       {" half", " one_pass", " tile=64", " register=8", " block=1024", " block=512", " fast", " tile"}) {
    if (schedule.find(option) != std::string::npos) return true;
  }
  return false;
}

std::string ScheduleOf(const std::string& source) {
  const size_t at = source.find("// schedule:");
  return source.substr(at + 13, source.find('\n', at) - at - 13);
}

// One problem, with every evaluation made for it so far.
struct Subject {
  std::string name;
  std::string split;
  std::unique_ptr<kgrpo::Problem> open;
  std::string reference;
  double baseline = 0;
  std::map<std::string, Evaluation> judged;  // by source

  double Speedup(const Evaluation& evaluation) const { return evaluation.correct ? baseline / evaluation.seconds : 0; }
};

class Sweep {
 public:
  Sweep(const std::string& plugin, size_t threads, double cap)
      : threads_(threads), cap_(cap), services_(kgrpo::HostOptions{}), loader_(kgrpo::PluginDirectories({})) {
    const auto& library = loader_.Load(plugin);
    evaluator_ = std::make_unique<Evaluator>(library.Table<kgrpo_evaluator_interface>(kgrpo::Role::kEvaluator),
                                             services_.ForInstance("evaluator", library.name()),
                                             nlohmann::json{{"workers", threads}});
  }

  Subject Open(const std::filesystem::path& folder) {
    Subject subject;
    subject.name = folder.filename();
    subject.open = std::make_unique<kgrpo::Problem>(evaluator_->OpenProblem(folder));
    subject.split = kgrpo::Copy(subject.open->info().split);
    subject.reference = kgrpo::Copy(subject.open->info().source);
    const Evaluation baseline = evaluator_->Baseline(*subject.open);
    subject.baseline = baseline.seconds;
    subject.judged[subject.reference] = baseline;
    return subject;
  }

  // Evaluates the sources that are not evaluated yet, `threads_` at a time.
  void Judge(Subject& subject, const std::vector<std::string>& sources) {
    std::vector<std::string> missing;
    for (const std::string& source : sources) {
      if (subject.judged.count(source) == 0 && std::find(missing.begin(), missing.end(), source) == missing.end()) {
        missing.push_back(source);
      }
    }
    std::atomic<size_t> next{0};
    std::mutex mutex;
    std::vector<std::thread> workers;
    for (size_t t = 0; t < threads_; ++t) {
      workers.emplace_back([&] {
        for (size_t i = next++; i < missing.size(); i = next++) {
          Evaluation evaluation = evaluator_->Evaluate(*subject.open, missing[i], 0, false);
          const std::lock_guard<std::mutex> lock(mutex);
          subject.judged[missing[i]] = std::move(evaluation);
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    for (const std::string& source : missing) {
      const Evaluation& evaluation = subject.judged.at(source);
      if (evaluation.correct || HonestlyBad(ScheduleOf(source))) continue;
      std::printf("UNEXPECTED %s: %s: %s\n", subject.name.c_str(), ScheduleOf(source).c_str(),
                  evaluation.diagnosis.c_str());
      ++unexpected_;
    }
  }

  // The kernel that each suggestion gives for `source`; empty if it does not apply.
  static std::vector<std::string> Steps(const std::string& source) {
    std::vector<std::string> steps;
    for (const std::string& suggestion : Suggestions()) steps.push_back(Implement(source, suggestion).source);
    return steps;
  }

  double Reward(const Subject& subject, const std::string& source) const {
    if (source.empty()) return kNotApplicable;
    const Evaluation& evaluation = subject.judged.at(source);
    if (!evaluation.compiled) return kNotCompiled;
    return evaluation.correct ? kCorrect + std::min(cap_, subject.Speedup(evaluation)) : kWrong;
  }

  // The mean reward of a round if `choose(round, source)` gives the suggestion's index. After a failed kernel the next
  // round starts from the kernel before it.
  template <typename Choose>
  double Episode(Subject& subject, Choose choose) {
    std::string source = subject.reference;
    double total = 0;
    for (int round = 0; round < kRounds; ++round) {
      const std::string next = Implement(source, Suggestions()[choose(round, source)]).source;
      if (!next.empty()) Judge(subject, {next});
      total += Reward(subject, next);
      if (!next.empty() && subject.judged.at(next).correct) source = next;
    }
    return total / kRounds;
  }

  // The index of the suggestion with the highest reward for `source`.
  size_t Best(Subject& subject, const std::string& source) {
    const std::vector<std::string> steps = Steps(source);
    std::vector<std::string> sources;
    for (const std::string& step : steps) {
      if (!step.empty()) sources.push_back(step);
    }
    Judge(subject, sources);
    size_t best = 0;
    for (size_t i = 1; i < steps.size(); ++i) {
      if (Reward(subject, steps[i]) > Reward(subject, steps[best])) best = i;
    }
    return best;
  }

  int unexpected() const { return unexpected_; }

 private:
  size_t threads_;
  double cap_;
  kgrpo::HostServices services_;
  kgrpo::PluginLoader loader_;
  std::unique_ptr<Evaluator> evaluator_;
  int unexpected_ = 0;
};

void PrintTable(Sweep& sweep, Subject& subject) {
  const std::vector<std::string> steps = Sweep::Steps(subject.reference);
  std::vector<std::string> sources;
  for (const std::string& step : steps) {
    if (!step.empty()) sources.push_back(step);
  }
  sweep.Judge(subject, sources);
  std::printf("%s (%s): %.1f us\n", subject.name.c_str(), subject.split.c_str(), subject.baseline * 1e6);
  std::vector<std::pair<double, std::string>> lines;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty()) continue;
    const Evaluation& evaluation = subject.judged.at(steps[i]);
    char text[200];
    if (evaluation.correct) {
      std::snprintf(text, sizeof text, "%s %.2f", Suggestions()[i].c_str(), subject.Speedup(evaluation));
    } else {
      std::snprintf(text, sizeof text, "%s %s", Suggestions()[i].c_str(), evaluation.verdict.c_str());
    }
    lines.emplace_back(subject.Speedup(evaluation), text);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < lines.size(); ++i)
    std::printf("%s%s", i == 0 ? "  one step: " : "; ", lines[i].second.c_str());
  std::printf("\n  greedy:");
  std::string source = subject.reference;
  for (int round = 0; round < kRounds; ++round) {
    const size_t best = sweep.Best(subject, source);
    source = Implement(source, Suggestions()[best]).source;
    if (source.empty()) break;
    std::printf(" %s -> %.2f;", Suggestions()[best].c_str(), subject.Speedup(subject.judged.at(source)));
    if (!subject.judged.at(source).correct) break;
  }
  std::printf("\n");
  std::fflush(stdout);
}

template <typename Value>
double Mean(std::vector<Subject>& subjects, const std::string& split, Value value) {
  double sum = 0;
  int count = 0;
  for (Subject& subject : subjects) {
    if (subject.split != split) continue;
    sum += value(subject);
    ++count;
  }
  return count > 0 ? sum / count : NAN;
}

void PrintReferences(Sweep& sweep, std::vector<Subject>& subjects) {
  const size_t count = Suggestions().size();
  const auto print = [&](const std::string& what, auto value) {
    const double train = Mean(subjects, "train", value);
    std::printf("%-28s train %.2f  held-out %.2f\n", what.c_str(), train, Mean(subjects, "heldout", value));
    std::fflush(stdout);
    return train;
  };
  print("uniform", [&](Subject& subject) {
    std::mt19937 random(1);
    double sum = 0;
    for (int episode = 0; episode < 16; ++episode) {
      sum += sweep.Episode(subject, [&](int, const std::string&) { return random() % count; });
    }
    return sum / 16;
  });
  size_t best_single = 0;
  double best_value = -INFINITY;
  for (size_t i = 0; i < count; ++i) {
    const double value = Mean(subjects, "train", [&](Subject& subject) {
      return sweep.Episode(subject, [i](int, const std::string&) { return i; });
    });
    if (value > best_value) best_value = value, best_single = i;
  }
  print("always \"" + Suggestions()[best_single] + "\"",
        [&](Subject& subject) { return sweep.Episode(subject, [&](int, const std::string&) { return best_single; }); });
  std::vector<size_t> fixed(kRounds, best_single);
  for (bool changed = true; changed;) {  // coordinate ascent over the four places
    changed = false;
    for (int place = 0; place < kRounds; ++place) {
      double best = -INFINITY;
      size_t choice = fixed[place];
      for (size_t i = 0; i < count; ++i) {
        std::vector<size_t> tried = fixed;
        tried[place] = i;
        const double value = Mean(subjects, "train", [&](Subject& subject) {
          return sweep.Episode(subject, [&](int round, const std::string&) { return tried[round]; });
        });
        if (value > best + 1e-9) best = value, choice = i;
      }
      if (choice != fixed[place]) changed = true, fixed[place] = choice;
    }
  }
  std::string names;
  for (const size_t i : fixed) names += (names.empty() ? "" : ", ") + Suggestions()[i];
  std::printf("best fixed four: %s\n", names.c_str());
  print("best fixed four", [&](Subject& subject) {
    return sweep.Episode(subject, [&](int round, const std::string&) { return fixed[round]; });
  });
  print("greedy by problem", [&](Subject& subject) {
    return sweep.Episode(subject, [&](int, const std::string& source) { return sweep.Best(subject, source); });
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path problems = "problems";
  std::string evaluator = "evaluator_sim";
  size_t threads = std::max(1u, std::thread::hardware_concurrency());
  double cap = 8;
  bool references = true;
  std::set<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (argument == "--problems") {
      problems = value();
    } else if (argument == "--evaluator") {
      evaluator = value();
    } else if (argument == "--threads") {
      threads = std::max(1, std::atoi(value().c_str()));
    } else if (argument == "--cap") {
      cap = std::atof(value().c_str());
    } else if (argument == "--no-references") {
      references = false;
    } else if (argument.rfind("--", 0) == 0) {
      std::cerr << "usage: coder_offline_sweep [--problems DIR] [--evaluator NAME] [--threads N] [--cap X] "
                   "[--no-references] [name ...]\n";
      return 2;
    } else {
      names.insert(argument);
    }
  }
  try {
    Sweep sweep(evaluator, threads, cap);
    std::vector<std::filesystem::path> folders;
    for (const auto& entry : std::filesystem::directory_iterator(problems)) {
      if (names.empty() || names.count(entry.path().filename())) folders.push_back(entry.path());
    }
    std::sort(folders.begin(), folders.end());
    std::vector<Subject> subjects;
    for (const auto& folder : folders) {
      subjects.push_back(sweep.Open(folder));
      PrintTable(sweep, subjects.back());
    }
    if (references) PrintReferences(sweep, subjects);
    std::printf("%d unexpected verdicts\n", sweep.unexpected());
    return sweep.unexpected() == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "coder_offline_sweep: " << error.what() << "\n";
    return 2;
  }
}
