// Judge::CheckTimed: whether what the call at the timing size left behind is right, as far as the blocks that ran can
// tell, and whether all blocks are to run and be looked at.
#include <algorithm>
#include <cstring>

#include "evaluator_shared/random.h"
#include "evaluator_sim/judge_run.h"

namespace kgrpo::evaluator_sim {

using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

namespace {

// Of an output, by what the blocks that ran wrote: below, all of them run. Blocks at the edges may write less.
constexpr double kCovered = 0.95;
// The same where several launches may write the same bytes.
constexpr double kThinCoverage = 0.5;
// Warp instructions. Blocks whose results others complete tell nothing by themselves: of such kernels those that take
// no more than kFree run whole, of the others so many, drawn by the secret key, that it costs kFree each on average.
// Thorough judgements run everything up to kThorough.
constexpr double kFree = 0.5e6, kThorough = 100e6;
constexpr double kElementWork = 0.01;            // of comparing one element
constexpr uint64_t kDrawStream = ~uint64_t{17};  // of the key

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

std::shared_ptr<const TimingExpected> Judge::ExpectedAtTiming(const OpenProblem& open) {
  return open.ExpectedAtTiming([&](const std::vector<evaluator::Argument>& arguments) {
    evaluator::CorrectnessCase one;
    one.size = &open.problem().timing;
    return ReferenceOutputs(open, one, arguments);
  });
}

// Runs every block, uncounted.
Trouble Judge::CheckAllBlocks(Run& run) {
  ThrowIfCancelled();
  // Counters and flags in its own memory are as a call leaves them of which few blocks ran.
  if (!run.session.RestoreState()) return {};
  const Problem& problem = run.open.problem();
  const std::shared_ptr<const TimingInputs> inputs = run.open.Timing();
  const Tensors tensors(run.session.memory(), problem, *inputs, evaluator::KeyFromText(problem.digest));
  CallRecord record;
  if (Trouble trouble = run.session.Call(*run.worker, tensors.values(), simt::Mode::kPlain, {}, &record)) {
    if (trouble.code != "timeout") return trouble;
    // Our limit, not a fault of the kernel: what it left cannot be judged, and another call needs another process.
    return {};
  }
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

// What blocks wrote that depend on no others is final. `doubtful`: they seem to leave something out.
Trouble Judge::CheckSampledBlocks(Run& run, const TimedCall& timed, bool* doubtful) {
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
    if (parameter.role == Role::kOutput && static_cast<double>(memory->WrittenBytes()) * scale < kCovered * bytes)
      *doubtful = true;
  }
  return {};
}

Trouble Judge::CheckTimed(Run& run, const TimedCall& timed) {
  const Problem& problem = run.open.problem();
  const CallRecord& record = timed.record;
  bool writes_inputs = record.host_writes;
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
  const double work = record.work + kElementWork * [&] {
    double elements = 0;
    for (const Parameter& parameter : problem.parameters) {
      if (parameter.IsWritten()) elements += static_cast<double>(parameter.Elements(problem.timing));
    }
    return elements;
  }();
  if (all || (record.launches == 1 && record.independent && !record.host_writes)) {
    bool doubtful = record.further_failed;
    if (Trouble trouble = CheckSampledBlocks(run, timed, &doubtful)) return trouble;
    return doubtful && !all ? CheckAllBlocks(run) : Trouble{};
  }
  // Where several launches write too little of an output even when taken together, all is looked at whatever it costs.
  bool look =
      work <= (run.thorough ? kThorough : kFree) ||
      (!run.thorough &&
       evaluator::UniformReal(evaluator::RandomBits(evaluator::SubKey(run.key, kDrawStream), 0)) * work < kFree);
  for (size_t i = 0; i < problem.parameters.size() && !look; ++i) {
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
    look = sectors * 32 < kThinCoverage * static_cast<double>(timed.inputs->bytes[i]);
  }
  return look ? CheckAllBlocks(run) : Trouble{};
}

}  // namespace kgrpo::evaluator_sim
