// DeviceEvaluator::DescribeLaunch: describes how a correct kernel was launched at the timing size, how many of its
// blocks run at once, and which resource limits that number.
#include <algorithm>
#include <sstream>

#include "evaluator_cuda/device_evaluator.h"
#include "evaluator_cuda/occupancy.h"

namespace kgrpo::evaluator_cuda {

// Makes one more call after the timing, since the worker describes only a plan with a single call. The description is
// for people: no verdict depends on it.
Trouble DeviceEvaluator::DescribeLaunch(const TimingInputs& inputs, Worker& worker, KernelEvaluation* evaluation) {
  DrawOneSet(inputs, candidate_memory_);
  Plan plan;
  plan.calls.push_back(inputs.Arguments(1, 0, 0));
  if (Trouble trouble = worker.Prepare(plan)) return trouble;
  Done said;
  if (Trouble trouble = worker.Run(&said)) return trouble;
  const auto add = [evaluation](const char* name, double value) { evaluation->metrics.emplace_back(name, value); };
  add("launches", static_cast<double>(said.launches));
  if (said.block_threads == 0 || said.block_threads > 1024) return {};
  const Multiprocessor& multiprocessor = device_.multiprocessor();
  const uint64_t shared_bytes = uint64_t{said.static_shared_bytes} + said.dynamic_shared_bytes;
  const ResidentBlocks blocks =
      CountResidentBlocks(multiprocessor, {said.block_threads, std::min(said.registers, 255u), shared_bytes});
  const double occupancy =
      static_cast<double>(said.resident_blocks) * said.block_threads / static_cast<double>(multiprocessor.threads);
  add("grid_blocks", static_cast<double>(said.grid_blocks));
  add("block_threads", said.block_threads);
  add("shared_bytes", static_cast<double>(shared_bytes));
  add("dynamic_shared_bytes", said.dynamic_shared_bytes);
  add("occupancy", occupancy);
  add("resident_blocks", said.resident_blocks);
  add("resident_blocks_by/registers", blocks.by_registers);
  add("resident_blocks_by/shared_memory", blocks.by_shared_memory);
  add("resident_blocks_by/threads", blocks.by_threads);
  add("resident_blocks_by/blocks", blocks.by_blocks);
  std::ostringstream text;
  text.precision(3);
  text << " " << said.grid_blocks << " blocks of " << said.block_threads << " threads, " << said.resident_blocks
       << " at once on a multiprocessor: occupancy " << 100 * occupancy << "%";
  if (occupancy < 1 && said.resident_blocks == blocks.Least()) text << ", limited by " << blocks.limit;
  evaluation->diagnosis = text.str() + ".";
  return {};
}

}  // namespace kgrpo::evaluator_cuda
