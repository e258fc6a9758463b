// gradient_reduction.h - gradients become their sums over the ranks, bucket by bucket, while the backward pass still
// computes others (as PyTorch's DistributedDataParallel does; Li et al. 2020). Used by optimizer.cc.
#ifndef KGRPO_TRAINER_SHARED_GRADIENT_REDUCTION_H
#define KGRPO_TRAINER_SHARED_GRADIENT_REDUCTION_H
#include <kgrpo/policy.h>
#include <kgrpo/sdk/collective.h>

#include <cstddef>
#include <exception>
#include <span>
#include <vector>

#include "trainer_shared/parameters.h"

namespace kgrpo::trainer {

// Elements of a span that are reduced at once.
struct GradientBucket {
  size_t span = 0;
  size_t begin = 0, end = 0;
};

// Buckets of at most `elements`, which together are every element of every span, in the order in which they are begun.
// The order is that in which a backward pass is likely to end with them: groups list their parameters from the first
// layer to the last, so what lies further back in its group comes first. It depends on sizes alone: ranks must not
// differ in it, and one of them may have no backward pass.
std::vector<GradientBucket> MakeBuckets(std::span<const ParameterSpan> spans, size_t elements);

// One thread. All ranks call the same functions but for the sink's.
class GradientReduction {
 public:
  static constexpr size_t kBucketBytes = size_t{25} << 20;  // DistributedDataParallel's

  // Borrows the spans' memory. `stream`: kgrpo_policy_info.stream.
  GradientReduction(const ParameterSet& set, const Collective& ranks, void* stream, size_t bucket_bytes = kBucketBytes);
  GradientReduction(const GradientReduction&) = delete;
  GradientReduction& operator=(const GradientReduction&) = delete;

  // The gradients are about to be accumulated anew.
  void Start();
  // For the last backward pass: a bucket is begun once it is final and those before it have begun. Where all of the
  // gradients are told of, the last piece waits for all buckets, since a policy may then wait for its device, and a
  // wait for other ranks is to be seen as one (loop/hang.h). Null where nothing can be begun early. What fails is
  // thrown by Finish.
  const kgrpo_gradient_sink* sink() const { return buckets_.empty() ? nullptr : &sink_; }
  // Returns once this rank's slices hold the sums over all ranks. The gradients must be there: who writes on a GPU has
  // waited for it. Nothing is under way afterwards, also where it throws.
  void Finish();

 private:
  ArrayTensor Gradients(const ParameterSpan& span) const;
  void NoteFinal(const kgrpo_tensor& piece);
  void BeginFinal();
  void Begin(const GradientBucket& bucket);
  void Wait();

  std::vector<ParameterSpan> spans_;
  int32_t device_type_, device_;
  Collective ranks_;
  void* stream_;
  std::vector<GradientBucket> buckets_;  // empty where the collective only blocks
  std::vector<size_t> final_;            // elements of each bucket that are
  size_t begun_ = 0;                     // buckets
  bool finished_ = false;
  std::exception_ptr failure_;
  kgrpo_gradient_sink sink_;
};

}  // namespace kgrpo::trainer
#endif
