#include "loop/learned.h"

#include "loop/coder_faults.h"

namespace kgrpo {

std::string CommonestFault(RunDatabase& database) {
  CoderFaults faults;
  for (const CoderFaultCount& fault : database.ReadCoderFaults())
    faults.Count(fault.outcome, fault.message, fault.count);
  return faults.Commonest();
}

bool NothingWasLearned(RunDatabase& database) {
  // A step that was not skipped had samples, from rollouts or from other data.
  const size_t steps = database.Steps().size();
  return steps > 0 && database.MetricCurve("train/skipped").size() >= steps;
}

}  // namespace kgrpo
