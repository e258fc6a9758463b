// DeviceEvaluator's processes that hold reference kernels: started, kept for the next evaluation of their problem, and
// given up where memory is short.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "evaluator_cuda/device_evaluator.h"
#include "evaluator_cuda/device_evaluator_case.h"

namespace kgrpo::evaluator_cuda {
namespace {

// Limits on the processes that hold reference kernels, of which those used last are kept. Each takes half a gigabyte of
// device memory; one for every 4 GiB of the device takes an eighth of it at most. Fewer are kept where less than an
// eighth of the device's memory is free.
constexpr uint64_t kFewestReferences = 4, kMemoryOfReference = uint64_t{4} << 30, kReserve = 8;

}  // namespace

Worker& DeviceEvaluator::ReferenceWorker(const OpenProblem& open, bool thorough, size_t which) {
  const auto found =
      std::find_if(reference_processes_.begin(), reference_processes_.end(), [&](const ReferenceProcess& reference) {
        return reference.digest == open.problem.digest && reference.thorough == thorough && reference.which == which;
      });
  if (found != reference_processes_.end()) {
    reference_processes_.splice(reference_processes_.begin(), reference_processes_, found);
    return *reference_processes_.front().worker;
  }
  const std::string file = open.problem.directory + "/reference.cu: ";
  const auto sibling =
      std::find_if(reference_processes_.begin(), reference_processes_.end(), [&](const ReferenceProcess& reference) {
        return reference.digest == open.problem.digest && reference.thorough == thorough;
      });
  std::shared_ptr<const evaluator::CompiledKernel> kernel;
  if (sibling != reference_processes_.end()) {
    kernel = sibling->kernel;
  } else {
    evaluator::CompileOutcome compiled = compiler_.Compile(open.problem, open.problem.reference_source, thorough);
    if (!compiled.Succeeded()) throw Error(KGRPO_ERROR_INVALID, file + compiled.verdict + ": " + compiled.diagnosis);
    kernel = std::make_shared<evaluator::CompiledKernel>(std::move(compiled.kernel));
  }
  GiveUpReferences(open);
  std::unique_ptr<Worker> worker = WorkerFor(*kernel, true);
  worker->Open(reference_memory_.handle());
  worker->Open(candidate_memory_.handle());
  if (const Trouble trouble = worker->Load(*kernel))
    throw Error(KGRPO_ERROR_INVALID, file + trouble.code + ": " + trouble.sentence);
  reference_processes_.push_front({open.problem.digest, thorough, which, std::move(kernel), std::move(worker)});
  return *reference_processes_.front().worker;
}

// Makes room for one more process: ends one if there are many, and one if the device's memory is short. Spares the
// processes of the problem at hand. Of the others, those that only take turns go first.
void DeviceEvaluator::GiveUpReferences(const OpenProblem& open) {
  const bool many = reference_processes_.size() >= device_.total_bytes() / kMemoryOfReference;
  const bool short_of_memory = device_.FreeBytes() < device_.total_bytes() / kReserve;
  for (int i = (many ? 1 : 0) + (short_of_memory ? 1 : 0); i > 0 && reference_processes_.size() >= kFewestReferences;
       --i) {
    const auto last = [&](size_t least) {
      return std::find_if(reference_processes_.rbegin(), reference_processes_.rend(),
                          [&](const ReferenceProcess& reference) {
                            return reference.digest != open.problem.digest && reference.which >= least;
                          });
    };
    auto found = last(1);
    if (found == reference_processes_.rend()) found = last(0);
    if (found == reference_processes_.rend()) return;
    workers_->Retire(std::move(found->worker));
    reference_processes_.erase(std::next(found).base());
  }
}

void DeviceEvaluator::EndReferences() {
  const std::lock_guard<std::mutex> lock(mutex_);
  reference_processes_.clear();
}

}  // namespace kgrpo::evaluator_cuda
