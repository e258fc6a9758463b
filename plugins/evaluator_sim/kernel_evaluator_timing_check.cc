// KernelEvaluator::CheckTimed: whether what the call at the timing size left behind is correct, as far as the blocks
// that ran can tell, and whether all blocks are to run and be looked at.
#include <algorithm>
#include <cstring>

#include "evaluator_sim/kernel_evaluator_run.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator_sim {

using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

namespace {

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

std::shared_ptr<const TimingExpected> KernelEvaluator::ExpectedAtTiming(const OpenProblem& open, TimingSet set) {
  if (open.checker != nullptr) return nullptr;
  const auto reference = [&](const std::vector<evaluator::Argument>& arguments) {
    evaluator::CorrectnessCase one;
    one.size = &open.problem.timing;
    return ReferenceOutputs(open, one, arguments);
  };
  return open.ExpectedAtTiming(reference, set);
}

// By checker.cc, after a call in which every block ran.
Trouble KernelEvaluator::CheckByChecker(Run& run, const Tensors& tensors) {
  const Problem& problem = run.open.problem;
  const std::vector<evaluator::Argument> arguments = run.open.TimingArguments();
  std::vector<std::vector<uint8_t>> outputs(problem.parameters.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (problem.parameters[i].IsWritten()) outputs[i] = tensors.Read(i);
  }
  const evaluator::Checker::Result result = run.open.checker->Check(problem, arguments, outputs);
  return result.right ? Trouble{} : Trouble{"wrong", result.sentence + "."};
}

// Runs every block, uncounted.
Trouble KernelEvaluator::CheckAllBlocks(Run& run) {
  ThrowIfCancelled();
  // The call before ran few blocks, so counters and flags in the candidate's own memory are only partly updated.
  if (Trouble trouble = run.Restore()) return trouble;
  const Problem& problem = run.open.problem;
  const std::shared_ptr<const TimingInputs> inputs = run.open.Timing();
  const Tensors tensors(run.session.memory(), problem, *inputs, evaluator::KeyFromText(problem.digest));
  if (run.open.checker != nullptr) {
    for (size_t i = 0; i < problem.parameters.size(); ++i) {
      if (problem.parameters[i].IsWritten()) run.session.memory().Poison(tensors.values()[i], tensors.Poison(i));
    }
  }
  CallRecord record;
  const BlockChoice choice = {.warp_instructions = options_.timing_warp_instructions};
  if (Trouble trouble = run.Call(tensors, simt::Mode::kPlain, choice, &record))
    return record.out_of_budget
               ? NotTimed(run.open.checker != nullptr
                              ? "checker.cc needs the outputs of all blocks"
                              : "it is not known whether all blocks together write every element of the outputs")
               : trouble;
  if (const std::string name = ModifiedInput(problem, *inputs, tensors, run.session.memory()); !name.empty())
    return {"input_modified", "the input " + name + " was overwritten."};
  if (run.open.checker != nullptr) return CheckByChecker(run, tensors);
  const std::shared_ptr<const TimingExpected> expected = ExpectedAtTiming(run.open);
  for (size_t i = 0; expected != nullptr && i < problem.parameters.size(); ++i) {
    if (!problem.parameters[i].IsWritten()) continue;
    const simt::Allocation* memory = run.session.memory().Find(tensors.values()[i]);
    if (Trouble trouble = expected->Compare(i, *memory, inputs->files[i].get(), true, &run.worst)) return trouble;
  }
  return {};
}

// The elements of a parameter that the launch's blocks together do not store, from the addresses of their stores.
uint64_t NotStored(const Parameter& parameter, const evaluator::Rows& rows, uint64_t address,
                   const std::vector<simt::StoredRange>& stored) {
  const uint64_t size = evaluator::Info(parameter.dtype).size;
  uint64_t missing = 0;
  for (int64_t row = 0; row < rows.count; ++row) {
    const uint64_t begin = address + static_cast<uint64_t>(row * rows.pitch) * size,
                   end = begin + static_cast<uint64_t>(rows.elements) * size;
    uint64_t at = begin;
    auto range = std::upper_bound(stored.begin(), stored.end(), begin,
                                  [](uint64_t value, const simt::StoredRange& one) { return value < one.end; });
    for (; at < end && range != stored.end(); ++range) {
      if (range->begin > at) missing += (std::min(range->begin, end) - at + size - 1) / size;
      at = std::max(at, range->end);
    }
    if (at < end) missing += (end - at + size - 1) / size;
  }
  return missing;
}

// Compares outputs after a call in which some blocks ran: outputs of independent blocks are final. `covered`: all
// blocks together are known to write every element.
Trouble KernelEvaluator::CheckSampledBlocks(Run& run, const TimedCall& timed, bool* covered) {
  const Problem& problem = run.open.problem;
  const bool all = timed.record.blocks_run == timed.record.blocks;
  const std::shared_ptr<const TimingExpected> expected = ExpectedAtTiming(run.open);
  *covered = all || timed.record.stored.has_value();
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    const uint64_t address = timed.calls->tensors().values()[i];
    const simt::Allocation* memory = run.session.memory().Find(address);
    if (expected != nullptr) {
      if (Trouble trouble = expected->Compare(i, *memory, timed.inputs->files[i].get(), all, &run.worst)) {
        if (all || problem.tolerance.differing == 0 || trouble.code != "wrong") return trouble;
        *covered = false;  // a sample with one block of each class overstates the share
        return {};
      }
    }
    if (all || parameter.role != Role::kOutput || !timed.record.stored) continue;
    const uint64_t missing = NotStored(parameter, parameter.RowsAt(problem.timing), address, *timed.record.stored);
    if (missing > 0)
      return evaluator_sim::NeverWritten(parameter, missing, static_cast<uint64_t>(parameter.Elements(problem.timing)));
  }
  return {};
}

Trouble KernelEvaluator::CheckTimed(Run& run, const TimedCall& timed) {
  const Problem& problem = run.open.problem;
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
    const std::string name = ModifiedInput(problem, *timed.inputs, timed.calls->tensors(), run.session.memory());
    if (!name.empty()) return {"input_modified", "the input " + name + " was overwritten."};
  }
  bool covered = false;
  if (Trouble trouble = CheckSampledBlocks(run, timed, &covered)) return trouble;
  if (covered && !record.further_failed && run.open.checker == nullptr) return {};
  return CheckAllBlocks(run);
}

}  // namespace kgrpo::evaluator_sim
