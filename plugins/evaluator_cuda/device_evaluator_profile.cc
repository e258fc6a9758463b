// DeviceEvaluator::Profile: hands a correct kernel and inputs at the timing size to the profiler, and adds what it
// found.
#include <kgrpo/sdk/error.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "evaluator_cuda/device_evaluator.h"
#include "evaluator_cuda/profile_facts.h"
#include "evaluator_cuda/timing_inputs.h"
#include "evaluator_cuda/worker/profile_plan.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator_cuda {
namespace {

void Append(std::ofstream& file, const void* data, size_t bytes) {
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

void RequireWritten(std::ofstream& file, const std::string& path) {
  file.close();
  if (!file)
    throw Error(KGRPO_ERROR_UNAVAILABLE, path + ": cannot be written; is the disk full? TMPDIR chooses another");
}

}  // namespace

Profiler::Options DeviceEvaluator::ProfilerOptions(const Worker::Options& worker) const {
  Profiler::Options options;
  options.helper_directory = helper_directory_;
  options.cuda_home = toolkit_.home;
  options.runtime_library = worker.runtime_library;
  options.device_uuid = worker.device_uuid;
  options.device_node = worker.device_node;
  options.compute_capability = device_.compute_capability();
  options.sandbox_off = options_.sandbox == evaluator::SandboxMode::kOff;
  return options;
}

// Throws if profiling fails before any profile has succeeded: the machine is at fault, since a problem's reference is
// profiled first. A later failure is noted in the diagnosis; it does not change the verdict.
void DeviceEvaluator::Profile(const OpenProblem& open, const evaluator::CompiledKernel& kernel, uint64_t key,
                              KernelEvaluation* evaluation) {
  ThrowIfCancelled();
  const evaluator::ScratchFolder folder(sandbox_);
  const std::string plan_path = folder.path() + "/" + kProfilePlanFile,
                    object_path = folder.path() + "/" + kProfileObjectFile;
  {
    // Drawn on the device, as the inputs of timed calls are.
    const TimingInputs inputs(device_, open.problem, evaluator::SubKey(key, 3));
    DrawOneSet(inputs, candidate_memory_);
    const std::vector<Plan::Value> values = inputs.Arguments(1, 0, 0);
    std::vector<ProfileParameter> parameters(values.size());
    for (size_t i = 0; i < values.size(); ++i) parameters[i] = {0, values[i].value};
    for (const Layout::Tensor& tensor : inputs.tensors()) parameters[tensor.parameter] = {tensor.bytes, 0};
    std::ofstream plan(plan_path, std::ios::binary);
    const ProfilePlanHeader header = {kernel.cubin.size(), parameters.size()};
    Append(plan, &header, sizeof header);
    Append(plan, parameters.data(), parameters.size() * sizeof(ProfileParameter));
    Append(plan, kernel.cubin.data(), kernel.cubin.size());
    std::vector<uint8_t> bytes;
    for (const Layout::Tensor& tensor : inputs.tensors()) {  // in the order of the parameters
      bytes.resize(tensor.bytes);
      device_.Read(bytes.data(), candidate_memory_.data() + inputs.Offset(0, 0, tensor), tensor.bytes);
      Append(plan, bytes.data(), bytes.size());
    }
    RequireWritten(plan, plan_path);
    std::ofstream object(object_path, std::ios::binary);
    Append(object, kernel.object.data(), kernel.object.size());
    RequireWritten(object, object_path);
    chmod(object_path.c_str(), 0500);
  }
  try {
    const ProfileFacts facts = FactsOf(profiler_->Run(folder.path()));
    evaluation->metrics.insert(evaluation->metrics.end(), facts.metrics.begin(), facts.metrics.end());
    evaluation->diagnosis += " " + facts.text;
  } catch (const Error& error) {
    if (!profiler_->has_worked()) throw;
    evaluation->diagnosis += std::string(" Not profiled: ") + error.what();
    evaluation->transient = true;  // a later evaluation may succeed
  }
}

}  // namespace kgrpo::evaluator_cuda
