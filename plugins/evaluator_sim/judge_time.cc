// Judge::Time: how long a right kernel takes at the timing size, and whether that can be.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <sstream>

#include "evaluator_shared/random.h"
#include "evaluator_sim/judge_run.h"
#include "evaluator_sim/tensors.h"

namespace kgrpo::evaluator_sim {

using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

namespace {

constexpr double kImplausible = 0.9;   // of the roofline
constexpr double kThinCoverage = 0.5;  // of an output's bytes, by sampling

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

Trouble Judge::Time(Run& run, Judgement* judgement) {
  ThrowIfCancelled();
  const Problem& problem = run.open.problem();
  const std::shared_ptr<const TimingInputs> inputs = run.open.Timing();
  const uint64_t key = evaluator::KeyFromText(problem.digest);
  CallRecord record;
  {
    const Tensors tensors(run.session.memory(), problem, *inputs, key, false);
    const uint32_t blocks = options_.sampled_blocks * (run.thorough ? 2 : 1);
    Trouble trouble = run.session.Call(*run.worker, tensors.values(), simt::Mode::kCounted, blocks, &record);
    if (trouble && (trouble.code == "crash" || trouble.code == "forbidden" || trouble.code == "invalid_launch")) {
      return {trouble.code, "At the timing size: " + trouble.sentence};
    }
    // A kernel that works on what skipped blocks should have written may fault or wait for ever, and one whose host
    // code looks at results may decide on garbage: then nothing is sampled.
    if (trouble || (record.reads_back && !record.complete)) record.launches = 0;
  }
  const bool whole = record.launches == 0;
  if (whole) {
    run.worker = workers_.Take();
    if (Trouble trouble = run.session.Load(*run.worker, run.kernel.object)) return trouble;
    record = CallRecord();
    const Tensors tensors(run.session.memory(), problem, *inputs, key, false);
    Trouble trouble = run.session.Call(*run.worker, tensors.values(), simt::Mode::kCounted, UINT32_MAX, &record);
    if (trouble) return {trouble.code, "At the timing size: " + trouble.sentence};
    if (record.launches == 0) return {"no_launch", "At the timing size the launch function launches no kernel."};
  }

  double seconds = record.copy_seconds, dram_bytes = 0, l2_bytes = 0;
  size_t longest = 0;
  std::map<std::string, double> terms;
  for (size_t i = 0; i < record.estimates.size(); ++i) {
    const simt::TimeEstimate& estimate = record.estimates[i];
    if (!std::isfinite(estimate.seconds)) return {"invalid_launch", estimate.sentence};
    seconds += estimate.seconds;
    dram_bytes += estimate.dram_bytes;
    l2_bytes += estimate.l2_bytes;
    if (estimate.seconds > record.estimates[longest].seconds) longest = i;
    for (const simt::TimeTerm& term : estimate.terms) terms[term.name] += term.seconds;
  }
  const double floor = RooflineSeconds(problem, device_);
  if (seconds < kImplausible * floor) {
    return {"implausible", "Its modelled time, " + TimeText(seconds) + ", is below the " + TimeText(floor) +
                               " that the problem's traffic and arithmetic take on this device: it does less work than "
                               "the problem needs."};
  }
  // Sampling sees only a part of the blocks; where they write too little, every block runs and the outputs are looked
  // at.
  for (size_t i = 0; i < problem.parameters.size() && !whole; ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (parameter.role != Role::kOutput) continue;
    double sectors = 0;
    for (const simt::Counts& counts : record.counts) {
      const double scale =
          static_cast<double>(counts.grid_blocks) / static_cast<double>(std::max<uint64_t>(1, counts.sampled_blocks));
      for (const simt::ArrayTraffic& array : counts.arrays) {
        if (array.name == parameter.name) sectors += scale * (array.unique_store_sectors + array.atomic_sectors);
      }
    }
    const auto bytes = static_cast<double>(inputs->bytes[i]);
    if (sectors * 32 >= kThinCoverage * bytes) continue;
    const Tensors tensors(run.session.memory(), problem, *inputs, key, true);
    CallRecord all;
    if (Trouble trouble = run.session.Call(*run.worker, tensors.values(), simt::Mode::kPlain, 0, &all)) {
      return {trouble.code, "At the timing size: " + trouble.sentence};
    }
    const std::vector<uint8_t> got = tensors.Read(i);
    const auto untouched = static_cast<double>(std::count(got.begin(), got.end(), tensors.Poison(i)));
    if (untouched > (1 - kThinCoverage) * bytes) {
      return {"wrong", "At the timing size most of " + parameter.name + " was never written."};
    }
  }

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
  for (const auto& [name, value] : terms) add("seconds/" + name, value);
  return {};
}

}  // namespace kgrpo::evaluator_sim
