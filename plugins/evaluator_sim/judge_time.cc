// Judge::Time: how long a right kernel takes at the timing size, and whether that can be.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "evaluator_shared/random.h"
#include "evaluator_sim/judge_facts.h"
#include "evaluator_sim/judge_run.h"

namespace kgrpo::evaluator_sim {

using evaluator::Problem;

namespace {

constexpr double kImplausible = 0.9;                // of the roofline
constexpr uint32_t kFurtherBlocks = 8;              // run at the timing size beside those that are counted
constexpr double kMoreWork = 1.5;                   // of a further block, over a counted one's
constexpr uint64_t kFurtherStream = ~uint64_t{16};  // of the key

std::string TimeText(double seconds) {
  std::ostringstream text;
  text << std::setprecision(4);
  if (seconds < 1e-3) {
    text << seconds * 1e6 << " us";
  } else {
    text << seconds * 1e3 << " ms";
  }
  return text.str();
}

// The least time the problem's traffic and arithmetic allow on the device.
double RooflineSeconds(const Problem& problem, const simt::Device& device) {
  const double bytes = problem.needed_bytes.Evaluate(problem.timing),
               flops = problem.needed_flops.Evaluate(problem.timing);
  const double fastest_pipe = std::max({device.fp32_rate * 64, device.half_rate * 128, device.tensor_flops_per_cycle});
  return std::max(bytes / device.dram_bytes_per_second,
                  flops / (fastest_pipe * device.multiprocessors * device.clock_hz));
}

}  // namespace

// Calls the launch function at the timing size and counts.
Trouble Judge::RunTimed(Run& run, TimedCall* timed) {
  const Problem& problem = run.open.problem();
  timed->inputs = run.open.Timing();
  const auto call = [&](const BlockChoice& sampling) {
    timed->record = CallRecord();
    timed->tensors.reset();
    timed->tensors = std::make_unique<Tensors>(run.session.memory(), problem, *timed->inputs,
                                               evaluator::KeyFromText(problem.digest));
    return run.session.Call(*run.worker, timed->tensors->values(), simt::Mode::kCounted, sampling, &timed->record);
  };
  const uint32_t factor = run.thorough ? 2 : 1;
  // Which blocks are counted is the same in every judgement, so that a kernel's time does not depend on its secrets;
  // which others run beside them nobody can know.
  const BlockChoice fixed = {factor * options_.sampled_blocks, 0, factor * kFurtherBlocks,
                             evaluator::SubKey(run.key, kFurtherStream)};
  run.session.KeepState();
  Trouble trouble = call(fixed);
  if (trouble && (trouble.code == "crash" || trouble.code == "forbidden" || trouble.code == "invalid_launch")) {
    return {trouble.code, "At the timing size: " + trouble.sentence};
  }
  // A kernel that works on what skipped blocks should have written may fault or wait for ever, and one whose host
  // code looks at results may decide on garbage: then nothing is sampled.
  if (trouble || timed->record.launches == 0 || (timed->record.reads_back && !timed->record.complete)) {
    timed->tensors.reset();
    run.worker = workers_.Take();
    if (trouble = run.session.Load(*run.worker, run.kernel.object); trouble) return trouble;
    trouble = call({.blocks = UINT32_MAX});
    if (trouble) return {trouble.code, "At the timing size: " + trouble.sentence};
    if (timed->record.launches == 0) return {"no_launch", "At the timing size the launch function launches no kernel."};
  } else if (timed->record.further_over_sampled > kMoreWork) {
    // The blocks that it may expect to be counted do less than others: those are counted then.
    run.session.RestoreState();
    trouble = call({.blocks = fixed.blocks, .seed = fixed.further_seed});
    if (trouble) return {trouble.code, "At the timing size: " + trouble.sentence};
  }
  return {};
}

Trouble Judge::Count(const OpenProblem& open, const std::string& source, CallRecord* record) {
  Judgement judgement;
  std::unique_ptr<Run> run = Prepare(open, source, false, &judgement);
  if (!run) return {judgement.verdict, judgement.diagnosis};
  TimedCall timed;
  const Trouble trouble = RunTimed(*run, &timed);
  *record = std::move(timed.record);
  return trouble;
}

Trouble Judge::Time(Run& run, Judgement* judgement) {
  ThrowIfCancelled();
  const Problem& problem = run.open.problem();
  TimedCall timed;
  if (Trouble trouble = RunTimed(run, &timed)) return trouble;
  const CallRecord& record = timed.record;

  double seconds = record.copy_seconds;
  size_t longest = 0;
  for (size_t i = 0; i < record.estimates.size(); ++i) {
    const simt::TimeEstimate& estimate = record.estimates[i];
    if (!std::isfinite(estimate.seconds)) return {"invalid_launch", estimate.sentence};
    seconds += estimate.seconds;
    if (estimate.seconds > record.estimates[longest].seconds) longest = i;
  }
  if (Trouble trouble = CheckTimed(run, timed)) return {trouble.code, "At the timing size: " + trouble.sentence};
  const double floor = RooflineSeconds(problem, device_);
  if (seconds < kImplausible * floor) {
    return {"implausible", "Its modelled time, " + TimeText(seconds) + ", is below the " + TimeText(floor) +
                               " that the problem's traffic and arithmetic take on this device: it does less work than "
                               "the problem needs."};
  }

  const simt::TimeEstimate& main = record.estimates[longest];
  judgement->seconds = judgement->seconds_low = judgement->seconds_high = seconds;
  std::string text = "Modelled time " + TimeText(seconds) + " (" + TimeSource() + ", no GPU used).";
  if (record.launches > 1) {
    std::ostringstream share;
    share << " " << record.launches << " launches; the longest, "
          << evaluator::KernelName(record.counts[longest].kernel) << ", takes "
          << std::lround(100 * main.seconds / seconds) << "%.";
    text += share.str();
  }
  judgement->diagnosis = text + (main.sentence.empty() ? "" : " It is " + main.sentence + ".");
  judgement->metrics.emplace_back("roofline_seconds", floor);
  judgement->metrics.emplace_back("roofline_fraction", floor / seconds);
  AddTimeFacts({record, problem, device_, seconds, longest}, judgement);
  return {};
}

}  // namespace kgrpo::evaluator_sim
