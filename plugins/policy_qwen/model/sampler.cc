#include "policy_qwen/model/sampler.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "policy_qwen/model/row_kernels.h"

namespace kgrpo::policy {
namespace {

// exp(logit - greatest) of a row, with the sum of each block. To find the drawn token, Invert adds up blocks first,
// then the tokens of one block.
class RowWeights {
 public:
  explicit RowWeights(std::span<const float> logits)
      : logits_(logits),
        weights_(logits.size()),
        greatest_(BestRowKernels().maximum(logits.data(), static_cast<int64_t>(logits.size()))) {
    for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
      const auto count = static_cast<int64_t>(std::min(kBlock, logits.size() - begin));
      sums_.push_back(static_cast<double>(
          BestRowKernels().exponentials(logits.data() + begin, count, greatest_, weights_.data() + begin)));
      total_ += sums_.back();
    }
  }

  // Of a row that is not finite any id; its log-probability is NaN.
  bool finite() const { return std::isfinite(total_); }
  size_t Likeliest() const {
    const auto id = static_cast<size_t>(std::ranges::find(logits_, greatest_) - logits_.begin());
    return id < logits_.size() ? id : 0;
  }

  // The first token at which the running sum of weights passes u times their total. One of weight 0 is never drawn.
  size_t Invert(double u) const {
    const double threshold = u * total_;
    double sum = 0;
    size_t block = 0;
    while (block + 1 < sums_.size() && !(sum + sums_[block] > threshold)) sum += sums_[block++];
    while (block > 0 && !(sums_[block] > 0)) sum -= sums_[--block];  // rounding went past the last block with weight
    size_t last = block * kBlock;
    for (size_t i = last; i < std::min((block + 1) * kBlock, weights_.size()); ++i) {
      if (!(weights_[i] > 0)) continue;
      last = i;
      sum += static_cast<double>(weights_[i]);
      if (sum > threshold) break;
    }
    return last;
  }

  // The same among the tokens that the filters leave, in the falling order of their logits, of equal ones the smaller
  // id first.
  size_t InvertFiltered(const SamplingOptions& options, double u) const {
    std::vector<size_t> ids;
    for (size_t id = 0; id < weights_.size(); ++id) {
      if (weights_[id] > 0) ids.push_back(id);
    }
    const auto is_before = [&](size_t a, size_t b) {
      return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
    };
    if (const auto k = static_cast<size_t>(options.top_k); k > 0 && k < ids.size()) {
      std::ranges::nth_element(ids, ids.begin() + options.top_k, is_before);
      ids.resize(k);
    }
    std::ranges::sort(ids, is_before);
    const auto weight = [&](size_t i) { return static_cast<double>(weights_[ids[i]]); };
    double total = 0, sum = 0, kept = 0;
    for (size_t i = 0; i < ids.size(); ++i) total += weight(i);
    // A token stays while those before it have not reached top_p; the first always stays.
    size_t count = 0;
    for (; count < ids.size(); ++count) {
      sum += weight(count);
      if (count > 0 && options.top_p < 1.0 && sum - weight(count) >= total * options.top_p) break;
      if (weight(count) < weight(0) * options.min_p) break;
      kept += weight(count);
    }
    double running = 0;
    for (size_t i = 0; i < count; ++i) {
      running += weight(i);
      if (running > u * kept) return ids[i];
    }
    return ids[count - 1];
  }

  float Logprob(size_t id) const {
    return static_cast<float>(static_cast<double>(logits_[id]) - static_cast<double>(greatest_) - std::log(total_));
  }

 private:
  static constexpr size_t kBlock = 256;
  std::span<const float> logits_;
  std::vector<float> weights_;
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

SampledToken SampleToken(std::span<const float> logits, const SamplingOptions& options, double uniform) {
  const RowWeights row(logits);
  const bool is_filtered = options.top_k > 0 || options.top_p < 1.0 || options.min_p > 0.0;
  const size_t id = options.temperature == 0.0 || !row.finite() ? row.Likeliest()
                    : is_filtered                               ? row.InvertFiltered(options, uniform)
                                                                : row.Invert(uniform);
  return {static_cast<int32_t>(id), row.Logprob(id)};
}

}  // namespace kgrpo::policy
