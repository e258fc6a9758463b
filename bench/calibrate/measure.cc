#include "calibrate/measure.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <vector>

#include "calibrate/counted_kernel.h"
#include "calibrate/microbenchmarks.h"
#include "common/cache_folder.h"
#include "common/figures.h"
#include "common/parallel.h"
#include "common/variants.h"
#include "evaluator_cuda/device_evaluator.h"
#include "judge/problem/random.h"

namespace kgrpo::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kNeverAgain = std::numeric_limits<size_t>::max();
constexpr size_t kReachable = 400;  // kernels of a problem to choose from: all of two steps, some of three

// The reference and its variants, of which `count` spread evenly.
std::vector<std::string> Spread(const std::string& reference, size_t count) {
  std::vector<std::string> found = Variants(reference, kReachable - 1);
  found.insert(found.begin(), reference);
  std::vector<std::string> chosen;
  const size_t wanted = std::min(count, found.size());
  for (size_t i = 0; i < wanted; ++i) chosen.push_back(found[i * found.size() / wanted]);
  return chosen;
}

// Counts a measurement of a kernel; a kernel that was not correct is never measured again.
void Count(bool correct, size_t& times) { times = correct && times != kNeverAgain ? times + 1 : kNeverAgain; }

// Number of measurements of each problem,schedule in the file.
std::map<std::string, size_t> AlreadyMeasured(const std::string& csv) {
  std::map<std::string, size_t> done;
  std::ifstream file(csv);
  for (std::string line; std::getline(file, line);) {
    const size_t second = line.find(',', line.find(',') + 1);
    if (second == std::string::npos || line.starts_with("problem,")) continue;
    const std::string verdict = line.substr(second + 1, line.find(',', second + 1) - second - 1);
    Count(IsCorrectVerdict(verdict), done[line.substr(0, second)]);
  }
  return done;
}

struct Candidate {
  const evaluator::OpenProblem* open;
  std::string source, key;
};

}  // namespace

void MeasureParts(const std::string& path) {
  const std::string partial = path + ".partial";
  {
    std::ofstream file(partial);
    file << "name,at,value,unit\n";
    RunMicrobenchmarks([&](const Micro& micro) {
      std::printf("%-36s %8g %12.4f %s\n", micro.name.c_str(), micro.at, micro.value, micro.unit.c_str());
      std::fflush(stdout);
      file << micro.name << ',' << micro.at << ',' << micro.value << ',' << micro.unit << '\n';
    });
    if (!file.flush()) throw Error(KGRPO_ERROR_INTERNAL, partial + ": cannot be written");
  }
  std::filesystem::rename(partial, path);
}

void MeasureKernels(const KernelsToMeasure& wanted) {
  const Clock::time_point begin = Clock::now();
  const std::string cache = CacheFolder("calibrate");
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(wanted.problems)) {
    if (std::filesystem::exists(entry.path() / "problem.yaml")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  if (folders.empty()) throw Error(KGRPO_ERROR_NOT_FOUND, wanted.problems + ": holds no folder with a problem.yaml");
  std::vector<std::unique_ptr<evaluator::OpenProblem>> problems(folders.size());
  InParallel(wanted.threads, 0, folders.size(),
             [&](uint64_t i) { problems[i] = std::make_unique<evaluator::OpenProblem>(folders[i], cache); });

  std::map<std::string, size_t> done = AlreadyMeasured(wanted.csv);
  const size_t known_before = done.size();
  // Goes pass by pass and takes turns among problems, so that a run that ends early has kernels of each. Takes kernels
  // of one problem in groups, because the evaluator keeps only a few references at hand.
  constexpr size_t kGroup = 4;
  std::vector<Candidate> candidates;
  std::vector<std::vector<std::string>> variants;
  for (const auto& open : problems) variants.push_back(Spread(open->problem.reference_source, wanted.sample));
  for (size_t pass = 0; pass < wanted.passes; ++pass) {
    for (size_t first = 0; first < wanted.sample; first += kGroup) {
      for (size_t p = 0; p < problems.size(); ++p) {
        for (size_t i = first; i < std::min(first + kGroup, variants[p].size()); ++i) {
          Candidate candidate{problems[p].get(), variants[p][i],
                              problems[p]->problem.name + "," + ScheduleOf(variants[p][i])};
          if (done[candidate.key] <= pass) candidates.push_back(std::move(candidate));
        }
      }
    }
  }
  evaluator_cuda::DeviceEvaluator::Options options;
  options.compilers = wanted.threads;
  options.compile_cache = cache + "/compiles.sqlite";
  options.timing.memory_bytes = uint64_t{2} << 30;
  evaluator_cuda::DeviceEvaluator evaluator(options);
  const bool begun = std::filesystem::exists(wanted.csv) && std::filesystem::file_size(wanted.csv) > 0;
  std::ofstream file(wanted.csv, std::ios::app);
  if (!begun) file << "problem,schedule,verdict,microseconds\n";
  std::mutex mutex;  // guards the file, `done` and what follows
  size_t measured = 0, late = 0;
  InParallel(wanted.threads, 0, candidates.size(), [&](uint64_t i) {
    if (SecondsSince(begin) > 60 * wanted.minutes) {
      const std::lock_guard lock(mutex);
      ++late;
      return;
    }
    const Candidate& candidate = candidates[i];
    {
      const std::lock_guard lock(mutex);
      if (done[candidate.key] == kNeverAgain) return;
    }
    const auto evaluation = evaluator.Evaluate(*candidate.open, candidate.source, evaluator::SubKey(23, i), false);
    double seconds = evaluation.seconds;
    for (const auto& [name, value] : evaluation.metrics) {
      if (name == "measured_seconds") seconds = value;
    }
    const std::lock_guard lock(mutex);
    Count(evaluation.correct, done[candidate.key]);
    char text[40];
    std::snprintf(text, sizeof text, "%.3f", seconds * 1e6);
    file << candidate.key << ',' << evaluation.verdict << ',' << (evaluation.correct ? text : "") << '\n' << std::flush;
    if (++measured % 50 == 0) std::fprintf(stderr, "%zu of %zu measurements\n", measured, candidates.size());
  });
  std::fprintf(stderr, "%zu measurements, %zu kernels known before, %zu left for want of time\n", measured,
               known_before, late);
}

}  // namespace kgrpo::bench
