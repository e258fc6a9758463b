// A judge on each of several devices of one kind: judgements go to the device with the fewest under way. Called by the
// evaluator's plugin.
#ifndef KGRPO_EVALUATOR_CUDA_JUDGES_H
#define KGRPO_EVALUATOR_CUDA_JUDGES_H

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "evaluator_cuda/judge.h"

namespace kgrpo::evaluator_cuda {

class Judges {
 public:
  // `options.device` is not looked at: `devices` says which, at least one. Throws Error(KGRPO_ERROR_UNAVAILABLE) where
  // one of them cannot judge, Error(KGRPO_ERROR_INVALID) where they are not of one kind or one is named twice.
  Judges(Judge::Options options, const std::vector<int>& devices);

  // As Judge::Evaluate, on one of the devices. [any thread]
  Judgement Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                     bool show_hidden = false);

  const Device& device() const { return judges_[0]->device(); }  // what holds for all of them: name, architecture
  std::string Describe() const;
  std::string Version() const;

 private:
  std::vector<std::unique_ptr<Judge>> judges_;
  std::mutex mutex_;
  std::vector<int> under_way_;  // guarded; of each judge
};

}  // namespace kgrpo::evaluator_cuda

#endif
