// KernelEvaluator::Time: how long a correct kernel takes at the timing size, and whether that can be.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "evaluator_sim/kernel_evaluator_run.h"
#include "evaluator_sim/timed_facts.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator_sim {

using evaluator::Problem;

namespace {

constexpr double kImplausible = 0.9;    // fraction of the roofline time
constexpr uint32_t kFurtherBlocks = 8;  // secretly chosen blocks that run at the timing size beside the counted ones
constexpr uint64_t kFurtherStream = ~uint64_t{16};  // SubKey index of the stream that chooses them

constexpr double kMostUnpriced = 0.001;  // of a launch's instructions
// Host processor time of a call that no price explains: seconds, and of the modelled time.
constexpr double kMostUnexplained = 200e-6, kMostShareUnexplained = 0.2;
constexpr int kFurtherHostCalls = 4;
constexpr double kMuchOfHost = 0.2;  // of the time: then it is said

constexpr const char* kWithWholeNumbers = "At the timing size, with whole numbers: ";

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

interpreter::TimingCalls KernelEvaluator::CallsOn(Run& run, std::shared_ptr<const TimingInputs> inputs) {
  return {run, [&run, inputs = std::move(inputs)] {
            const Problem& problem = run.open.problem;
            return std::make_unique<Tensors>(run.session.memory(), problem, *inputs,
                                             evaluator::KeyFromText(problem.digest));
          }};
}

Trouble KernelEvaluator::NotTimed(const std::string& why) const {
  return {"not_timed", "It is correct at all correctness sizes, but was not timed: " + why +
                           ". So all blocks must run, and at the timing size they need more than the " +
                           std::to_string(options_.timing_warp_instructions / 1'000'000) +
                           " million warp instructions allowed. Let a block's work depend on its index alone, in one "
                           "launch, or raise the option warp_instructions."};
}

// Calls the launch function at the timing size and counts. Only a sample of blocks runs if their control flow shows
// that they represent the others; else all blocks run.
Trouble KernelEvaluator::RunTimed(Run& run, TimedCall* timed) {
  timed->inputs = run.open.Timing();
  timed->calls.emplace(CallsOn(run, timed->inputs));
  interpreter::TimingCalls& calls = *timed->calls;
  const uint32_t factor = run.thorough ? 2 : 1;
  // No candidate can know the blocks; those of equal kernels are the same, so that their times are.
  BlockChoice choice = {options_.sampled_blocks, run.blocks, factor * kFurtherBlocks,
                        evaluator::SubKey(run.blocks, kFurtherStream)};
  choice.warp_instructions = options_.timing_warp_instructions;
  interpreter::TimingCalls::AddChecks(&choice);
  run.session.KeepState();
  if (!run.runs_whole) {
    const Trouble trouble = calls.Call(simt::Mode::kCounted, choice, &timed->record);
    if (trouble && (interpreter::TimingCalls::IsSure(trouble, timed->record) || trouble.code == "crash" ||
                    trouble.code == "forbidden" || trouble.code == "invalid_launch"))
      return {trouble.code, "At the timing size: " + trouble.sentence};
    // A kernel that reads results of skipped blocks may fault or wait forever, and host code that reads results back
    // may branch on garbage. Outputs that skipped blocks complete are not final, so they cannot be compared. In these
    // cases all blocks run.
    const CallRecord& record = timed->record;
    const bool final = interpreter::TimingCalls::IsFinal(record);
    const bool complete = record.launches != 0 && record.blocks_run == record.blocks;
    if (!trouble && (complete || (final && !record.must_run_whole))) return {};
    calls.FreeTensors();
    if (Trouble again = trouble || !final ? run.Start() : run.Restore()) return again;
  }
  run.runs_whole = choice.whole = true;
  std::vector<std::vector<uint64_t>> work;
  for (int pass = 0; pass < 2; ++pass) {
    if (const Trouble trouble = calls.Call(simt::Mode::kCounted, choice, &timed->record)) {
      if (timed->record.out_of_budget) return NotTimed("its blocks may differ");
      return {trouble.code, "At the timing size: " + trouble.sentence};
    }
    if (timed->record.launches == 0) return {"no_launch", "At the timing size the launch function launches no kernel."};
    if (timed->record.sample_stands || pass > 0) break;
    // The counted blocks do not represent the others. The work of every block is now known, so choose again by it.
    work = std::move(timed->record.work);
    choice.known_work = &work;
    calls.FreeTensors();
    if (Trouble again = run.Restore()) return again;
  }
  return {};
}

// Refuses a kernel whose host code takes far more processor time than its price: functions of libraries and assembly
// are not counted. What else the machine does may slow down a call, so the least of several decides, each in a process
// of its own: no call finds what an earlier one at this size has kept.
Trouble KernelEvaluator::CheckHost(Run& run, const CallRecord& first, double seconds) {
  const BlockChoice one_block = {.blocks = 1, .warp_instructions = options_.timing_warp_instructions};
  const bool whole = run.runs_whole || !interpreter::TimingCalls::IsFinal(first);
  double unexplained = first.unexplained_seconds;
  for (int further = 0; unexplained > kMostUnexplained + kMostShareUnexplained * seconds; ++further) {
    if (further == kFurtherHostCalls) {
      return {"not_timed", "It is correct at all correctness sizes, but was not timed: its host code takes " +
                               TimeText(unexplained) +
                               " of processor time in functions of libraries or in assembly, which have no price. Move "
                               "that work into the kernel, or out of the launch function."};
    }
    if (Trouble trouble = run.Start()) return trouble;
    interpreter::TimingCalls calls = CallsOn(run, run.open.Timing());
    CallRecord record;
    if (Trouble trouble = calls.Call(whole ? simt::Mode::kPlain : simt::Mode::kCounted, one_block, &record))
      return {trouble.code, "At the timing size: " + trouble.sentence};
    unexplained = std::min(unexplained, record.unexplained_seconds);
  }
  return {};
}

// Compares the outputs of one more call, whose inputs are whole numbers: small errors and small elements show, where
// the results of such inputs are exact. Its time does not count, so hardly a block is counted, and the call before has
// checked for races.
Trouble KernelEvaluator::CheckWholeNumbers(Run& run) {
  const Problem& problem = run.open.problem;
  const std::shared_ptr<const TimingExpected> expected = ExpectedAtTiming(run.open, TimingSet::kWhole);
  if (expected == nullptr) return {};
  ThrowIfCancelled();
  if (Trouble trouble = run.Restore()) return trouble;
  const std::shared_ptr<const TimingInputs> inputs = run.open.Timing(TimingSet::kWhole);
  interpreter::TimingCalls calls = CallsOn(run, inputs);
  const BlockChoice choice = {.blocks = 1,
                              .further_blocks = 2 * kFurtherBlocks,
                              .further_seed = evaluator::SubKey(run.key, kFurtherStream),
                              .warp_instructions = options_.timing_warp_instructions};
  CallRecord record;
  bool all = true, done = false;
  if (!run.runs_whole) {
    const Trouble trouble = calls.Call(simt::Mode::kCounted, choice, &record);
    all = record.launches != 0 && record.blocks_run == record.blocks;
    done = !trouble && (all || interpreter::TimingCalls::IsFinal(record));
    if (!done) {
      calls.FreeTensors();
      if (Trouble again = run.Start()) return again;
    }
  }
  if (!done) {
    all = true;
    if (const Trouble trouble = calls.Call(simt::Mode::kPlain, choice, &record))
      return record.out_of_budget ? Trouble{} : Trouble{trouble.code, kWithWholeNumbers + trouble.sentence};
  }
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    if (!problem.parameters[i].IsWritten()) continue;
    const simt::Allocation* memory = run.session.memory().Find(calls.tensors().values()[i]);
    if (Trouble trouble = expected->Compare(i, *memory, inputs->files[i].get(), all, nullptr))
      return {trouble.code, kWithWholeNumbers + trouble.sentence, trouble.wrong};
  }
  return {};
}

Trouble KernelEvaluator::Count(const OpenProblem& open, const std::string& source, CallRecord* record) {
  KernelEvaluation evaluation;
  std::unique_ptr<Run> run = Prepare(open, source, false, &evaluation);
  if (!run) return {evaluation.verdict, evaluation.diagnosis};
  TimedCall timed;
  const Trouble trouble = RunTimed(*run, &timed);
  *record = std::move(timed.record);
  return trouble;
}

Trouble KernelEvaluator::Time(Run& run, KernelEvaluation* evaluation) {
  ThrowIfCancelled();
  const Problem& problem = run.open.problem;
  TimedCall timed;
  if (Trouble trouble = RunTimed(run, &timed)) return trouble;
  const CallRecord& record = timed.record;
  if (record.reads_clock && record.data_decides) {
    return {
        "not_timed",
        "It is correct at all correctness sizes, but was not timed: the work of its blocks may depend on clock reads, "
        "which the time model cannot predict. Remove the clock reads."};
  }

  if (run.of_triton && options_.device.starts_with("h") && run.kernel.ptx.find("\tmma.sync") != std::string::npos) {
    return {"not_timed",
            "It is correct at all correctness sizes, but was not timed: Triton compiles tl.dot for " + device_.name +
                " to instructions (wgmma) that are not interpreted. Choose a device such as rtx4090 or a100, or "
                "evaluate it on a GPU."};
  }
  for (const simt::Counts& counts : record.counts) {
    if (counts.unpriced <= kMostUnpriced * counts.issued) continue;
    std::ostringstream text;
    text << "It is correct at all correctness sizes, but was not timed: the time model has no price for "
         << std::setprecision(2) << 100 * counts.unpriced / counts.issued
         << "% of its instructions, such as those of line " << counts.unpriced_line
         << ". Remove them (printf and the like).";
    return {"not_timed", text.str()};
  }
  double seconds = record.copy_seconds + record.host_seconds;
  size_t longest = 0;
  for (size_t i = 0; i < record.estimates.size(); ++i) {
    const simt::TimeEstimate& estimate = record.estimates[i];
    if (!std::isfinite(estimate.seconds)) return {"invalid_launch", estimate.sentence};
    seconds += estimate.seconds;
    if (estimate.seconds > record.estimates[longest].seconds) longest = i;
  }
  if (Trouble trouble = CheckTimed(run, timed)) {
    if (trouble.code == "not_timed") return trouble;
    return {trouble.code, "At the timing size: " + trouble.sentence, trouble.wrong};
  }
  ThrowIfCancelled();
  if (Trouble trouble = timed.calls->CheckNewEdges(record, run.runs_whole, options_.timing_warp_instructions))
    return {trouble.code, "At the timing size: " + trouble.sentence};
  timed.calls->FreeTensors();
  if (Trouble trouble = CheckHost(run, record, seconds)) return trouble;
  evaluation->not_judged = timed.calls->not_checked();
  const double floor = RooflineSeconds(problem, device_);
  evaluation->metrics.emplace_back("roofline_seconds", floor);
  evaluation->metrics.emplace_back("roofline_fraction", floor / seconds);
  AddTimeFacts({record, problem, device_, seconds, longest, evaluator::OwnFileName(run.kernel.source)}, evaluation);
  if (seconds < kImplausible * floor) {
    return {"implausible", "Its modelled time, " + TimeText(seconds) + ", is below the " + TimeText(floor) +
                               " that the problem's traffic and arithmetic take on this device: it does less work than "
                               "the problem needs."};
  }

  const simt::TimeEstimate& main = record.estimates[longest];
  evaluation->seconds = evaluation->seconds_low = evaluation->seconds_high = seconds;
  std::string text = "Modelled time " + TimeText(seconds) + " (" + TimeSource() + ", no GPU used).";
  if (record.launches > 1) {
    std::ostringstream share;
    share << " " << record.launches << " launches; the longest, "
          << evaluator::KernelName(record.counts[longest].kernel) << ", takes "
          << std::lround(100 * main.seconds / seconds) << "%.";
    text += share.str();
  }
  if (record.host_seconds > kMuchOfHost * seconds)
    text += " The host code, its calls and its waits for the device take " +
            std::to_string(std::lround(100 * record.host_seconds / seconds)) + "%.";
  evaluation->diagnosis = text + (main.sentence.empty() ? "" : " It is " + main.sentence + ".");
  return {};
}

}  // namespace kgrpo::evaluator_sim
