#include "policy_qwen/model/sampler.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/topk.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include "policy_qwen/model/row_kernels.h"

namespace kgrpo::policy {
namespace {

// The position in each row at which the running sum of `weights` (float64 [rows, n], not negative) passes u times the
// row's sum: inversion of the distribution function. int64 [rows, 1].
at::Tensor Invert(const at::Tensor& weights, const std::vector<double>& uniforms) {
  const at::Tensor sums = weights.cumsum(1);
  const at::Tensor u = at::from_blob(const_cast<double*>(uniforms.data()), {static_cast<int64_t>(uniforms.size()), 1},
                                     at::TensorOptions().dtype(at::kDouble))
                           .to(weights.device());
  const at::Tensor thresholds = at::mul(u, sums.narrow(1, sums.size(1) - 1, 1));
  // right: the first position whose sum is above the threshold, which a token of weight 0 never is.
  return at::searchsorted(sums, thresholds, /*out_int32=*/false, /*right=*/true).clamp_max(sums.size(1) - 1);
}

// Candidates by falling probability with the weights of those filtered away set to 0.
struct Candidates {
  at::Tensor ids;      // int64 [rows, n]
  at::Tensor weights;  // float64 [rows, n]
};

// `weights_by_id`: in proportion to the probabilities.
Candidates Filter(const at::Tensor& logits, const at::Tensor& weights_by_id, const SamplingOptions& options) {
  at::Tensor sorted, ids;
  if (options.top_k > 0) {
    std::tie(sorted, ids) = at::topk(logits, std::min(options.top_k, logits.size(1)), 1, true, true);
  } else {
    std::tie(sorted, ids) = at::sort(logits, /*stable=*/true, /*dim=*/1, /*descending=*/true);
  }
  at::Tensor weights = weights_by_id.gather(1, ids).to(at::kDouble);
  if (options.top_p < 1.0) {
    const at::Tensor sums = weights.cumsum(1);
    const at::Tensor total = sums.narrow(1, sums.size(1) - 1, 1);
    // A token stays while those before it have not reached top_p; the first always stays.
    at::Tensor reached = at::sub(sums, weights).ge(at::mul(total, options.top_p));
    reached.narrow(1, 0, 1).fill_(false);
    weights = weights.masked_fill(reached, 0.0);
  }
  if (options.min_p > 0.0) {
    const at::Tensor likeliest = weights.narrow(1, 0, 1);
    weights = weights.masked_fill(weights.lt(at::mul(likeliest, options.min_p)), 0.0);
  }
  return {ids, weights};
}

bool HasFilter(const SamplingOptions& options) {
  return options.top_k > 0 || options.top_p < 1.0 || options.min_p > 0.0;
}

// exp(logit - greatest) of a row, with the sum of each block. To find the drawn token, Invert adds up blocks first,
// then the tokens of one block.
class RowWeights {
 public:
  RowWeights(const RowKernels& kernels, const float* logits, int64_t size, float* weights)
      : logits_(logits), weights_(weights), size_(size), greatest_(kernels.maximum(logits, size)) {
    for (int64_t begin = 0; begin < size; begin += kBlock) {
      const int64_t count = std::min(kBlock, size - begin);
      sums_.push_back(static_cast<double>(kernels.exponentials(logits + begin, count, greatest_, weights + begin)));
      total_ += sums_.back();
    }
  }

  // Of a row with NaN any id; its log-probability is NaN.
  int64_t Likeliest() const {
    const int64_t id = std::find(logits_, logits_ + size_, greatest_) - logits_;
    return id < size_ ? id : 0;
  }

  // The first token at which the running sum of weights passes u times their total. One of weight 0 is never drawn.
  int64_t Invert(double u) const {
    const double threshold = u * total_;
    double sum = 0;
    size_t block = 0;
    while (block + 1 < sums_.size() && !(sum + sums_[block] > threshold)) sum += sums_[block++];
    while (block > 0 && !(sums_[block] > 0)) sum -= sums_[--block];  // rounding went past the last block with weight
    const int64_t begin = static_cast<int64_t>(block) * kBlock, end = std::min(begin + kBlock, size_);
    int64_t last = begin;
    for (int64_t i = begin; i < end; ++i) {
      if (!(weights_[i] > 0)) continue;
      last = i;
      sum += static_cast<double>(weights_[i]);
      if (sum > threshold) break;
    }
    return last;
  }

  float Logprob(int64_t id) const {
    return static_cast<float>(static_cast<double>(logits_[id]) - static_cast<double>(greatest_) - std::log(total_));
  }

 private:
  static constexpr int64_t kBlock = 256;
  const float* logits_;
  const float* weights_;
  int64_t size_;
  float greatest_;
  std::vector<double> sums_;  // of each block
  double total_ = 0;
};

}  // namespace

void CheckSamplingOptions(const SamplingOptions& options) {
  const auto check = [](bool is_right, const std::string& message) {
    if (!is_right) throw Error(KGRPO_ERROR_INVALID, "sampling: " + message);
  };
  check(options.max_new_tokens >= 1, "max_new_tokens must be at least 1");
  check(std::isfinite(options.temperature) && options.temperature >= 0, "temperature must be 0 or above");
  check(options.top_k >= 0, "top_k must be 0 (off) or above");
  check(options.top_p > 0 && options.top_p <= 1, "top_p must be above 0 and at most 1 (off)");
  check(options.min_p >= 0 && options.min_p <= 1, "min_p must be from 0 (off) to 1");
}

// Samples each row by itself, in a fixed order: see row_kernels.h.
SampledTokens SampleTokens(const at::Tensor& logits, const SamplingOptions& options,
                           const std::vector<double>& uniforms) {
  const int64_t rows = logits.size(0), size = logits.size(1);
  const float* from = logits.const_data_ptr<float>();
  const at::Tensor weights = at::empty_like(logits);
  float* to = weights.mutable_data_ptr<float>();
  SampledTokens sampled;
  sampled.ids.resize(static_cast<size_t>(rows));
  sampled.logprobs.resize(static_cast<size_t>(rows));
  std::vector<std::optional<RowWeights>> made(static_cast<size_t>(rows));
  const bool is_greedy = options.temperature == 0.0;
  at::parallel_for(0, rows, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = static_cast<size_t>(i);
      const RowWeights& drawn = made[row].emplace(BestRowKernels(), from + i * size, size, to + i * size);
      sampled.ids[row] = is_greedy ? drawn.Likeliest() : drawn.Invert(uniforms[row]);
    }
  });
  if (!is_greedy && HasFilter(options)) {
    const Candidates candidates = Filter(logits, weights, options);
    const at::Tensor chosen = candidates.ids.gather(1, Invert(candidates.weights, uniforms));
    std::copy_n(chosen.const_data_ptr<int64_t>(), rows, sampled.ids.begin());
  }
  for (size_t row = 0; row < made.size(); ++row) sampled.logprobs[row] = made[row]->Logprob(sampled.ids[row]);
  return sampled;
}

}  // namespace kgrpo::policy
