// DeviceEvaluator's processes that hold reference kernels: started, kept for the next evaluation of their problem, and
// given up where memory is short.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <utility>

#include "evaluator_cuda/device_evaluator.h"
#include "evaluator_cuda/device_evaluator_case.h"

namespace kgrpo::evaluator_cuda {

using evaluator::Problem;

namespace {

// Limits on the processes that hold reference kernels, of which those used last are kept. Each takes half a gigabyte of
// device memory; one for every 4 GiB of the device takes an eighth of it at most. Fewer are kept where less than an
// eighth of the device's memory is free.
constexpr uint64_t kFewestReferences = 4, kMemoryOfReference = uint64_t{4} << 30, kReserve = 8;

}  // namespace

// Returns the problem's reference, compiled once. [any thread]
DeviceEvaluator::ReferenceKernel DeviceEvaluator::CompiledReference(const OpenProblem& open, bool thorough) {
  std::promise<ReferenceKernel> promise;
  std::unique_lock<std::mutex> lock(kernels_mutex_);
  const auto [found, is_new] = reference_kernels_.try_emplace({open.problem.digest, thorough});
  if (is_new) found->second = promise.get_future().share();
  const std::shared_future<ReferenceKernel> kernel = found->second;
  lock.unlock();
  if (is_new) {
    try {
      evaluator::CompileOutcome compiled = compiler_->Compile(open.problem, open.problem.reference_source, thorough);
      if (!compiled.Succeeded()) {
        throw Error(KGRPO_ERROR_INVALID,
                    open.problem.directory + "/reference.cu: " + compiled.verdict + ": " + compiled.diagnosis);
      }
      promise.set_value(std::make_shared<evaluator::CompiledKernel>(std::move(compiled.kernel)));
    } catch (...) {
      promise.set_exception(std::current_exception());
      lock.lock();
      reference_kernels_.erase({open.problem.digest, thorough});  // the cause may pass
    }
  }
  return kernel.get();
}

// Returns how many processes hold the problem's reference; with `quick` only those that launch kernels quickly.
size_t DeviceEvaluator::CountReferences(const Problem& problem, bool thorough, bool quick) {
  const std::lock_guard<std::mutex> lock(references_mutex_);
  return static_cast<size_t>(
      std::count_if(reference_processes_.begin(), reference_processes_.end(), [&](const ReferenceProcess& reference) {
        return reference.digest == problem.digest && reference.thorough == thorough &&
               (!quick || workers_->IsQuick(*reference.worker));
      }));
}

Worker& DeviceEvaluator::ReferenceWorker(const OpenProblem& open, bool thorough, size_t which) {
  {
    const std::lock_guard<std::mutex> lock(references_mutex_);
    const auto found =
        std::find_if(reference_processes_.begin(), reference_processes_.end(), [&](const ReferenceProcess& reference) {
          return reference.digest == open.problem.digest && reference.thorough == thorough && reference.which == which;
        });
    if (found != reference_processes_.end()) {
      reference_processes_.splice(reference_processes_.begin(), reference_processes_, found);
      // A worker that was taken ahead replaces one that launches kernels slowly.
      if (ahead_.empty() || workers_->IsQuick(*found->worker)) return *found->worker;
      workers_->Retire(std::move(found->worker));
      reference_processes_.pop_front();
    }
  }
  const ReferenceKernel kernel = CompiledReference(open, thorough);
  GiveUpReferences(open);
  std::unique_ptr<Worker> worker = WorkerFor(*kernel, true);
  worker->Open(reference_memory_.handle());
  worker->Open(candidate_memory_.handle());
  if (const Trouble trouble = worker->Load(*kernel)) {
    throw Error(KGRPO_ERROR_INVALID,
                open.problem.directory + "/reference.cu: " + trouble.code + ": " + trouble.sentence);
  }
  const std::lock_guard<std::mutex> lock(references_mutex_);
  reference_processes_.push_front({open.problem.digest, thorough, which, std::move(worker)});
  return *reference_processes_.front().worker;
}

// Makes room for one more process: ends one if there are many, and one if the device's memory is short. Spares the
// processes of the problem at hand. Of the others, those that only take turns go first.
void DeviceEvaluator::GiveUpReferences(const OpenProblem& open) {
  const bool many = reference_processes_.size() >= device_.total_bytes() / kMemoryOfReference;
  const bool short_of_memory = device_.FreeBytes() < device_.total_bytes() / kReserve;
  const std::lock_guard<std::mutex> lock(references_mutex_);
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

void DeviceEvaluator::DropReferences() {
  const std::lock_guard<std::mutex> lock(references_mutex_);
  reference_processes_.clear();
}

void DeviceEvaluator::EndReferences() {
  const std::lock_guard<std::mutex> lock(mutex_);
  DropReferences();
}

}  // namespace kgrpo::evaluator_cuda
