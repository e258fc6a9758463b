// The process that runs a problem's TorchScript files: its oracle, tapes that draw inputs no distribution draws, and
// PyTorch's own computation, for its time on a GPU. It alone links libtorch. Used by torch_oracle.cc, inputs.cc and
// evaluator_cuda.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/pool.h"  // Helper

namespace kgrpo::evaluator {

// A tensor on its way to or from the worker: row-major, the dtype by its name in problem.yaml.
struct TorchTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

// Time of a call, measured as KernelBench measures PyTorch.
struct TorchTime {
  double mean_seconds = 0, deviation = 0;
  int calls = 0;
};

// One process, started at the first request, started again where it died. Requests wait for each other. [any thread]
class TorchWorker {
 public:
  // The one of this process, without a GPU.
  static TorchWorker& Shared();

  // `gpu`: the UUID of the GPU that it sees ("GPU-..."), as CUDA_VISIBLE_DEVICES takes it; "" for none.
  explicit TorchWorker(std::string gpu) : gpu_(std::move(gpu)) {}

  // forward(tensors) of a TorchScript file, floating tensors converted to `dtype`. Throws Error(KGRPO_ERROR_INVALID)
  // with PyTorch's words where that fails, Error(KGRPO_ERROR_UNAVAILABLE) where the worker cannot be started.
  std::vector<TorchTensor> Run(const std::string& file, const std::string& dtype,
                               const std::vector<TorchTensor>& tensors);

  // The results of a tape's forward() after torch.manual_seed(seed), bit for bit as PyTorch on a CPU. Throws likewise.
  std::vector<TorchTensor> Replay(const std::string& file, uint64_t seed);

  // Times forward on its GPU for tensors of these dtypes and shapes (their bytes are not used). Throws likewise; also
  // where libtorch cannot use the GPU.
  TorchTime Time(const std::string& file, const std::vector<TorchTensor>& tensors);

 private:
  // The answer's parts after "ok".
  std::vector<std::string> Ask(const std::vector<std::string>& request);
  process::Subprocess::Spec Spec(int socket) const;

  const std::string gpu_;
  std::mutex mutex_;
  std::optional<process::Helper> helper_;
};

}  // namespace kgrpo::evaluator
