// The process that runs a problem's TorchScript files: its oracle, and tapes that draw inputs no distribution draws. It
// alone links libtorch. Used by oracle.cc and inputs.cc.
#ifndef KGRPO_EVALUATOR_SHARED_TORCH_WORKER_H
#define KGRPO_EVALUATOR_SHARED_TORCH_WORKER_H

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "evaluator_shared/subprocess.h"  // Subprocess, Descriptor

namespace kgrpo::evaluator {

// A tensor on its way to or from the worker: row-major, the dtype by its name in problem.yaml.
struct TorchTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

// One process, started at the first request, started again where it died. Requests wait for each other. [any thread]
class TorchWorker {
 public:
  // The one of this process.
  static TorchWorker& Shared();

  // forward(tensors) of a TorchScript file, floating tensors converted to `dtype`. Throws Error(KGRPO_ERROR_INVALID)
  // with PyTorch's words where that fails, Error(KGRPO_ERROR_UNAVAILABLE) where the worker cannot be started.
  std::vector<TorchTensor> Run(const std::string& file, const std::string& dtype,
                               const std::vector<TorchTensor>& tensors);

  // What forward() of a tape returns after torch.manual_seed(seed), bit for bit as PyTorch on a CPU. Throws likewise.
  std::vector<TorchTensor> Replay(const std::string& file, uint64_t seed);

 private:
  std::vector<TorchTensor> Ask(const std::vector<std::string>& request);
  void Start();

  std::mutex mutex_;
  std::unique_ptr<Subprocess> process_;
  Descriptor socket_;
};

}  // namespace kgrpo::evaluator

#endif
