#include "evaluator_cuda/judges.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <set>
#include <utility>

namespace kgrpo::evaluator_cuda {

Judges::Judges(Judge::Options options, const std::vector<int>& devices) {
  if (std::set<int>(devices.begin(), devices.end()).size() != devices.size())
    throw Error(KGRPO_ERROR_INVALID, "a device is named twice in evaluator_cuda's option device");
  for (const int device : devices) {
    options.device = device;
    judges_.push_back(std::make_unique<Judge>(options));
    const std::string &first = judges_.front()->device().name(), &name = judges_.back()->device().name();
    if (name != first) {
      throw Error(KGRPO_ERROR_INVALID, "device " + std::to_string(devices[0]) + " is an " + first + " and device " +
                                           std::to_string(device) + " an " + name +
                                           ": times of different kinds cannot be compared; name devices of one kind");
    }
  }
  under_way_.resize(judges_.size());
}

Judgement Judges::Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                           bool show_hidden) {
  // Counts itself for as long as it lives.
  struct Turn {
    explicit Turn(Judges& judges) : judges(judges) {
      const std::lock_guard<std::mutex> lock(judges.mutex_);
      auto& counts = judges.under_way_;
      index = static_cast<size_t>(std::min_element(counts.begin(), counts.end()) - counts.begin());
      ++counts[index];
    }
    ~Turn() {
      const std::lock_guard<std::mutex> lock(judges.mutex_);
      --judges.under_way_[index];
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Judges& judges;
    size_t index = 0;
  };
  const Turn turn(*this);
  return judges_[turn.index]->Evaluate(open, source, key, thorough, show_hidden);
}

std::string Judges::Describe() const {
  std::string text = judges_[0]->Describe();
  if (judges_.size() > 1) text += "; and " + std::to_string(judges_.size() - 1) + " more of its kind";
  return text;
}

std::string Judges::Version() const {
  std::string text;
  for (const std::unique_ptr<Judge>& judge : judges_) text += judge->Version() + "\n";
  return text;
}

}  // namespace kgrpo::evaluator_cuda
