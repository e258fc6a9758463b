// DeviceEvaluator::Check: decides whether a kernel is correct. Runs every case of a problem, compares the outputs, and
// checks the memory around the tensors.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "evaluator_cuda/device_evaluator_case.h"
#include "judge/problem/random.h"
#include "judge/verdict/case_verdict.h"
#include "judge/verdict/comparison.h"

namespace kgrpo::evaluator_cuda {

using evaluator::Expected;
using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

namespace {

constexpr uint64_t kDelayBytes = uint64_t{256} << 20;  // copied in some 0.2 ms

}  // namespace

std::vector<DeviceEvaluator::Case> DeviceEvaluator::DrawCases(const OpenProblem& open, const std::string& source,
                                                              uint64_t key, bool thorough, bool show_hidden) const {
  const Problem& problem = open.problem;
  std::vector<Case> cases;
  if (open.by_trials) return cases;
  const int seeds = options_.seeds * (thorough ? 2 : 1);
  for (evaluator::CorrectnessCase& planned : evaluator::CorrectnessCases(problem, key, seeds, thorough, show_hidden)) {
    Case one;
    static_cast<evaluator::CorrectnessCase&>(one) = std::move(planned);
    one.arguments = evaluator::DrawArguments(problem, one);
    if (open.oracle) {
      one.expected = open.known.Outputs(one, [&] { return open.oracle->Run(problem, *one.size, one.arguments); });
    }
    one.checker = open.checker.get();
    // The guards of the first seed read as NaN. Those of later seeds do not, so that a kernel that writes NaN there is
    // found too.
    one.guard = one.GapByte();
    one.poison = one.variant % 2 == 0 ? 0xff : static_cast<uint8_t>(0x80 | evaluator::RandomBits(one.key, 8) % 128);
    one.thorough = thorough;
    one.is_reference = source == problem.reference_source;
    cases.push_back(std::move(one));
  }
  return cases;
}

// Leaves out drawn sizes at which the reference kernel fails: they are outside of what the problem means. Elsewhere a
// fault might end the candidate's process.
void DeviceEvaluator::LeaveOutImpossible(const OpenProblem& open, std::vector<Case>* cases) {
  for (Case& one : *cases) {
    if (one.drawn == nullptr) continue;
    try {
      ReferenceOutputs(open, one);
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_INVALID) throw;
      one.left_out = true;
    }
  }
}

// Looks for elements that hold the poison. Since a result may equal it by chance, another call with another poison
// decides.
Trouble DeviceEvaluator::FindUnwritten(Worker& worker, const LentMemory& memory, const OpenProblem& open,
                                       const Case& one, const std::vector<std::vector<uint8_t>>& outputs,
                                       std::vector<std::vector<bool>>* unwritten) {
  const Problem& problem = open.problem;
  const auto look = [&](const std::vector<std::vector<uint8_t>>& found, uint8_t poison) {
    bool any = false;
    for (size_t p = 0, output = 0; p < problem.parameters.size(); ++p) {
      const Parameter& parameter = problem.parameters[p];
      if (!parameter.IsWritten()) continue;
      const std::vector<uint8_t>& bytes = found[output++];
      if (parameter.role != Role::kOutput || (one.aliased && parameter.may_alias)) continue;
      const size_t size = evaluator::Info(parameter.dtype).size;
      std::vector<bool>& flags = (*unwritten)[p];
      if (flags.empty()) flags.assign(bytes.size() / size, true);
      for (size_t i = 0; i < flags.size(); ++i) {
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(i * size);
        flags[i] = flags[i] && std::all_of(begin, begin + static_cast<std::ptrdiff_t>(size),
                                           [poison](uint8_t byte) { return byte == poison; });
        any = any || flags[i];
      }
    }
    return any;
  };
  unwritten->assign(problem.parameters.size(), {});
  if (!look(outputs, one.poison)) return {};
  Case again = one;
  again.poison = static_cast<uint8_t>(~one.poison);
  again.expected.clear();
  again.checker = nullptr;
  std::vector<std::vector<uint8_t>> second;
  if (Trouble trouble = RunCase(worker, memory, open, again, &second)) return trouble;
  look(second, again.poison);
  return {};
}

// A case without expected values and checker is only run.
Trouble DeviceEvaluator::RunCase(Worker& worker, const LentMemory& memory, const OpenProblem& open, const Case& one,
                                 std::vector<std::vector<uint8_t>>* outputs, bool staged,
                                 evaluator::WorstErrors* worst) {
  const Problem& problem = open.problem;
  const Layout layout(problem, *one.size, kGuardBytes);
  // Behind the tensors: copies of the outputs as the default stream sees them when the launch function has returned.
  std::vector<uint8_t> image(2 * layout.bytes(), one.guard);
  // The place of a parameter's tensor: an output may lie in an input's memory.
  const auto place_of = [&](const Layout::Tensor& tensor) -> const Layout::Tensor& {
    const std::optional<size_t>& input = problem.parameters[tensor.parameter].may_alias;
    return one.aliased && input ? *std::find_if(layout.tensors().begin(), layout.tensors().end(),
                                                [&](const Layout::Tensor& t) { return t.parameter == *input; })
                                : tensor;
  };
  Plan plan;
  plan.calls.push_back(layout.Arguments(1, 0));
  for (const Layout::Tensor& tensor : layout.tensors()) plan.calls[0][tensor.parameter].value = place_of(tensor).offset;
  for (size_t p = 0; p < problem.parameters.size(); ++p) {  // a case may have drawn other scalars than the size gives
    const std::vector<uint8_t>& bytes = one.arguments[p].bytes;
    if (!problem.parameters[p].IsTensor()) std::memcpy(&plan.calls[0][p].value, bytes.data(), bytes.size());
  }
  if (staged) {
    // A copy that keeps the default stream busy for a while, in free lent memory. The worker makes it as one more
    // staged copy, so that its process looks to a kernel as it does when it is timed.
    const uint64_t used = 2 * layout.bytes();
    const uint64_t half = std::min((memory.bytes() - used) / 2, kDelayBytes) / Layout::kAlignment * Layout::kAlignment;
    plan.staged.push_back({used + half, used, half});
  }
  for (const Layout::Tensor& tensor : layout.tensors()) {
    const Parameter& parameter = problem.parameters[tensor.parameter];
    const evaluator::Rows rows = parameter.RowsAt(*one.size);
    std::vector<uint8_t> dense = one.arguments[tensor.parameter].bytes;
    if (parameter.role == Role::kOutput) std::fill(dense.begin(), dense.end(), one.poison);
    const std::vector<uint8_t> bytes =
        evaluator::SpreadRows(rows, parameter.dtype, std::move(dense), one.GapByte(parameter.role));
    const bool late = staged && parameter.role != Role::kOutput;
    std::memcpy(image.data() + (late ? layout.bytes() : 0) + tensor.offset, bytes.data(), tensor.bytes);
    if (late) plan.staged.push_back({tensor.offset, layout.bytes() + tensor.offset, tensor.bytes});
    if (parameter.IsWritten())
      plan.copies.push_back({layout.bytes() + tensor.offset, place_of(tensor).offset, tensor.bytes});
  }
  device_.Write(memory.data(), image.data(), image.size());
  if (Trouble trouble = worker.Prepare(plan)) return trouble;
  Done done;
  if (Trouble trouble = worker.Run(&done)) return trouble;
  std::vector<uint8_t> after(image.size());
  device_.Read(after.data(), memory.data(), after.size());

  if (done.refused > 0)
    return {"forbidden", "The host code calls a function of the CUDA runtime that would change the device for others."};
  if (done.allocations > 0 && !problem.allow_device_malloc)
    return {"forbidden", "The host code allocates device memory, which the problem does not allow."};
  // Where the call before, at the same addresses, did launch, the outputs tell.
  if (done.launches == 0 && !one.same_place) return {"no_launch", "The launch function launches no kernel."};
  const auto bytes_of = [&](const Layout::Tensor& tensor) {
    const auto begin = after.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
    return std::vector<uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(tensor.bytes));
  };
  uint64_t at = 0;
  std::string before;
  for (const Layout::Tensor& tensor : layout.tensors()) {
    const Parameter& parameter = problem.parameters[tensor.parameter];
    const auto changed = [&](uint64_t begin, uint64_t end) {
      return std::memcmp(image.data() + begin, after.data() + begin, end - begin) != 0;
    };
    if (changed(at, tensor.offset)) {
      return {"out_of_bounds",
              "It writes outside its tensors, " +
                  (before.empty() ? "before " + parameter.name : "between " + before + " and " + parameter.name) + "."};
    }
    at = tensor.offset + tensor.bytes;
    before = parameter.name;
    if (!evaluator::GapsHold(parameter.RowsAt(*one.size), parameter.dtype, bytes_of(tensor),
                             one.GapByte(parameter.role)))
      return {"out_of_bounds", "It writes between the rows of " + parameter.name + "."};
    const bool in_use = std::any_of(layout.tensors().begin(), layout.tensors().end(), [&](const Layout::Tensor& t) {
      return t.parameter != tensor.parameter && &place_of(t) == &tensor;
    });
    if (parameter.role == Role::kInput && !staged && !in_use && changed(tensor.offset, at))
      return {"input_modified", "The input " + parameter.name + " was overwritten."};
  }
  if (std::memcmp(image.data() + at, after.data() + at, layout.bytes() - at) != 0)
    return {"out_of_bounds", "It writes outside its tensors, after " + before + "."};
  outputs->clear();
  std::string early;
  for (const Layout::Tensor& tensor : layout.tensors()) {
    const Parameter& parameter = problem.parameters[tensor.parameter];
    if (!parameter.IsWritten()) continue;
    std::vector<uint8_t> memory = bytes_of(place_of(tensor));
    if (std::memcmp(memory.data(), after.data() + layout.bytes() + tensor.offset, tensor.bytes) != 0)
      early = parameter.name;
    outputs->push_back(evaluator::GatherRows(parameter.RowsAt(*one.size), parameter.dtype, std::move(memory)));
  }
  if (one.checker != nullptr) {
    std::vector<std::vector<uint8_t>> written(problem.parameters.size());
    size_t next = 0;
    for (const Layout::Tensor& tensor : layout.tensors()) {
      if (problem.parameters[tensor.parameter].IsWritten()) written[tensor.parameter] = (*outputs)[next++];
    }
    const evaluator::Checker::Result result = one.checker->Check(problem, one.arguments, written);
    if (!result.right) return {"wrong", result.sentence + "."};
  } else if (one.expected.empty()) {
    return {};
  }
  if (one.checker == nullptr) {
    std::vector<std::vector<uint8_t>> written(problem.parameters.size());
    size_t next = 0;
    for (size_t p = 0; p < written.size(); ++p) {
      if (problem.parameters[p].IsWritten()) written[p] = (*outputs)[next++];
    }
    std::vector<std::vector<bool>> unwritten;
    if (Trouble trouble = FindUnwritten(worker, memory, open, one, *outputs, &unwritten)) return trouble;
    const auto reference = [&](const std::vector<evaluator::Argument>& arguments) {
      Case other = one;
      other.arguments = arguments;
      return ReferenceOutputs(open, std::move(other));
    };
    const evaluator::Compute oracle =
        open.oracle ? [&](const auto& arguments) { return open.oracle->Run(problem, *one.size, arguments); }
                    : evaluator::Compute();
    const evaluator::CaseVerdict verdict = evaluator::JudgeOutputs(
        {problem, one, one.arguments, one.expected, oracle, reference, one.is_reference, &open.known}, written,
        unwritten);
    if (verdict.trouble) return {verdict.trouble.code, verdict.trouble.sentence + ".", verdict.trouble.wrong};
    for (size_t p = 0; p < verdict.errors.size(); ++p) {
      if (worst != nullptr && problem.parameters[p].IsWritten()) worst->Add(p, verdict.errors[p]);
    }
  }
  if (!early.empty()) {
    return {"unsynchronised",
            "When the launch function has returned, " + early +
                " is not final: it still changes until the whole device is idle. Work on another stream "
                "is not joined to the default stream."};
  }
  return {};
}

Trouble DeviceEvaluator::Check(const OpenProblem& open, Worker& worker, const std::vector<Case>& cases,
                               KernelEvaluation* evaluation) {
  if (cases.empty()) return {};
  std::vector<std::vector<uint8_t>> outputs, first;
  evaluator::WorstErrors worst;
  for (const Case& one : cases) {
    if (one.left_out) continue;
    ThrowIfCancelled();
    if (Trouble trouble = RunCase(worker, candidate_memory_, open, one, &outputs, false, &worst))
      return {trouble.code, "At " + one.where + ": " + trouble.sentence, trouble.wrong};
    if (first.empty()) first = outputs;
  }
  // Once more with the first case's inputs: state kept between calls shows here, and so does a race that may go either
  // way. Sums in another order may differ in their last bits; they are correct both times.
  if (Trouble trouble = RunCase(worker, candidate_memory_, open, cases[0], &outputs)) {
    return {trouble.code == "wrong" ? "non_deterministic" : trouble.code,
            "Called again with the inputs of " + cases[0].where + ": " + trouble.sentence};
  }
  uint64_t used = 0;
  for (const Case& one : cases) used = std::max(used, 2 * Layout(open.problem, *one.size, kGuardBytes).bytes());
  if (device_.CountOther(candidate_memory_.data() + used, candidate_memory_.bytes() - used, kUnused) > 0)
    return {"out_of_bounds", "It writes far past the end of its tensors, to memory that it was not given."};
  // Once more with the inputs copied into place on the default stream, just before the call. Work on a stream that does
  // not wait for the default stream then reads the old contents.
  if (Trouble trouble = RunCase(worker, candidate_memory_, open, cases[0], &outputs, true)) {
    if (trouble.code != "wrong") {
      return {trouble.code,
              "Called again, with inputs that come to the default stream just before: " + trouble.sentence};
    }
    // A plain repeat tells a missing wait from a kernel that is not deterministic.
    if (Trouble again = RunCase(worker, candidate_memory_, open, cases[0], &outputs)) {
      return {again.code == "wrong" ? "non_deterministic" : again.code,
              "Called again with the inputs of " + cases[0].where + ": " + again.sentence};
    }
    return {"unsynchronised",
            "When the default stream has its inputs ready only just before the call, it computes with "
            "what was there before: work on another stream does not wait for the default stream."};
  }
  worst.Tell(open.problem, &evaluation->metrics);
  evaluation->metrics.emplace_back("same_bits_twice", outputs == first ? 1 : 0);
  return {};
}

std::vector<Expected> DeviceEvaluator::ReferenceOutputs(const OpenProblem& open, Case one) {
  one.aliased = false;  // the expected values are the same, and the reference cannot fail by aliasing
  one.same_place = false;
  one.expected.clear();
  one.checker = nullptr;
  std::vector<std::vector<uint8_t>> outputs;
  if (const Trouble trouble = RunCase(ReferenceWorker(open, one.thorough), reference_memory_, open, one, &outputs)) {
    DropReferences();  // its worker may be gone
    throw Error(KGRPO_ERROR_INVALID,
                open.problem.directory + "/reference.cu: " + trouble.code + ": " + trouble.sentence);
  }
  std::vector<Expected> expected(open.problem.parameters.size());
  size_t output = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& parameter = open.problem.parameters[i];
    if (parameter.IsWritten()) expected[i] = evaluator::ExpectedFrom(parameter, outputs[output++]);
  }
  return expected;
}

}  // namespace kgrpo::evaluator_cuda
