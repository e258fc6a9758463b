// DeviceEvaluator::Time: times a correct kernel beside the reference, checks whether that time is possible, and reports
// what it says of the kernel.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "evaluator_cuda/device_evaluator.h"
#include "evaluator_cuda/device_evaluator_case.h"
#include "judge/problem/random.h"
#include "judge/problem/rules.h"  // kKernelBenchTrials
#include "judge/verdict/conditioning.h"

namespace kgrpo::evaluator_cuda {

using evaluator::Problem;

namespace {

constexpr double kImplausible = 0.75;  // of the least time by measured ceilings: below, a time is not believed
// The reference beside a candidate may be this much slower than alone.
constexpr double kDisturbed = 1.15, kDisturbedSeconds = 2e-6;
constexpr uint64_t kRoundsOfSuspects = 30;  // at least, when a second process must confirm or clear a suspicion

std::string TimeText(double seconds) {
  std::ostringstream text;
  text.precision(4);
  if (seconds < 1e-3) {
    text << seconds * 1e6 << " us";
  } else {
    text << seconds * 1e3 << " ms";
  }
  return text.str();
}

// True for verdicts that follow from times alone. A process that the machine slows for its whole life gives the same
// times, so such a verdict must be found in two processes.
bool IsSuspicion(const Trouble& trouble) {
  return trouble.code == "hidden_work" || trouble.code == "interference" || trouble.code == "implausible";
}

}  // namespace

// Times a correct kernel. If the verdict may be due to the process, times it again from the start in a fresh process.
Trouble DeviceEvaluator::TimeUntilSure(const OpenProblem& open, const evaluator::CompiledKernel& kernel,
                                       Workers* workers, const std::vector<Case>& cases, Look look,
                                       KernelEvaluation* evaluation) {
  const uint64_t key = look.key;
  int looks = 1;
  KernelEvaluation timed = *evaluation;
  Trouble trouble = Time(open, kernel, workers, cases, look, &timed);
  look.suspected = true;
  const auto look_again = [&](uint64_t number) {
    ++looks;
    timed = *evaluation;
    look.key = evaluator::SubKey(key, number);
    trouble = LoadInFreshWorker(kernel, look.quick, workers);
    if (!trouble) trouble = Time(open, kernel, workers, cases, look, &timed);
  };
  if (IsSuspicion(trouble)) {
    Retire(workers);
    look_again(3);
  }
  if (IsSuspicion(trouble)) {
    Retire(workers);
    if (OthersHeldUp()) look_again(4);
  }
  *evaluation = std::move(timed);
  evaluation->metrics.emplace_back("timing_looks", looks);
  return trouble;
}

Trouble DeviceEvaluator::Time(const OpenProblem& open, const evaluator::CompiledKernel& kernel, Workers* workers,
                              const std::vector<Case>& cases, const Look& look, KernelEvaluation* evaluation) {
  const Problem& problem = open.problem;
  TimingOptions options = options_.timing;
  options.checker = open.checker.get();
  options.memory_bytes = memory_bytes_;
  if (look.thorough) options.precision = {options.precision.relative_error / 2, 0}, options.budget_seconds *= 4;
  // A second pair of processes takes longer to start than a short kernel takes to measure.
  if (!look.thorough && !look.suspected) options.most_pairs = 1;
  if (look.suspected) {
    options.fewest_rounds = std::max(options.fewest_rounds, kRoundsOfSuspects);
    options.precision.clear_share = 0;
  }
  const Case* largest = nullptr;
  for (const Case& one : cases) {
    const auto bytes_of = [&](const Case& of) { return Layout(problem, *of.size, 0).bytes(); };
    if (!one.further && (largest == nullptr || bytes_of(one) > bytes_of(*largest))) largest = &one;
  }
  evaluator::Compute oracle;
  if (largest != nullptr && open.oracle)
    oracle = [&](const auto& moved) { return open.oracle->Run(problem, *largest->size, moved); };
  const std::vector<evaluator::ErrorBound> bounds =
      largest == nullptr
          ? evaluator::BoundsBesideReference(problem, nullptr, {}, {}, {})
          : evaluator::BoundsBesideReference(problem, largest, largest->arguments, largest->expected, oracle);
  Timing timing;
  try {
    const TimingInputs inputs(device_, problem, evaluator::SubKey(look.key, 1));
    Timer timer(device_, clocks_, problem, inputs, bounds, options, evaluator::SubKey(look.key, 2), order_key_);
    const auto pair = [&](size_t which) -> Pair {
      return {{*(*workers)[which], candidate_memory_, 1},
              {ReferenceWorker(open, look.thorough, which), candidate_memory_, 2}};
    };
    const Pair first = pair(0);
    const Side check = {first.reference.worker, reference_memory_, 1};
    const auto add_pair = [&](std::vector<Pair>* pairs) -> Trouble {
      try {
        ReferenceWorker(open, look.thorough, pairs->size());
        if (Trouble trouble = LoadInFreshWorker(kernel, look.quick, workers)) return trouble;
        pairs->push_back(pair(pairs->size()));
      } catch (const Error& error) {
        // Too little memory for more processes is no error: the existing ones suffice.
        if (error.code() != KGRPO_ERROR_UNAVAILABLE) throw;
      }
      return {};
    };
    if (open.by_trials) {
      if (Trouble trouble = timer.CheckTrials(first.candidate, check, evaluator::kKernelBenchTrials)) return trouble;
    }
    if (Trouble trouble = timer.Measure(first, check, add_pair, &timing)) return trouble;
    if (Trouble trouble = DescribeLaunch(inputs, *workers->front(), evaluation)) return trouble;
    {
      const std::lock_guard<std::mutex> lock(launch_share_mutex_);
      launch_share_[problem.digest] =
          timing.reference_launch_seconds * static_cast<double>(timing.reference_launches) / timing.reference.value;
    }
    // The reference's time with no candidate process left; measured if it is not known, or if the reference seems to
    // have been slowed.
    double& alone = reference_[problem.digest].alone[look.thorough ? 1 : 0][timing.reference_gated ? 1 : 0];
    const auto disturbed = [&] { return timing.reference.value > kDisturbed * alone + kDisturbedSeconds; };
    if (alone == 0 || disturbed()) {
      workers->clear();
      alone = timer.MeasureAlone(first.reference, timing);
    }
    if (disturbed()) {
      return {"interference", "The reference kernel takes " + TimeText(timing.reference.value) +
                                  " beside the candidate's process, and " + TimeText(alone) +
                                  " alone: it keeps the device busy outside its own calls."};
    }
  } catch (const Error& error) {
    return BlameFor(error, open, workers, cases, look);
  }
  return Report(open, timing, evaluation);
}

void DeviceEvaluator::DrawOneSet(const TimingInputs& inputs, const LentMemory& memory) {
  std::vector<DrawTask> tasks;
  inputs.Put(memory.data(), 0, 0, 0, &tasks);
  device_.Draw(tasks);
  device_.Wait();
}

bool DeviceEvaluator::RunsAtTimingSize(const OpenProblem& open, Worker& reference, const Look& look) {
  const TimingInputs inputs(device_, open.problem, evaluator::SubKey(look.key, 1));
  DrawOneSet(inputs, reference_memory_);
  Plan plan;
  plan.calls.push_back(inputs.Arguments(1, 0, 0));
  Done done;
  return !reference.Prepare(plan) && !reference.Run(&done);
}

// Finds out who is to blame when something of ours failed while a candidate lived: the candidate, if the reference
// works without it. Otherwise throws `error`.
Trouble DeviceEvaluator::BlameFor(const Error& error, const OpenProblem& open, Workers* workers,
                                  const std::vector<Case>& cases, const Look& look) {
  if (error.code() == KGRPO_ERROR_CANCELLED) throw error;
  workers->clear();
  DropReferences();
  std::vector<std::vector<uint8_t>> outputs;
  bool works = false;
  try {
    Worker& worker = ReferenceWorker(open, look.thorough);
    works = open.by_trials ? RunsAtTimingSize(open, worker, look)
                           : !RunCase(worker, reference_memory_, open, cases[0], &outputs);
  } catch (const Error&) {
    // The first error is the one to tell.
  }
  if (!works) {
    DropReferences();
    throw error;
  }
  return {
      "interference",
      std::string("While its process lived the reference failed, and without it the reference works: ") + error.what()};
}

Trouble DeviceEvaluator::Report(const OpenProblem& open, const Timing& timing, KernelEvaluation* evaluation) const {
  const Problem& problem = open.problem;
  const Roofline roofline = RooflineOf(problem, device_.ceilings(), device_.compute_capability());
  const double seconds = timing.candidate.value;
  const auto add = [evaluation](const char* name, double value) { evaluation->metrics.emplace_back(name, value); };
  add("speedup", timing.ratio.value);
  add("speedup_low", timing.ratio.low);
  add("speedup_high", timing.ratio.high);
  add("measured_seconds", seconds);
  add("baseline_seconds", timing.reference.value);
  add("event_seconds", timing.candidate_event_seconds);
  add("first_call_seconds", timing.first_call_seconds);
  if (timing.candidate_spread > 0) {
    add("placement_fastest_seconds", seconds - timing.candidate_spread);
    add("placement_slowest_seconds", seconds + timing.candidate_spread);
  }
  add("timing_rounds", static_cast<double>(timing.rounds));
  add("timing_throttled_rounds", static_cast<double>(timing.throttled_rounds));
  add("timing_dropped_rounds", static_cast<double>(timing.dropped_rounds));
  add("timing_calls", static_cast<double>(timing.calls));
  add("launch_seconds", timing.launch_seconds);
  add("baseline_launch_seconds", timing.reference_launch_seconds);
  add("baseline_launches", static_cast<double>(timing.reference_launches));
  add("timing_gated", timing.gated ? 1 : 0);
  add("timing_baseline_gated", timing.reference_gated ? 1 : 0);
  add("timing_early_checks", static_cast<double>(timing.early_checks));
  add("timing_pairs", static_cast<double>(timing.pairs));
  add("timing_sets", static_cast<double>(timing.sets));
  add("clock_mhz", timing.clock_mhz);
  add("bytes_per_second", roofline.bytes / seconds);
  add("bandwidth_fraction", roofline.bytes / seconds / roofline.bandwidth);
  add("bandwidth_ceiling", roofline.bandwidth);
  add("operations_per_second", roofline.operations / seconds);
  add("arithmetic_fraction", roofline.operations / seconds / roofline.rate);
  add("arithmetic_ceiling", roofline.rate);
  add("roofline_seconds", roofline.seconds);
  add("roofline_fraction", roofline.seconds / seconds);
  add("least_seconds", roofline.least_seconds);
  if (seconds < kImplausible * roofline.least_seconds) {
    return {"implausible", "Its time, " + TimeText(seconds) + ", is below the " + TimeText(roofline.least_seconds) +
                               " that the problem's traffic and arithmetic take at what this device reaches: it does "
                               "less work than the problem needs."};
  }
  evaluation->seconds = seconds;
  evaluation->seconds_low = timing.candidate.low;
  evaluation->seconds_high = timing.candidate.high;
  std::ostringstream text;
  text.precision(3);
  text << "Measured " << TimeText(seconds) << " on " << device_.name() << ", " << timing.ratio.value
       << " times as fast as the reference (95%: " << timing.ratio.low << " to " << timing.ratio.high << "). "
       << RooflineText(roofline, seconds);
  const auto tell_placements = [&](const char* whose, double mean, double spread) {
    if (spread == 0) return;
    text << " " << whose << " time by placement: " << TimeText(mean - spread) << " to " << TimeText(mean + spread)
         << ", depending on which half of a KiB its arrays begin at; the mean counts.";
  };
  tell_placements("Its", seconds, timing.candidate_spread);
  tell_placements("The reference's", timing.reference.value, timing.reference_spread);
  if (timing.reference_gated && !timing.gated) {
    text << " The reference's calls run back to back on the device; this one's time includes launches, since its calls "
            "cannot be launched ahead: they wait for the device, make streams or graphs, or their host code is slow.";
  }
  evaluation->diagnosis = text.str() + evaluation->diagnosis;  // the old diagnosis describes the launch
  return {};
}

}  // namespace kgrpo::evaluator_cuda
