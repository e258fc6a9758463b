#include "policy_qwen/model/token_logprobs.h"

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <algorithm>

#include "policy_qwen/model/ops.h"

namespace kgrpo::policy {
namespace {

// Logits that exist at a time: 32 MiB of float32.
constexpr int64_t kLogitsAtATime = int64_t{1} << 23;

// Calls body(begin, count) for blocks of rows.
template <typename Body>
void ForBlocks(int64_t rows, int64_t vocabulary, Body&& body) {
  const int64_t block = std::max<int64_t>(1, kLogitsAtATime / vocabulary);
  for (int64_t begin = 0; begin < rows; begin += block) body(begin, std::min(block, rows - begin));
}

// d_rows = d_logits head. Some libraries (MKL on AMD's processors) add float32 products one after another, which loses
// three digits over a vocabulary. So float32 on a CPU is added in pieces, each of which is rounded as a sum of its own.
void IntoHidden(const at::Tensor& d_logits, const at::Tensor& head, at::Tensor d_rows) {
  constexpr int64_t kPiece = 4096;
  const int64_t vocabulary = head.size(0);
  if (vocabulary <= kPiece || !head.is_cpu() || head.scalar_type() != at::kFloat) {
    at::mm_out(d_rows, d_logits, head);
    return;
  }
  d_rows.zero_();
  for (int64_t begin = 0; begin < vocabulary; begin += kPiece) {
    const int64_t count = std::min(kPiece, vocabulary - begin);
    d_rows.add_(at::mm(d_logits.narrow(1, begin, count), head.narrow(0, begin, count)));
  }
}

}  // namespace

at::Tensor Logits(const at::Tensor& hidden, const at::Tensor& head, double temperature) {
  at::Tensor logits = Linear(hidden, head, {}).to(at::kFloat);
  if (temperature != 1.0) logits.div_(temperature);
  return logits;
}

TokenLogprobs ComputeTokenLogprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                   double temperature, bool want_entropies) {
  TokenLogprobs result;
  const auto options = hidden.options().dtype(at::kFloat);
  result.logprobs = at::empty({hidden.size(0)}, options);
  if (want_entropies) result.entropies = at::empty({hidden.size(0)}, options);
  ForBlocks(hidden.size(0), head.size(0), [&](int64_t begin, int64_t count) {
    const at::Tensor logprobs = at::_log_softmax(Logits(hidden.narrow(0, begin, count), head, temperature), -1, false);
    const at::Tensor target = targets.narrow(0, begin, count).unsqueeze(1);
    result.logprobs.narrow(0, begin, count).copy_(logprobs.gather(1, target).squeeze(1));
    if (want_entropies) {
      result.entropies.narrow(0, begin, count).copy_(at::mul(logprobs, logprobs.exp()).sum({1}).neg_());
    }
  });
  return result;
}

// d logprob(target) / d logit_j = ([j = target] - p_j) / temperature.
at::Tensor TokenLogprobsBackward(const at::Tensor& d_logprobs, const at::Tensor& hidden, const at::Tensor& head,
                                 const at::Tensor& head_gradient, const at::Tensor& targets, double temperature) {
  at::Tensor d_hidden = at::empty_like(hidden);
  const at::Tensor scaled = at::mul(d_logprobs, 1.0 / temperature).unsqueeze(1);
  ForBlocks(hidden.size(0), head.size(0), [&](int64_t begin, int64_t count) {
    const at::Tensor rows = hidden.narrow(0, begin, count);
    const at::Tensor d = scaled.narrow(0, begin, count);
    at::Tensor d_logits = at::_log_softmax(Logits(rows, head, temperature), -1, false).exp_();
    d_logits.mul_(d).neg_().scatter_add_(1, targets.narrow(0, begin, count).unsqueeze(1), d);
    const at::Tensor d_rounded = d_logits.to(hidden.scalar_type());
    IntoHidden(d_rounded, head, d_hidden.narrow(0, begin, count));
    LinearBackwardParameters(d_rounded, rows, head_gradient, {});
  });
  return d_hidden;
}

}  // namespace kgrpo::policy
