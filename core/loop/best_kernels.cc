#include "loop/best_kernels.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/evaluation_json.h>
#include <kgrpo/support/sha256.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "base/files.h"
#include "base/keyed.h"
#include "loop/round_faults.h"

namespace kgrpo {
namespace {

// Most kernels of one problem that wait for a thorough evaluation: if it refutes the fastest, the next one is judged.
constexpr size_t kCandidates = 16;

}  // namespace

BestKernels::BestKernels(const ProblemSet& problems, PipelineParts& parts, WorkerPool& pool, uint64_t seed,
                         std::map<std::string, BestKernel> best, std::set<std::pair<std::string, std::string>> refuted)
    : problems_(problems),
      parts_(parts),
      pool_(pool),
      seed_(seed),
      best_(std::move(best)),
      refuted_(std::move(refuted)) {}

BestKernels::~BestKernels() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return in_flight_ == 0; });
}

void BestKernels::Add(uint64_t step, const std::vector<TrajectoryRecord>& trajectories) {
  for (const TrajectoryRecord& trajectory : trajectories) {
    const OpenProblem& problem = problems_[trajectory.problem];
    const auto known = best_.find(problem.name);
    const double to_beat = known == best_.end() ? 1 : known->second.speedup;
    std::vector<std::string> suggestions;
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (round.applied) suggestions.push_back(round.suggestion);
      if (round.speedup <= to_beat || refuted_.contains({problem.name, round.answer.source})) continue;
      if (known != best_.end() && known->second.source == round.answer.source) continue;
      std::vector<BestKernel>& of_problem = pending_[trajectory.problem];
      const bool there = std::any_of(of_problem.begin(), of_problem.end(),
                                     [&](const BestKernel& k) { return k.source == round.answer.source; });
      if (there) continue;
      of_problem.push_back({problem.name, round.answer.source, step, trajectory.trajectory, round.round,
                            *round.evaluation, problem.baseline, round.speedup, suggestions});
    }
  }
  for (auto& [problem, of_problem] : pending_) {
    std::stable_sort(of_problem.begin(), of_problem.end(),
                     [](const BestKernel& a, const BestKernel& b) { return a.speedup > b.speedup; });
    if (of_problem.size() > kCandidates) of_problem.resize(kCandidates);
  }
}

void BestKernels::Start() {
  std::map<size_t, std::vector<BestKernel>> pending = std::exchange(pending_, {});
  {
    const std::lock_guard lock(mutex_);
    in_flight_ += pending.size();
    started_ = true;
  }
  for (auto& [problem, of_problem] : pending) {
    pool_.Submit([this, problem = problem, of_problem = std::move(of_problem)]() mutable {
      std::exception_ptr failure;
      try {
        Judge(problem, std::move(of_problem));
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      if (failure && !failure_) failure_ = failure;
      --in_flight_;
      done_.notify_one();
    });
  }
}

void BestKernels::Judge(size_t problem_index, std::vector<BestKernel> candidates) {
  const OpenProblem& problem = problems_[problem_index];
  double to_beat = 1;
  if (const auto known = best_.find(problem.name); known != best_.end()) to_beat = known->second.speedup;
  for (auto next = candidates.begin(); next != candidates.end(); ++next) {
    BestKernel& kernel = *next;
    if (parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    // Other inputs than the ones it was found with.
    const uint64_t seed = Keyed(seed_, "thorough inputs/" + problem.name, {kernel.step}, 0);
    try {
      kernel.evaluation = parts_.evaluator->Evaluate(problem.problem, kernel.source, seed, true);
    } catch (const Error& error) {
      RequireFailsOneRound(RoundPart::kEvaluator, error, parts_.cancelled());
      if (IsLasting(error.code()))
        spdlog::warn("{}: a kernel of step {} is not judged thoroughly, so it does not count: {}", problem.name,
                     kernel.step, error.what());
      const std::lock_guard lock(mutex_);
      if (IsLasting(error.code())) {
        judged_.refuted.push_back({problem.name, kernel.source});
        continue;
      }
      judged_.failed = error.what();
      unjudged_[problem_index].assign(std::make_move_iterator(next), std::make_move_iterator(candidates.end()));
      return;
    }
    kernel.evaluation.CompareWith(problem.baseline);
    kernel.speedup = kernel.evaluation.speedup;
    const std::lock_guard lock(mutex_);
    if (kernel.speedup > to_beat) {
      judged_.best.push_back(std::move(kernel));
      return;
    }
    judged_.refuted.push_back({problem.name, kernel.source});
  }
}

JudgedKernels BestKernels::Finish() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return in_flight_ == 0; });
  JudgedKernels judged = std::exchange(judged_, {});
  judged.complete = std::exchange(started_, false) && judged.failed.empty();
  if (!judged.failed.empty()) pending_ = std::exchange(unjudged_, {});
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) {
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_CANCELLED) throw;
      judged.complete = false;
    }
  }
  std::sort(judged.best.begin(), judged.best.end(), [](const auto& a, const auto& b) { return a.problem < b.problem; });
  std::sort(judged.refuted.begin(), judged.refuted.end());
  for (const BestKernel& kernel : judged.best) best_[kernel.problem] = kernel;
  refuted_.insert(judged.refuted.begin(), judged.refuted.end());
  return judged;
}

void WriteBestKernel(const std::filesystem::path& directory, const BestKernel& kernel) {
  const std::filesystem::path folder = directory / kernel.problem;
  std::filesystem::create_directories(folder);
  nlohmann::ordered_json evidence = {{"problem", kernel.problem},
                                     {"speedup", kernel.speedup},
                                     {"source_sha256", Sha256(kernel.source)},
                                     {"step", kernel.step},
                                     {"trajectory", kernel.trajectory},
                                     {"round", kernel.round},
                                     {"suggestions", kernel.suggestions},
                                     {"evaluation", EvaluationToJson(kernel.evaluation)},
                                     {"baseline", EvaluationToJson(kernel.baseline)}};
  // evidence.json holds the source's hash: a reader can detect that the machine died between the two writes.
  WriteFileAtomically(folder / "best.cu", kernel.source);
  WriteFileAtomically(folder / "evidence.json", DumpJson(evidence, 2) + "\n");
}

}  // namespace kgrpo
