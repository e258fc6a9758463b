// gradient_reduction.h - sums gradients over the ranks, bucket by bucket, while the backward pass still computes others
// (as PyTorch's DistributedDataParallel does; Li et al. 2020). Used by optimizer.cc.
#pragma once
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

// Divides all spans into buckets of at most `elements`, in the order in which their reductions begin. The order follows
// a backward pass: groups list their parameters from the first layer to the last, so buckets further back in their
// group come first. The order depends on sizes alone: all ranks must agree on it, also a rank that has no backward
// pass.
std::vector<GradientBucket> MakeBuckets(std::span<const ParameterSpan> spans, size_t elements);

// One thread. All ranks call the same functions, except for the sink's.
class GradientReduction {
 public:
  static constexpr size_t kBucketBytes = size_t{25} << 20;  // DistributedDataParallel's

  // Borrows the spans' memory. `stream`: kgrpo_policy_info.stream.
  GradientReduction(const ParameterSet& set, const Collective& ranks, void* stream, size_t bucket_bytes = kBucketBytes);
  GradientReduction(const GradientReduction&) = delete;
  GradientReduction& operator=(const GradientReduction&) = delete;

  // Call before gradients are accumulated anew.
  void Start();
  // Returns the sink for the last backward pass, or null if no reduction can begin early. A bucket's reduction begins
  // once the bucket is final and all buckets before it have begun. If the pass reports all gradients, the report of the
  // last piece waits for all reductions. A policy may wait for its device afterwards, and a wait for other ranks must
  // be visible as such (loop/hang.h). Finish throws the errors.
  const kgrpo_gradient_sink* sink() const { return buckets_.empty() ? nullptr : &sink_; }
  // Returns once this rank's slices hold the sums over all ranks. The gradients must be complete: a caller that
  // computes them on a GPU waits for the GPU first. No reduction is in flight afterwards, even if it throws.
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
  std::vector<GradientBucket> buckets_;  // empty if the collective cannot reduce in the background
  std::vector<size_t> final_;            // elements of each bucket that are final
  size_t begun_ = 0;                     // buckets whose reduction has begun
  bool finished_ = false;
  std::exception_ptr failure_;
  kgrpo_gradient_sink sink_;
};

}  // namespace kgrpo::trainer
