#include "trainer_shared/gradient_reduction.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

namespace kgrpo::trainer {

std::vector<GradientBucket> MakeBuckets(std::span<const ParameterSpan> spans, size_t elements) {
  std::vector<size_t> sizes;  // of the groups
  for (const ParameterSpan& span : spans) {
    sizes.resize(std::max(sizes.size(), span.group + 1));
    sizes[span.group] += span.count;
  }
  std::vector<size_t> before(sizes.size(), 0);
  std::vector<std::pair<double, GradientBucket>> placed;  // with the relative place of its begin in its group, 0 to 1
  for (size_t i = 0; i < spans.size(); ++i) {
    const ParameterSpan& span = spans[i];
    for (size_t end = span.count; end > 0;) {
      const size_t begin = end - std::min(end, elements);
      const double place = static_cast<double>(before[span.group] + begin) / static_cast<double>(sizes[span.group]);
      placed.push_back({place, {i, begin, end}});
      end = begin;
    }
    before[span.group] += span.count;
  }
  std::ranges::stable_sort(placed, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<GradientBucket> buckets;
  buckets.reserve(placed.size());
  for (const auto& [place, bucket] : placed) buckets.push_back(bucket);
  return buckets;
}

GradientReduction::GradientReduction(const ParameterSet& set, const Collective& ranks, void* stream,
                                     size_t bucket_bytes)
    : spans_(set.spans),
      device_type_(set.on_cuda ? KGRPO_DEVICE_CUDA : KGRPO_DEVICE_CPU),
      device_(set.device),
      ranks_(ranks),
      stream_(stream),
      sink_{this,
            [](void* self, const kgrpo_tensor* piece) { static_cast<GradientReduction*>(self)->NoteFinal(*piece); }} {
  if (ranks_.reduces_in_background()) buckets_ = MakeBuckets(spans_, bucket_bytes / sizeof(float));
  Start();
}

ArrayTensor GradientReduction::Gradients(const ParameterSpan& span) const {
  return {span.gradient, span.count, KGRPO_DTYPE_FLOAT, 32, device_type_, device_};
}

void GradientReduction::Start() {
  final_.assign(buckets_.size(), 0);
  begun_ = 0;
  finished_ = false;
  failure_ = nullptr;
}

void GradientReduction::NoteFinal(const kgrpo_tensor& piece) {
  const auto* first = reinterpret_cast<const float*>(static_cast<const char*>(piece.data) + piece.byte_offset);
  const float* last = first + piece.shape[0];
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const float* const gradient = spans_[buckets_[i].span].gradient;
    const float* const begin = std::max(first, gradient + buckets_[i].begin);
    const float* const end = std::min(last, gradient + buckets_[i].end);
    if (begin < end) final_[i] += static_cast<size_t>(end - begin);
    if (final_[i] > buckets_[i].end - buckets_[i].begin && !failure_) {
      failure_ = std::make_exception_ptr(Error(
          KGRPO_ERROR_INTERNAL, "the policy's backward_in_pieces told of a piece of the gradients more than once"));
    }
  }
  try {
    BeginFinal();
    if (begun_ == buckets_.size() && !finished_) Wait();
  } catch (...) {  // the caller is the policy, in C: Finish rethrows
    if (!failure_) failure_ = std::current_exception();
  }
}

void GradientReduction::BeginFinal() {
  while (!failure_ && begun_ < buckets_.size()) {
    const GradientBucket& bucket = buckets_[begun_];
    if (final_[begun_] < bucket.end - bucket.begin) return;
    Begin(bucket);
  }
}

void GradientReduction::Begin(const GradientBucket& bucket) {
  ++begun_;  // even if it fails: the other ranks have begun this bucket, too
  ranks_.BeginReduceScatter(Gradients(spans_[bucket.span]), bucket.begin, bucket.end, stream_);
}

void GradientReduction::Wait() {
  finished_ = true;
  ranks_.FinishReductions();
}

void GradientReduction::Finish() {
  if (!finished_ && buckets_.empty()) {
    finished_ = true;
    for (const ParameterSpan& span : spans_) ranks_.ReduceScatter(Gradients(span));
  }
  while (!finished_) {
    try {
      while (begun_ < buckets_.size()) Begin(buckets_[begun_]);
      Wait();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace kgrpo::trainer
