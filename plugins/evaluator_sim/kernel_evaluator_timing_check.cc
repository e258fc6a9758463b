// KernelEvaluator::CheckTimed: whether what the call at the timing size left behind is correct, as far as the blocks
// that ran can tell, and whether all blocks are to run and be looked at.
#include <algorithm>
#include <cstring>

#include "evaluator_shared/random.h"
#include "evaluator_sim/kernel_evaluator_run.h"
#include "interpreter/simt/traffic.h"

namespace kgrpo::evaluator_sim {

using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

namespace {

// The share of an output, extrapolated from the blocks that ran, below which all blocks run. Blocks at the edges may
// write less.
constexpr double kCovered = 0.95;

// The name of an input that was changed, or "".
std::string ModifiedInput(const Problem& problem, const TimingInputs& inputs, const Tensors& tensors,
                          const simt::DeviceMemory& memory) {
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    if (problem.parameters[i].role != Role::kInput) continue;
    const evaluator::MappedFile before(inputs.files[i].get(), inputs.bytes[i]);
    if (std::memcmp(before.data(), memory.Find(tensors.values()[i])->data(), inputs.bytes[i]) != 0)
      return problem.parameters[i].name;
  }
  return "";
}

}  // namespace

std::shared_ptr<const TimingExpected> KernelEvaluator::ExpectedAtTiming(const OpenProblem& open) {
  return open.ExpectedAtTiming([&](const std::vector<evaluator::Argument>& arguments) {
    evaluator::CorrectnessCase one;
    one.size = &open.problem().timing;
    return ReferenceOutputs(open, one, arguments);
  });
}

// Runs every block, uncounted.
Trouble KernelEvaluator::CheckAllBlocks(Run& run) {
  ThrowIfCancelled();
  // The call before ran few blocks, so counters and flags in the candidate's own memory are only partly updated.
  if (!run.session.RestoreState()) {
    if (Trouble trouble = StartAgain(run)) return trouble;
  }
  const Problem& problem = run.open.problem();
  const std::shared_ptr<const TimingInputs> inputs = run.open.Timing();
  const Tensors tensors(run.session.memory(), problem, *inputs, evaluator::KeyFromText(problem.digest));
  CallRecord record;
  const BlockChoice choice = {.warp_instructions = options_.timing_warp_instructions};
  if (Trouble trouble = run.session.Call(*run.worker, tensors.values(), simt::Mode::kPlain, choice, &record))
    return record.out_of_budget ? NotTimed("the sampled blocks do not seem to write all of the outputs") : trouble;
  if (const std::string name = ModifiedInput(problem, *inputs, tensors, run.session.memory()); !name.empty())
    return {"input_modified", "the input " + name + " was overwritten."};
  const std::shared_ptr<const TimingExpected> expected = ExpectedAtTiming(run.open);
  for (size_t i = 0; expected != nullptr && i < problem.parameters.size(); ++i) {
    if (!problem.parameters[i].IsWritten()) continue;
    const simt::Allocation* memory = run.session.memory().Find(tensors.values()[i]);
    if (Trouble trouble = expected->Compare(i, *memory, inputs->files[i].get(), true, &run.worst)) return trouble;
  }
  return {};
}

// Estimates the bytes of an output that all blocks of the only launch write, from the counted blocks weighted by the
// number of blocks that each represents.
double StoredBytes(const simt::Counts& counts, const std::string& output) {
  double bytes = 0;
  for (const simt::ArrayTraffic& array : counts.arrays) {
    if (array.name == output)
      bytes += simt::kSectorBytes * std::min(array.store_ideal_sectors, array.unique_store_sectors);
  }
  return bytes * static_cast<double>(counts.grid_blocks) /
         static_cast<double>(std::max<uint64_t>(1, counts.sampled_blocks));
}

// Compares outputs after a call in which some blocks ran: outputs of independent blocks are final. `covered`: the
// smallest share of an output that all blocks seem to write, over the outputs.
Trouble KernelEvaluator::CheckSampledBlocks(Run& run, const TimedCall& timed, double* covered) {
  const Problem& problem = run.open.problem();
  const bool all = timed.record.blocks_run == timed.record.blocks;
  const std::shared_ptr<const TimingExpected> expected = ExpectedAtTiming(run.open);
  const double scale = static_cast<double>(timed.record.blocks) / static_cast<double>(timed.record.blocks_run);
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    const simt::Allocation* memory = run.session.memory().Find(timed.tensors->values()[i]);
    if (expected != nullptr) {
      if (Trouble trouble = expected->Compare(i, *memory, timed.inputs->files[i].get(), all, &run.worst))
        return trouble;
    }
    const auto bytes = static_cast<double>(parameter.Elements(problem.timing)) *
                       static_cast<double>(evaluator::Info(parameter.dtype).size);
    if (parameter.role != Role::kOutput) continue;
    double written = static_cast<double>(memory->WrittenBytes()) * scale;
    if (!all && timed.record.launches == 1) {
      // Strata are sampled at different rates, so only the weighted counts represent the grid. The counts say nothing
      // about stores if the blocks are so long that only their beginning was counted.
      const simt::Counts& counts = timed.record.counts.front();
      const double stored = StoredBytes(counts, parameter.name);
      if (counts.sampled_blocks == counts.grid_blocks && stored > 0) written = stored;
    }
    *covered = std::min(*covered, written / bytes);
  }
  return {};
}

Trouble KernelEvaluator::CheckTimed(Run& run, const TimedCall& timed) {
  const Problem& problem = run.open.problem();
  const CallRecord& record = timed.record;
  // If a launch ran whole, the stores of its uncounted blocks are not in the counts.
  bool writes_inputs = record.host_writes || run.runs_whole || record.must_run_whole;
  for (const simt::Counts& counts : record.counts) {
    for (const simt::ArrayTraffic& array : counts.arrays) {
      const auto found = std::find_if(problem.parameters.begin(), problem.parameters.end(), [&](const Parameter& p) {
        return p.role == Role::kInput && p.name == array.name;
      });
      if (found != problem.parameters.end() && array.store_requests + array.atomic_requests > 0) writes_inputs = true;
    }
  }
  if (writes_inputs) {
    const std::string name = ModifiedInput(problem, *timed.inputs, *timed.tensors, run.session.memory());
    if (!name.empty()) return {"input_modified", "the input " + name + " was overwritten."};
  }
  const bool all = record.blocks_run == record.blocks;
  double covered = 1;
  if (Trouble trouble = CheckSampledBlocks(run, timed, &covered)) return trouble;
  if (all || (covered >= kCovered && !record.further_failed)) return {};
  return CheckAllBlocks(run);
}

}  // namespace kgrpo::evaluator_sim
