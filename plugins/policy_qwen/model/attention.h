// Causal attention over packed sequences of different lengths, with grouped key-value heads: its plan, and what its
// derivative needs. Ops::Attention (ops.h) computes it.
//
// Sequences lie packed, one after the other, without padding. Inside, those of about the same length form a group,
// whose heads are gathered into padded batches; keys behind a query, and padding, are masked. Scores of a group are
// computed in blocks of query rows, so that memory stays bounded however long the sequences are.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_ATTENTION_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "policy_qwen/model/config.h"

namespace kgrpo::policy {

// Says which query rows see which keys, and where the gathered heads lie. Built once a batch, used by all layers.
// Either for the functions below or for FlashAttention-2.
struct AttentionPlan {
  struct Group {
    int64_t sequences = 0;
    int64_t queries = 0;      // rows a sequence, padded
    int64_t keys = 0;         // rows a sequence, padded
    int64_t query_begin = 0;  // of the group's heads among the gathered ones
    int64_t key_begin = 0;
    int64_t first_position = 0;  // the greatest position of a first query row: row r sees at most this + r + 1 keys
    // int64 [sequences or 1 if all are alike, 1, 1, 1, 1]: the position of the first query, the number of queries.
    at::Tensor first, counts;
  };
  std::vector<Group> groups;
  // Gathered head -> packed head, -1 for padding; and back. Gathered queries are ordered [sequence, kv head, query head
  // of it, row], keys and values [sequence, kv head, row]; packed ones [row, head].
  at::Tensor query_index, query_place;
  at::Tensor key_index, key_place;

  // FlashAttention-2's: where sequences end, int32 [sequences + 1], cumulative, from 0; the most rows of a sequence.
  at::Tensor query_ends, key_ends;
  int64_t most_queries = 0, most_keys = 0;
};

// `lengths`: rows of each sequence, in packed order; best sorted. `query_counts`: how many of the last rows of each are
// queries; the queries' packed order follows the sequences'.
AttentionPlan MakeAttentionPlan(const ModelConfig& config, const std::vector<int64_t>& lengths,
                                const std::vector<int64_t>& query_counts, at::Device device);
AttentionPlan MakeFlashAttentionPlan(const std::vector<int64_t>& lengths, const std::vector<int64_t>& query_counts,
                                     at::Device device);

// Values that the backward needs.
struct AttentionActivations {
  at::Tensor queries, keys, values;             // gathered; flash attention: as they came
  std::vector<at::Tensor> probabilities;        // a group each; undefined where they are computed again
  at::Tensor output, log_sums, random, unused;  // flash attention's
};

struct AttentionGradients {
  at::Tensor q, k, v;  // shaped as the inputs
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_ATTENTION_H_
