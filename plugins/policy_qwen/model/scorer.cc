#include "policy_qwen/model/scorer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <utility>

namespace kgrpo::policy {
namespace {

template <typename Body>
void ForBlocks(int64_t rows, int64_t block, Body&& body) {
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

Scorer::Result Scorer::Forward(const Weights& weights, const std::vector<PackedSequence>& sequences,
                               const std::vector<int64_t>& targets, double temperature, bool want_entropies,
                               int64_t* room) {
  Result result;
  ScoredPass& pass = result.pass;
  pass.batch = transformer_.Pack(sequences, rotary_);
  pass.targets = IndexTensor(targets, rotary_.device());
  int64_t inputs = 0;
  for (const PackedSequence& sequence : sequences) {
    const auto length = static_cast<int64_t>(sequence.ids.size());
    pass.bytes += ActivationBytes(length, false);
    inputs += ActivationBytes(length, true);
  }
  pass.activations.inputs_only = room != nullptr && pass.bytes > *room;
  const int64_t bytes = pass.activations.inputs_only ? inputs : pass.bytes;
  const bool keeps = room != nullptr && bytes <= *room;
  if (keeps) *room -= bytes;
  pass.hidden = transformer_.Forward(weights, pass.batch, keeps ? &pass.activations : nullptr);

  std::vector<at::Tensor> logprobs, entropies, normalizers;
  const int64_t block = ops_.LogitRows(config_.vocabulary_size, rotary_.dtype());
  ForBlocks(pass.hidden.size(0), block, [&](int64_t begin, int64_t count) {
    const at::Tensor logits = Linear(pass.hidden.narrow(0, begin, count), weights.head, {});
    const Ops::Logprobs found =
        ops_.TokenLogprobs(logits, pass.targets.narrow(0, begin, count), temperature, want_entropies);
    logprobs.push_back(found.logprobs);
    entropies.push_back(found.entropies);
    normalizers.push_back(found.normalizers);
  });
  result.logprobs = at::cat(logprobs);
  if (want_entropies) result.entropies = at::cat(entropies);
  if (normalizers[0].defined()) pass.normalizers = at::cat(normalizers);
  if (room == nullptr) pass = {};
  return result;
}

void Scorer::Backward(const Weights& weights, const Weights& gradients, ScoredPass pass, double temperature,
                      const at::Tensor& d_logprobs, int64_t room, const LayerDone& done) {
  if (pass.activations.layers.empty()) {
    pass.activations.inputs_only = pass.bytes > room;
    transformer_.Forward(weights, pass.batch, &pass.activations);
  }
  at::Tensor d_hidden = at::empty_like(pass.hidden);
  const int64_t block = ops_.LogitRows(config_.vocabulary_size, rotary_.dtype());
  ForBlocks(pass.hidden.size(0), block, [&](int64_t begin, int64_t count) {
    const at::Tensor rows = pass.hidden.narrow(0, begin, count);
    const at::Tensor normalizers =
        pass.normalizers.defined() ? pass.normalizers.narrow(0, begin, count) : pass.normalizers;
    const at::Tensor d_logits =
        ops_.TokenLogprobsBackward(Linear(rows, weights.head, {}), pass.targets.narrow(0, begin, count), normalizers,
                                   d_logprobs.narrow(0, begin, count), temperature);
    IntoHidden(d_logits, weights.head, d_hidden.narrow(0, begin, count));
    LinearBackwardParameters(d_logits, rows, gradients.head, {});
  });
  transformer_.Backward(weights, gradients, pass.batch, pass.activations, d_hidden, done);
}

int64_t Scorer::ActivationBytes(int64_t length, bool inputs_only) const {
  int64_t elements = config_.hidden_size;  // of a row and layer
  if (!inputs_only) {
    const int64_t projected = config_.query_size() + 2 * config_.kv_size();
    elements += 3 * config_.hidden_size + projected * (config_.query_key_norm ? 2 : 1) + config_.query_size() +
                3 * config_.intermediate_size;
    if (!ops_.UsesFlashAttention(config_, rotary_.dtype())) {  // gathered heads and probabilities
      elements += projected + config_.head_count * std::min<int64_t>(length, 256);
    }
  }
  return length * elements * config_.layer_count * static_cast<int64_t>(c10::elementSize(rotary_.dtype()));
}

}  // namespace kgrpo::policy
