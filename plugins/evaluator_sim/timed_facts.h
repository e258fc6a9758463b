// The metrics of the call at the timing size: where its time goes. docs/metrics.md lists them;
// judge/report/declared_metrics.cc has their labels. Called by KernelEvaluator::Time.
#pragma once

#include <cstddef>

#include "interpreter/device_session.h"  // CallRecord
#include "judge/problem/problem.h"
#include "judge/verdict/kernel_evaluation.h"

namespace kgrpo::evaluator_sim {

struct TimedFacts {
  const interpreter::CallRecord& record;
  const evaluator::Problem& problem;
  const simt::Device& device;
  double seconds;        // of the call
  size_t longest;        // index of the record's longest launch
  const char* own_file;  // the kernel's own file, whose lines are told
};

void AddTimeFacts(const TimedFacts& facts, evaluator::KernelEvaluation* evaluation);

}  // namespace kgrpo::evaluator_sim
