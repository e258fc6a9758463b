// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/sampling.h - from logits to a token, as kgrpo_sampling asks. Used by kgrpo/sdk/cpu_policy.h.
#ifndef KGRPO_SDK_SAMPLING_H
#define KGRPO_SDK_SAMPLING_H
#include <kgrpo/policy.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace kgrpo {

// Log-probabilities of logits / temperature, temperature > 0. A logit of -infinity excludes its token; at least one
// token is not excluded.
inline std::vector<double> LogSoftmax(std::vector<double> logits, double temperature) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (double& logit : logits) {
    logit = (logit - highest) / temperature;
    total += std::exp(logit);
  }
  for (double& logit : logits) logit -= std::log(total);
  return logits;
}

// In nats, of the distribution with these log-probabilities.
inline double Entropy(const std::vector<double>& logprobs) {
  double entropy = 0;
  for (double logprob : logprobs) {
    if (logprob > -std::numeric_limits<double>::infinity()) entropy -= std::exp(logprob) * logprob;
  }
  return entropy;
}

// Returns the token drawn by `uniform`, in [0, 1), after top_k, top_p and min_p; the likeliest at temperature 0.
// `logprobs` are those of logits / temperature. Ties go to the lower id.
inline size_t SampleToken(const std::vector<double>& logprobs, const kgrpo_sampling& sampling, double uniform) {
  std::vector<size_t> order(logprobs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logprobs[a] > logprobs[b]; });
  if (sampling.temperature <= 0) return order[0];
  if (sampling.top_k > 0 && sampling.top_k < order.size()) order.resize(sampling.top_k);
  double total = 0;
  for (size_t id : order) total += std::exp(logprobs[id]);
  // top_p keeps the smallest set of likeliest tokens whose share of the probability that top_k left reaches top_p.
  size_t kept = 0;
  double mass = 0;
  while (kept < order.size() && (kept == 0 || sampling.top_p >= 1 || mass < sampling.top_p * total))
    mass += std::exp(logprobs[order[kept++]]);
  while (kept > 1 && std::exp(logprobs[order[kept - 1]] - logprobs[order[0]]) < sampling.min_p)
    mass -= std::exp(logprobs[order[--kept]]);
  double left = uniform * mass;
  for (size_t i = 0; i + 1 < kept; ++i) {
    left -= std::exp(logprobs[order[i]]);
    if (left < 0) return order[i];
  }
  // Rounding can let the draw pass the last token: skip tokens of probability 0.
  while (kept > 1 && std::isinf(logprobs[order[kept - 1]])) --kept;
  return order[kept - 1];
}

}  // namespace kgrpo
#endif
