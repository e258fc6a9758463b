#include "trainer_shared/batching.h"

#include <kgrpo/sdk/host.h>

#include <numeric>
#include <utility>

namespace kgrpo::trainer {

std::vector<size_t> ShuffledOrder(const kgrpo_host* host, std::initializer_list<uint64_t> key, size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[Host(host).Below(i, key, i)]);
  return order;
}

std::vector<size_t> PieceEnds(std::span<const size_t> sequence_tokens, size_t max_tokens) {
  std::vector<size_t> ends;
  size_t tokens = 0;
  for (size_t i = 0; i < sequence_tokens.size(); ++i) {
    const bool full = max_tokens != 0 && tokens != 0 && tokens + sequence_tokens[i] > max_tokens;
    if (full) {
      ends.push_back(i);
      tokens = 0;
    }
    tokens += sequence_tokens[i];
  }
  if (!sequence_tokens.empty()) ends.push_back(sequence_tokens.size());
  return ends;
}

}  // namespace kgrpo::trainer
