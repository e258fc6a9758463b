// An evaluator on each of several devices of one kind: evaluations go to the device with the fewest under way. The
// backend of evaluator_cuda.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "evaluator_cuda/device_evaluator.h"

namespace kgrpo::evaluator_cuda {

class DeviceEvaluators : public evaluator::Backend {
 public:
  // Uses `devices`, at least one, and ignores `options.device`. Throws Error(KGRPO_ERROR_UNAVAILABLE) where one of them
  // cannot judge, Error(KGRPO_ERROR_INVALID) where they are not of one kind or one is named twice.
  DeviceEvaluators(DeviceEvaluator::Options options, const std::vector<int>& devices);

  std::unique_ptr<const OpenProblem> Open(const evaluator::Problem& problem,
                                          const evaluator::EvaluatorOptions& options) const override {
    return std::make_unique<const OpenProblem>(problem, options.cache_directory, options.rules);
  }
  // As DeviceEvaluator::Evaluate, on one of the devices.
  KernelEvaluation Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                            bool show_hidden = false) override;
  void CompleteBaseline(const OpenProblem& open, KernelEvaluation* baseline) override {
    if (pytorch_) evaluators_[0]->TimePytorch(open, baseline);
  }
  bool modelled() const override { return false; }
  std::string TimeSource() const override { return evaluators_[0]->device().name(); }
  std::string Describe() const override;
  std::string Version() const override;

 private:
  const bool pytorch_;
  std::vector<std::unique_ptr<DeviceEvaluator>> evaluators_;
  std::mutex mutex_;
  std::vector<int> under_way_;  // guarded; of each evaluator
};

}  // namespace kgrpo::evaluator_cuda
