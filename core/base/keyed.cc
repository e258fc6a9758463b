#include "base/keyed.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/philox.h"

namespace kgrpo {
namespace {

// The kind of an input word. It is the upper half of the counter, so that no two roles share a block.
enum class Role : uint64_t { kLengths = 0, kStream = 1, kKey = 2, kIndex = 3 };

uint64_t Block(uint64_t state, uint64_t word, Role role) {
  const auto tag = static_cast<uint64_t>(role);
  const PhiloxCounter bits =
      Philox4x32({static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(tag), 0},
                 {static_cast<uint32_t>(state), static_cast<uint32_t>(state >> 32)});
  return bits[0] | static_cast<uint64_t>(bits[1]) << 32;
}

uint64_t Absorb(uint64_t seed, std::string_view stream, std::span<const uint64_t> key) {
  // Both lengths come first, so that no input is a prefix of another.
  uint64_t state = Block(seed, static_cast<uint64_t>(stream.size()) << 32 | key.size(), Role::kLengths);
  for (size_t begin = 0; begin < stream.size(); begin += 8) {
    uint64_t word = 0;
    for (size_t i = begin; i < std::min(begin + 8, stream.size()); ++i) {
      word |= static_cast<uint64_t>(static_cast<unsigned char>(stream[i])) << (8 * (i - begin));
    }
    state = Block(state, word, Role::kStream);
  }
  for (uint64_t word : key) state = Block(state, word, Role::kKey);
  return state;
}

}  // namespace

uint64_t Keyed(uint64_t seed, std::string_view stream, std::span<const uint64_t> key, uint64_t index) {
  return Block(Absorb(seed, stream, key), index, Role::kIndex);
}

KeyedStream::KeyedStream(uint64_t seed, std::string_view stream, std::span<const uint64_t> key)
    : state_(Absorb(seed, stream, key)) {}

uint64_t KeyedStream::At(uint64_t index) const { return Block(state_, index, Role::kIndex); }

double KeyedStream::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

uint64_t KeyedStream::Below(uint64_t bound) {
  // Lemire, "Fast random integer generation in an interval" (2019): the product's upper half is uniform after rejecting
  // the few lower halves that would bias it.
  __extension__ typedef unsigned __int128 Wide;
  const uint64_t uneven = -bound % bound;
  for (;;) {
    const Wide product = static_cast<Wide>(Next()) * bound;
    if (static_cast<uint64_t>(product) >= uneven) return static_cast<uint64_t>(product >> 64);
  }
}

std::vector<size_t> KeyedStream::Permutation(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[Below(i)]);  // Fisher and Yates
  return order;
}

}  // namespace kgrpo
