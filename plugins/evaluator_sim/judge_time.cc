// Judge::Time: how long a right kernel takes at the timing size, and whether that can be.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <sstream>

#include "evaluator_shared/random.h"
#include "evaluator_sim/judge_run.h"
#include "evaluator_sim/simt/time_by_line.h"
#include "evaluator_sim/tensors.h"

namespace kgrpo::evaluator_sim {

using evaluator::Problem;

namespace {

constexpr double kImplausible = 0.9;    // of the roofline
constexpr uint32_t kFurtherBlocks = 8;  // run at the timing size beside those that are counted
constexpr double kMoreWork = 1.5;       // of a further block, over a counted one's
constexpr size_t kMostLines = 8;        // that are named as expensive
constexpr double kLeastLineShare = 0.02;
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

template <typename Key>
std::vector<std::pair<Key, double>> LargestFirst(const std::map<Key, double>& values) {
  std::vector<std::pair<Key, double>> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

// How well a launch uses what it accesses.
void AddAccesses(const simt::Counts& counts, Judgement* judgement) {
  const auto add = [judgement](const char* name, double part, double whole) {
    if (whole > 0) judgement->metrics.emplace_back(name, part / whole);
  };
  simt::ArrayTraffic all;
  for (const simt::ArrayTraffic& array : counts.arrays) {
    all.load_requests += array.load_requests;
    all.load_sectors += array.load_sectors;
    all.load_ideal_sectors += array.load_ideal_sectors;
    all.store_requests += array.store_requests;
    all.store_sectors += array.store_sectors;
    all.store_ideal_sectors += array.store_ideal_sectors;
  }
  add("load_sectors", all.load_sectors, all.load_requests);
  // Lanes that load the same bytes ask for more than there are.
  add("load_sectors_used", std::min(all.load_ideal_sectors, all.load_sectors), all.load_sectors);
  add("store_sectors", all.store_sectors, all.store_requests);
  add("store_sectors_used", all.store_ideal_sectors, all.store_sectors);
  add("shared_cycles", counts.shared_wavefronts, counts.shared_requests);
  add("shared_conflicts", counts.shared_wavefronts - counts.shared_ideal_wavefronts, counts.shared_wavefronts);
  add("active_lanes", counts.thread_instructions, 32 * counts.issued);
  add("divergent_branches", counts.divergent_branches, counts.branches);
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

  double seconds = record.copy_seconds, dram_bytes = 0, l2_bytes = 0;
  size_t longest = 0;
  std::map<std::string, double> terms;
  std::map<std::pair<int, std::string>, double> lines;  // seconds, by line of the source and what bounds it
  for (size_t i = 0; i < record.estimates.size(); ++i) {
    const simt::TimeEstimate& estimate = record.estimates[i];
    if (!std::isfinite(estimate.seconds)) return {"invalid_launch", estimate.sentence};
    seconds += estimate.seconds;
    dram_bytes += estimate.dram_bytes;
    l2_bytes += estimate.l2_bytes;
    if (estimate.seconds > record.estimates[longest].seconds) longest = i;
    for (const simt::TimeTerm& term : estimate.terms) terms[term.name] += term.seconds;
    for (const simt::LineTime& line : simt::TimeByLine(record.counts[i], estimate, device_))
      if (line.line > 0) lines[{line.line, line.bound}] += line.seconds;
  }
  const double floor = RooflineSeconds(problem, device_);
  if (seconds < kImplausible * floor) {
    return {"implausible", "Its modelled time, " + TimeText(seconds) + ", is below the " + TimeText(floor) +
                               " that the problem's traffic and arithmetic take on this device: it does less work than "
                               "the problem needs."};
  }
  if (Trouble trouble = CheckTimed(run, timed)) return {trouble.code, "At the timing size: " + trouble.sentence};

  const simt::TimeEstimate& main = record.estimates[longest];
  const simt::KernelResources& resources = record.resources[longest];
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
  const auto add = [judgement](const std::string& name, double value) { judgement->metrics.emplace_back(name, value); };
  add("launches", static_cast<double>(record.launches));
  add("shared_bytes",
      static_cast<double>(resources.static_shared_bytes) + static_cast<double>(resources.dynamic_shared_bytes));
  // Of the longest launch.
  add("grid_blocks", static_cast<double>(record.counts[longest].grid_blocks));
  add("block_threads", record.counts[longest].threads_per_block);
  add("occupancy", main.occupancy.fraction);
  add("resident_blocks", main.occupancy.blocks_per_multiprocessor);
  add("dram_bytes", dram_bytes);
  add("l2_bytes", l2_bytes);
  const double needed_bytes = problem.needed_bytes.Evaluate(problem.timing);
  add("bytes_per_second", needed_bytes / seconds);
  add("bandwidth_fraction", needed_bytes / seconds / device_.dram_bytes_per_second);
  add("operations_per_second", problem.needed_flops.Evaluate(problem.timing) / seconds);
  add("roofline_seconds", floor);
  add("roofline_fraction", floor / seconds);
  for (const auto& [name, value] : LargestFirst(terms)) add("seconds/" + name, value);
  size_t shown = 0;
  for (const auto& [place, value] : LargestFirst(lines)) {
    if (value < kLeastLineShare * seconds || ++shown > kMostLines) break;
    add("line/" + std::to_string(place.first) + " " + place.second, value / seconds);
  }
  AddAccesses(record.counts[longest], judgement);
  return {};
}

}  // namespace kgrpo::evaluator_sim
