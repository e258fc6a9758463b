#include "policy_qwen/model/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "policy_qwen/model/ops.h"

namespace kgrpo::policy {
namespace {

// Limit of scores in memory at a time: sequences are grouped, and query rows are cut into blocks, to stay below it.
constexpr int64_t kScoresAtATime = int64_t{1} << 22;
// Probabilities of sequences up to this long are kept for the backward; longer ones are computed again.
constexpr int64_t kKeptKeys = 256;
// A sequence joins a group if its length is at least this part of the longest, which bounds the cost of padding.
constexpr double kLeastFill = 0.75;

struct Range {
  size_t begin;
  size_t end;
};

std::vector<Range> GroupSequences(int64_t head_count, const std::vector<int64_t>& lengths,
                                  const std::vector<int64_t>& query_counts) {
  std::vector<Range> ranges;
  int64_t longest = 0, shortest = 0, most_queries = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t new_longest = std::max(longest, lengths[i]);
    const int64_t new_shortest = std::min(shortest, lengths[i]);
    const int64_t new_queries = std::max(most_queries, query_counts[i]);
    const int64_t members = ranges.empty() ? 0 : static_cast<int64_t>(i - ranges.back().begin);
    if (members > 0 && static_cast<double>(new_shortest) >= kLeastFill * static_cast<double>(new_longest) &&
        (members + 1) * head_count * new_queries * new_longest <= kScoresAtATime) {
      ranges.back().end = i + 1;
      longest = new_longest;
      shortest = new_shortest;
      most_queries = new_queries;
    } else {
      ranges.push_back({i, i + 1});
      longest = shortest = lengths[i];
      most_queries = query_counts[i];
    }
  }
  return ranges;
}

// Sets what MaskOf needs: one entry if all sequences of the group are alike.
void SetPositions(const std::vector<int64_t>& lengths, const std::vector<int64_t>& query_counts, Range range,
                  at::Device device, AttentionPlan::Group* group) {
  std::vector<int64_t> first, counts;
  bool all_alike = true;
  for (size_t i = range.begin; i < range.end; ++i) {
    first.push_back(lengths[i] - query_counts[i]);
    all_alike &= first.back() == first.front();
    counts.push_back(query_counts[i]);
  }
  if (all_alike) first.resize(1), counts.assign(1, group->queries);
  const auto entries = static_cast<int64_t>(first.size());
  group->first = IndexTensor(first, device).view({entries, 1, 1, 1, 1});
  group->counts = IndexTensor(counts, device).view({entries, 1, 1, 1, 1});
}

// The mask of a block of rows, made when it is used: that of all rows would take 4 bytes for each pair of tokens.
// float32 [sequences or 1, 1, 1, count, keys], 0 or -inf, to be added to scores. Row r of a sequence is at the position
// first + r and sees the keys up to there. Padded rows see the first key, so that they hold finite numbers, which
// nobody reads.
at::Tensor MaskOf(const AttentionPlan::Group& group, int64_t begin, int64_t count, int64_t keys) {
  const at::Tensor rows = at::arange(begin, begin + count, group.first.options()).view({1, 1, 1, count, 1});
  const at::Tensor last = at::where(rows.lt(group.counts), group.first + rows, at::zeros_like(group.first));
  const at::Tensor hidden = at::arange(keys, group.first.options()).view({1, 1, 1, 1, keys}).gt(last);
  const auto floats = group.first.options().dtype(at::kFloat);
  return at::zeros(hidden.sizes(), floats).masked_fill_(hidden, -std::numeric_limits<float>::infinity());
}

// Views of a group's gathered heads as batches of matrices.
struct GroupView {
  GroupView(const ModelConfig& config, const AttentionPlan::Group& g) : config(config), group(g) {}

  int64_t batch() const { return group.sequences * config.kv_head_count; }
  int64_t heads_each() const { return config.head_count / config.kv_head_count; }

  // [batch, query heads of a kv head * queries, head size]
  at::Tensor Queries(const at::Tensor& gathered) const {
    const int64_t rows = heads_each() * group.queries;
    return gathered.narrow(0, group.query_begin, batch() * rows).view({batch(), rows, config.head_size});
  }
  // [batch, keys, head size]
  at::Tensor Keys(const at::Tensor& gathered) const {
    return gathered.narrow(0, group.key_begin, batch() * group.keys).view({batch(), group.keys, config.head_size});
  }

  const ModelConfig& config;
  const AttentionPlan::Group& group;
};

// Query rows begin .. begin + count of each sequence, as a batch of matrices; a view when that is all of them.
at::Tensor BlockOf(const GroupView& view, const at::Tensor& queries, int64_t begin, int64_t count) {
  if (count == view.group.queries) return queries;
  return queries.view({view.batch(), view.heads_each(), view.group.queries, -1})
      .narrow(2, begin, count)
      .reshape({view.batch(), view.heads_each() * count, -1});
}

// The opposite: writes a block of rows from `begin` on.
void SetBlock(const GroupView& view, const at::Tensor& queries, int64_t begin, const at::Tensor& block) {
  const at::Tensor rows = block.view({view.batch(), view.heads_each(), -1, view.config.head_size});
  queries.view({view.batch(), view.heads_each(), view.group.queries, -1}).narrow(2, begin, rows.size(2)).copy_(rows);
}

// softmax(scale q k^T + mask) of a block: [batch, heads each * count, keys] in the model's dtype, computed in float32.
at::Tensor Probabilities(const GroupView& view, const at::Tensor& queries, const at::Tensor& keys, int64_t begin,
                         int64_t count) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(view.config.head_size));
  at::Tensor scores = at::bmm(queries, keys.transpose(1, 2)).to(at::kFloat);
  scores.mul_(scale);
  scores.view({view.group.sequences, view.config.kv_head_count, view.heads_each(), count, keys.size(1)})
      .add_(MaskOf(view.group, begin, count, keys.size(1)));
  return at::_softmax(scores, -1, false).to(queries.scalar_type());
}

int64_t BlockSize(const GroupView& view) {
  const int64_t scores_a_row = view.group.sequences * view.config.head_count * view.group.keys;
  return std::clamp<int64_t>(kScoresAtATime / scores_a_row, 1, view.group.queries);
}

// Greatest number of keys that one of the query rows begin .. begin + count sees.
int64_t VisibleKeys(const AttentionPlan::Group& group, int64_t begin, int64_t count) {
  return std::min(group.first_position + begin + count, group.keys);
}

}  // namespace

AttentionPlan MakeAttentionPlan(const ModelConfig& config, const std::vector<int64_t>& lengths,
                                const std::vector<int64_t>& query_counts, at::Device device) {
  const int64_t kv_heads = config.kv_head_count;
  int64_t key_rows = 0, query_rows = 0;
  for (const int64_t length : lengths) key_rows += length;
  for (const int64_t count : query_counts) query_rows += count;

  AttentionPlan plan;
  std::vector<int64_t> query_index, key_index;
  std::vector<int64_t> query_place(static_cast<size_t>(query_rows * config.head_count));
  std::vector<int64_t> key_place(static_cast<size_t>(key_rows * kv_heads));
  // Appends the packed head to the gathered ones, and notes where it went.
  const auto append = [](std::vector<int64_t>& index, std::vector<int64_t>& place, int64_t packed) {
    if (packed >= 0) place[static_cast<size_t>(packed)] = static_cast<int64_t>(index.size());
    index.push_back(packed);
  };
  int64_t first_key = 0, first_query = 0;
  for (const Range& range : GroupSequences(config.head_count, lengths, query_counts)) {
    AttentionPlan::Group group;
    group.sequences = static_cast<int64_t>(range.end - range.begin);
    for (size_t i = range.begin; i < range.end; ++i) {
      group.queries = std::max(group.queries, query_counts[i]);
      group.keys = std::max(group.keys, lengths[i]);
      group.first_position = std::max(group.first_position, lengths[i] - query_counts[i]);
    }
    group.query_begin = static_cast<int64_t>(query_index.size());
    group.key_begin = static_cast<int64_t>(key_index.size());
    for (size_t i = range.begin; i < range.end; ++i) {
      for (int64_t head = 0; head < config.head_count; ++head) {  // kv head outermost, as heads are numbered
        for (int64_t row = 0; row < group.queries; ++row) {
          append(query_index, query_place, row < query_counts[i] ? (first_query + row) * config.head_count + head : -1);
        }
      }
      for (int64_t head = 0; head < kv_heads; ++head) {
        for (int64_t row = 0; row < group.keys; ++row) {
          append(key_index, key_place, row < lengths[i] ? (first_key + row) * kv_heads + head : -1);
        }
      }
      first_query += query_counts[i];
      first_key += lengths[i];
    }
    SetPositions(lengths, query_counts, range, device, &group);
    plan.groups.push_back(std::move(group));
  }
  plan.query_index = IndexTensor(query_index, device);
  plan.query_place = IndexTensor(query_place, device);
  plan.key_index = IndexTensor(key_index, device);
  plan.key_place = IndexTensor(key_place, device);
  return plan;
}

AttentionPlan MakeFlashAttentionPlan(const std::vector<int64_t>& lengths, const std::vector<int64_t>& query_counts,
                                     at::Device device) {
  const auto ends = [&](const std::vector<int64_t>& counts) {
    std::vector<int64_t> sums(counts.size() + 1);
    std::partial_sum(counts.begin(), counts.end(), sums.begin() + 1);
    return IndexTensor(sums, device).to(at::kInt);
  };
  AttentionPlan plan;
  plan.query_ends = ends(query_counts);
  plan.key_ends = ends(lengths);
  plan.most_queries = *std::ranges::max_element(query_counts);
  plan.most_keys = *std::ranges::max_element(lengths);
  return plan;
}

at::Tensor Ops::Attention(const ModelConfig& config, const AttentionPlan& plan, const at::Tensor& q,
                          const at::Tensor& k, const at::Tensor& v, AttentionActivations* saved) const {
  AttentionActivations local;
  AttentionActivations& held = saved != nullptr ? *saved : local;
  const auto gathered = [&](const at::Tensor& heads, const at::Tensor& index) {
    return GatherRows(heads.contiguous().view({-1, config.head_size}), index);
  };
  held.queries = gathered(q, plan.query_index);
  held.keys = gathered(k, plan.key_index);
  held.values = gathered(v, plan.key_index);
  held.probabilities.assign(plan.groups.size(), {});

  at::Tensor out = at::empty_like(held.queries);
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const GroupView view(config, plan.groups[g]);
    const at::Tensor queries = view.Queries(held.queries);
    const at::Tensor keys = view.Keys(held.keys);
    const at::Tensor values = view.Keys(held.values);
    at::Tensor group_out = view.Queries(out);
    const int64_t block = BlockSize(view);
    for (int64_t begin = 0; begin < view.group.queries; begin += block) {
      const int64_t count = std::min(block, view.group.queries - begin);
      const int64_t visible = VisibleKeys(view.group, begin, count);
      const at::Tensor probabilities =
          Probabilities(view, BlockOf(view, queries, begin, count), keys.narrow(1, 0, visible), begin, count);
      SetBlock(view, group_out, begin, at::bmm(probabilities, values.narrow(1, 0, visible)));
      if (saved != nullptr && block == view.group.queries && view.group.keys <= kKeptKeys)
        held.probabilities[g] = probabilities;
    }
  }
  return GatherRows(out, plan.query_place).view({-1, config.query_size()});
}

AttentionGradients Ops::AttentionBackward(const ModelConfig& config, const AttentionPlan& plan,
                                          const AttentionActivations& saved, const at::Tensor& d_out) const {
  const double scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
  const at::Tensor d_gathered = GatherRows(d_out.view({-1, config.head_size}), plan.query_index);
  at::Tensor dq = at::empty_like(saved.queries);
  at::Tensor dk = at::zeros_like(saved.keys);
  at::Tensor dv = at::zeros_like(saved.values);
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const GroupView view(config, plan.groups[g]);
    const at::Tensor queries = view.Queries(saved.queries);
    const at::Tensor keys = view.Keys(saved.keys);
    const at::Tensor values = view.Keys(saved.values);
    const at::Tensor d_group = view.Queries(d_gathered);
    at::Tensor group_dq = view.Queries(dq);
    at::Tensor group_dk = view.Keys(dk);
    at::Tensor group_dv = view.Keys(dv);
    const int64_t block = BlockSize(view);
    for (int64_t begin = 0; begin < view.group.queries; begin += block) {
      const int64_t count = std::min(block, view.group.queries - begin);
      const int64_t visible = VisibleKeys(view.group, begin, count);
      const at::Tensor block_queries = BlockOf(view, queries, begin, count);
      const at::Tensor block_d = BlockOf(view, d_group, begin, count);
      const at::Tensor block_keys = keys.narrow(1, 0, visible);
      const at::Tensor probabilities = saved.probabilities[g].defined()
                                           ? saved.probabilities[g]
                                           : Probabilities(view, block_queries, block_keys, begin, count);
      group_dv.narrow(1, 0, visible).baddbmm_(probabilities.transpose(1, 2), block_d);
      const at::Tensor d_probabilities = at::bmm(block_d, values.narrow(1, 0, visible).transpose(1, 2));
      at::Tensor d_scores = at::_softmax_backward_data(d_probabilities, probabilities, -1, probabilities.scalar_type());
      d_scores.mul_(scale);
      group_dk.narrow(1, 0, visible).baddbmm_(d_scores.transpose(1, 2), block_queries);
      SetBlock(view, group_dq, begin, at::bmm(d_scores, block_keys));
    }
  }
  AttentionGradients gradients;
  gradients.q = GatherRows(dq, plan.query_place).view({-1, config.head_count, config.head_size});
  gradients.k = GatherRows(dk, plan.key_place).view({-1, config.kv_head_count, config.head_size});
  gradients.v = GatherRows(dv, plan.key_place).view({-1, config.kv_head_count, config.head_size});
  return gradients;
}

}  // namespace kgrpo::policy
