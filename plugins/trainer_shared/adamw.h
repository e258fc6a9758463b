// adamw.h - AdamW over a policy's parameters, with float32 masters of bfloat16 ones, and its saved state. Used by
// optimizer.cc, which adds clipping, the schedule and the treatment of non-finite gradients.
#pragma once
#include <kgrpo/sdk/collective.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer_shared/parameters.h"
#include "trainer_shared/state_stream.h"
#include "trainer_shared/tensor_math.h"

namespace kgrpo::trainer {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // of parameters whose decay flag is set
};

// One thread. Moments and masters are allocated at the first step, so that an optimiser that loads its state never
// holds them twice. With several ranks, each rank holds and steps its slice of every span (ZeRO stage 1; Rajbhandari et
// al. 2020), and all ranks call the same functions.
class AdamW {
 public:
  // Borrows `parameters`, which outlive the optimiser. With several ranks, all receive rank 0's values. If `cuda` is
  // null, CUDA parameters are refused.
  AdamW(ParameterSet parameters, const AdamWOptions& options, CudaTensorMathFactory cuda, const Collective& ranks = {});

  // Returns the Euclidean norm of all gradients together; not finite if one of them is not. This rank's slices must
  // hold the sums over all ranks (gradient_reduction.h).
  double GradientNorm();

  // One step with gradients multiplied by gradient_scale.
  void Step(double learning_rate, double gradient_scale);

  uint64_t steps() const { return steps_; }
  const ParameterSet& parameters() const { return set_; }

  // Name of the parameters' device for kgrpo_host.lock_device. Wait returns once that device is idle.
  std::string device() const { return set_.on_cuda ? "cuda:" + std::to_string(set_.device) : "cpu"; }
  void Wait() { math_->Wait(); }

  // Save writes step count, moments, masters and a fingerprint of the values; the bytes do not depend on the number of
  // ranks. Load does not change the optimiser. Load throws KGRPO_ERROR_INVALID if the state belongs to another model or
  // to other weights than the parameters now have. Commit applies the loaded state, after the reader's Finish.
  void Save(StateWriter& writer);
  struct Loaded;
  std::shared_ptr<Loaded> Load(StateReader& reader);
  void Commit(const std::shared_ptr<Loaded>& loaded);

 private:
  struct Moments {
    std::unique_ptr<DeviceArray> first, second;
    std::unique_ptr<DeviceArray> master;  // null for float32 values
  };

  // The elements of a span that one rank steps.
  struct Slice {
    size_t begin = 0, end = 0;
    size_t count() const { return end - begin; }
  };
  Slice SliceOf(const ParameterSpan& span, uint32_t rank) const;
  Slice SliceOf(const ParameterSpan& span) const { return SliceOf(span, ranks_.rank()); }
  ArrayTensor Values(const ParameterSpan& span) const;

  Moments MakeMoments(const ParameterSpan& span);
  void EnsureMoments();
  uint64_t Fingerprint(const Parameter& parameter);
  void SaveArray(StateWriter& writer, const Parameter& parameter, DeviceArray& array);
  void LoadArray(StateReader& reader, const Parameter& parameter, DeviceArray& array);

  ParameterSet set_;
  AdamWOptions options_;
  Collective ranks_;
  std::unique_ptr<TensorMath> math_;
  std::vector<Moments> moments_;  // of this rank's slice of each span; empty before the first step
  uint64_t steps_ = 0;
};

}  // namespace kgrpo::trainer
