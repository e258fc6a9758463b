// DeviceEvaluator::TimePytorch: times PyTorch, the baseline of KernelBench's speedups.
#include <kgrpo/sdk/error.h>

#include "evaluator_cuda/device_evaluator.h"

namespace kgrpo::evaluator_cuda {

void DeviceEvaluator::TimePytorch(const OpenProblem& open, KernelEvaluation* baseline) {
  const evaluator::Problem& problem = open.problem;
  if (problem.eager_file.empty()) return;
  std::vector<evaluator::TorchTensor> tensors;
  for (const evaluator::Parameter& parameter : problem.parameters) {
    if (parameter.IsTensor() && parameter.role != evaluator::Role::kOutput)
      tensors.push_back({evaluator::Info(parameter.dtype).name, parameter.ShapeAt(problem.timing), {}});
  }
  const Held held = HoldDevice();
  try {
    const evaluator::TorchTime time = pytorch_.Time(problem.eager_file, tensors);
    baseline->metrics.emplace_back("pytorch_seconds", time.mean_seconds);
    baseline->metrics.emplace_back("pytorch_deviation", time.deviation);
  } catch (const Error& error) {
    baseline->diagnosis += std::string(" PyTorch's time is not known: ") + error.what();
  }
}

}  // namespace kgrpo::evaluator_cuda
