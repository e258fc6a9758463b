#include "policy_qwen/model/sampler.h"

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/topk.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

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

Candidates Filter(const at::Tensor& logprobs, const SamplingOptions& options) {
  at::Tensor sorted, ids;
  if (options.top_k > 0) {
    std::tie(sorted, ids) = at::topk(logprobs, std::min(options.top_k, logprobs.size(1)), 1, true, true);
  } else {
    std::tie(sorted, ids) = at::sort(logprobs, /*stable=*/true, /*dim=*/1, /*descending=*/true);
  }
  at::Tensor weights = sorted.to(at::kDouble).exp_();
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

SampledTokens SampleTokens(const at::Tensor& logits, const SamplingOptions& options,
                           const std::vector<double>& uniforms) {
  const at::Tensor logprobs = at::_log_softmax(logits, -1, false);
  at::Tensor chosen;
  if (options.temperature == 0.0) {
    chosen = logprobs.argmax(1, /*keepdim=*/true);
  } else if (options.top_k > 0 || options.top_p < 1.0 || options.min_p > 0.0) {
    const Candidates candidates = Filter(logprobs, options);
    chosen = candidates.ids.gather(1, Invert(candidates.weights, uniforms));
  } else {
    chosen = Invert(logprobs.to(at::kDouble).exp_(), uniforms);
  }
  const at::Tensor chosen_logprobs = logprobs.gather(1, chosen).cpu();
  const at::Tensor chosen_ids = chosen.cpu();
  const int64_t* ids = chosen_ids.const_data_ptr<int64_t>();
  const float* values = chosen_logprobs.const_data_ptr<float>();
  return {std::vector<int64_t>(ids, ids + logits.size(0)), std::vector<float>(values, values + logits.size(0))};
}

}  // namespace kgrpo::policy
