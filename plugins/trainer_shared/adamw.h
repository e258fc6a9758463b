// adamw.h - AdamW over a policy's parameters, with float32 masters of bfloat16 ones, and its saved state. Used by
// optimizer.cc, which adds clipping, the schedule and the treatment of non-finite gradients.
#ifndef KGRPO_TRAINER_SHARED_ADAMW_H
#define KGRPO_TRAINER_SHARED_ADAMW_H
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

// One thread. Moments and masters are made at the first step, so that an optimiser that only loads never holds them
// twice. Of several ranks each holds and steps its slice of every span (ZeRO's first stage; Rajbhandari et al. 2020),
// and all call the same functions.
class AdamW {
 public:
  // `parameters` are borrowed and outlive the optimiser; of several ranks all begin with the first's. `cuda` may be
  // null: CUDA parameters are then refused.
  AdamW(ParameterSet parameters, const AdamWOptions& options, CudaTensorMathFactory cuda, const Collective& ranks = {});

  // Euclidean norm of all gradients together, this rank's slices being the sums over all ranks
  // (gradient_reduction.h); not finite when one of them is not.
  double GradientNorm();

  // One step with gradients multiplied by gradient_scale.
  void Step(double learning_rate, double gradient_scale);

  uint64_t steps() const { return steps_; }
  const ParameterSet& parameters() const { return set_; }

  // The parameters' device, by the name for kgrpo_host.lock_device; and a function that waits until it is idle.
  std::string device() const { return set_.on_cuda ? "cuda:" + std::to_string(set_.device) : "cpu"; }
  void Wait() { math_->Wait(); }

  // Step count, moments, masters, and a fingerprint of the values: the same bytes whatever the number of ranks. Load
  // changes nothing unless it succeeds, and throws KGRPO_ERROR_INVALID when the state is of another model or of other
  // weights than the parameters now have. Commit comes last, after the reader's Finish.
  void Save(StateWriter& writer);
  struct Loaded;
  std::shared_ptr<Loaded> Load(StateReader& reader);
  void Commit(const std::shared_ptr<Loaded>& loaded);

 private:
  struct Moments {
    std::unique_ptr<DeviceArray> first, second;
    std::unique_ptr<DeviceArray> master;  // null for float32 values
  };

  // The elements of a span that this rank steps.
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
#endif
