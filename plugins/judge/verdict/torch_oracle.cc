// The oracle of a problem with TorchScript files, one for each size: run by kgrpo_torch_worker. Also Oracle::Load,
// which chooses a problem's oracle.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

#include "judge/process/torch_worker.h"
#include "judge/verdict/oracle.h"

namespace kgrpo::evaluator {
namespace {

class TorchOracle : public Oracle {
 public:
  explicit TorchOracle(std::string build) : Oracle(std::move(build)) {}

  std::vector<Expected> Run(const Problem& problem, const Bindings& size,
                            const std::vector<Argument>& arguments) const override;
};

// The inputs and inouts, in order.
std::vector<TorchTensor> TensorsOf(const Problem& problem, const Bindings& size,
                                   const std::vector<Argument>& arguments) {
  std::vector<TorchTensor> tensors;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsTensor() || parameter.role == Role::kOutput) continue;
    const auto* bytes = reinterpret_cast<const char*>(arguments[i].bytes.data());
    tensors.push_back({Info(parameter.dtype).name, parameter.ShapeAt(size), {bytes, arguments[i].bytes.size()}});
  }
  return tensors;
}

std::vector<Expected> TorchOracle::Run(const Problem& problem, const Bindings& size,
                                       const std::vector<Argument>& arguments) const {
  const auto found = std::find_if(problem.oracle_files.begin(), problem.oracle_files.end(),
                                  [&](const auto& file) { return file.first == size; });
  if (found == problem.oracle_files.end())
    throw Error(KGRPO_ERROR_INVALID, problem.directory + ": no oracle/*.pt for " + SizeText(size));
  const std::vector<TorchTensor> results =
      TorchWorker::Shared().Run(found->second, Info(problem.oracle_dtype).name, TensorsOf(problem, size, arguments));
  std::vector<Expected> values(problem.parameters.size());
  size_t next = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    if (next == results.size()) throw Error(KGRPO_ERROR_INVALID, found->second + ": returns too few tensors");
    const TorchTensor& result = results[next++];
    const DTypeInfo& info = Info(*DTypeFromName(result.dtype));
    const size_t elements = result.bytes.size() / info.size;
    if (elements != static_cast<size_t>(arguments[i].elements)) {
      throw Error(KGRPO_ERROR_INVALID, found->second + ": gives " + std::to_string(elements) + " elements for " +
                                           parameter.name + ", which has " + std::to_string(arguments[i].elements));
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(result.bytes.data());
    const bool floating = Info(parameter.dtype).is_floating;
    for (size_t e = 0; e < elements; ++e) {
      if (floating) {
        values[i].reals.push_back(LoadDouble(info.dtype, bytes + e * info.size));
      } else {
        values[i].wholes.push_back(LoadInteger(info.dtype, bytes + e * info.size));
      }
    }
  }
  return values;
}

}  // namespace

std::shared_ptr<const Oracle> LoadTorchOracle(const Problem& problem) {
  return std::make_shared<TorchOracle>("torchscript " + problem.digest);
}

std::shared_ptr<const Oracle> Oracle::Load(const Problem& problem, const std::string& cache_directory) {
  switch (problem.oracle) {
    case OracleKind::kReference:
    case OracleKind::kChecker: return nullptr;
    case OracleKind::kSource: return LoadSourceOracle(problem, cache_directory);
    case OracleKind::kTorchScript: return LoadTorchOracle(problem);
  }
  return nullptr;
}

}  // namespace kgrpo::evaluator
