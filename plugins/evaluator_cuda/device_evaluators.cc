#include "evaluator_cuda/device_evaluators.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <set>
#include <utility>

namespace kgrpo::evaluator_cuda {

DeviceEvaluators::DeviceEvaluators(DeviceEvaluator::Options options, const std::vector<int>& devices)
    : pytorch_(options.pytorch) {
  if (std::set<int>(devices.begin(), devices.end()).size() != devices.size())
    throw Error(KGRPO_ERROR_INVALID, "a device is named twice in evaluator_cuda's option device");
  for (const int device : devices) {
    options.device = device;
    evaluators_.push_back(std::make_unique<DeviceEvaluator>(options));
    const std::string &first = evaluators_.front()->device().name(), &name = evaluators_.back()->device().name();
    if (name != first) {
      throw Error(KGRPO_ERROR_INVALID, "device " + std::to_string(devices[0]) + " is an " + first + " and device " +
                                           std::to_string(device) + " an " + name +
                                           ": times of different kinds cannot be compared; name devices of one kind");
    }
  }
  under_way_.resize(evaluators_.size());
}

KernelEvaluation DeviceEvaluators::Evaluate(const OpenProblem& open, const std::string& source, uint64_t key,
                                            bool thorough, bool show_hidden) {
  // Counts one evaluation as under way on its device, for as long as this lives.
  struct Turn {
    explicit Turn(DeviceEvaluators& evaluators) : evaluators(evaluators) {
      const std::lock_guard<std::mutex> lock(evaluators.mutex_);
      auto& counts = evaluators.under_way_;
      index = static_cast<size_t>(std::min_element(counts.begin(), counts.end()) - counts.begin());
      ++counts[index];
    }
    ~Turn() {
      const std::lock_guard<std::mutex> lock(evaluators.mutex_);
      --evaluators.under_way_[index];
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    DeviceEvaluators& evaluators;
    size_t index = 0;
  };
  const Turn turn(*this);
  return evaluators_[turn.index]->Evaluate(open, source, key, thorough, show_hidden);
}

std::string DeviceEvaluators::Describe() const {
  std::string text = evaluators_[0]->Describe();
  if (evaluators_.size() > 1) text += "; and " + std::to_string(evaluators_.size() - 1) + " more of its kind";
  return text;
}

std::string DeviceEvaluators::Version() const {
  std::string text;
  for (const std::unique_ptr<DeviceEvaluator>& evaluator : evaluators_) text += evaluator->Version() + "\n";
  return text;
}

}  // namespace kgrpo::evaluator_cuda
