// batching.h - the order in which samples are visited, and the cuts of a mini-batch into pieces that fit in memory.
// Used by both trainers.
#pragma once
#include <kgrpo/host.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace kgrpo::trainer {

// 0 .. count - 1, shuffled (Fisher and Yates) by the host's random stream of that key: the same key gives the same
// order.
std::vector<size_t> ShuffledOrder(const kgrpo_host* host, std::initializer_list<uint64_t> key, size_t count);

// Ends of consecutive pieces of sequences, each of at most max_tokens tokens (a longer sequence stands
// alone); one piece when max_tokens is 0. The last end is the number of sequences. Cutting changes memory, never the
// gradient.
std::vector<size_t> PieceEnds(std::span<const size_t> sequence_tokens, size_t max_tokens);

}  // namespace kgrpo::trainer
