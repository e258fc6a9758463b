// An evaluator on each of several devices of one kind: evaluations go to the device with the fewest under way. Called
// by the evaluator's plugin.
#ifndef KGRPO_EVALUATOR_CUDA_DEVICE_EVALUATORS_H
#define KGRPO_EVALUATOR_CUDA_DEVICE_EVALUATORS_H

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "evaluator_cuda/device_evaluator.h"

namespace kgrpo::evaluator_cuda {

class DeviceEvaluators {
 public:
  // Uses `devices`, at least one, and ignores `options.device`. Throws Error(KGRPO_ERROR_UNAVAILABLE) where one of them
  // cannot judge, Error(KGRPO_ERROR_INVALID) where they are not of one kind or one is named twice.
  DeviceEvaluators(DeviceEvaluator::Options options, const std::vector<int>& devices);

  // As DeviceEvaluator::Evaluate, on one of the devices. [any thread]
  KernelEvaluation Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                            bool show_hidden = false);

  const Device& device() const { return evaluators_[0]->device(); }  // what holds for all of them: name, architecture
  // DeviceEvaluator's, on the first device.
  void TimePytorch(const OpenProblem& open, KernelEvaluation* baseline) { evaluators_[0]->TimePytorch(open, baseline); }
  std::string Describe() const;
  std::string Version() const;

 private:
  std::vector<std::unique_ptr<DeviceEvaluator>> evaluators_;
  std::mutex mutex_;
  std::vector<int> under_way_;  // guarded; of each evaluator
};

}  // namespace kgrpo::evaluator_cuda

#endif
