#include "policy_qwen/tokenizer/bpe.h"

#include <bit>
#include <queue>
#include <tuple>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

// Up to this many symbols, scanning all pairs for every merge is faster than a queue.
constexpr size_t kShortWord = 48;

// The neighbour of the first or last place of a word.
constexpr size_t kNone = static_cast<size_t>(-1);

uint64_t KeyOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(size_t count)
    : mask_(std::bit_ceil(2 * count + 2) - 1), slots_(mask_ + 1, std::pair<uint64_t, Merge>{kEmpty, Merge{}}) {}

size_t MergeTable::SlotOf(uint64_t key) const {
  uint64_t hash = key * 0x9E3779B97F4A7C15u;  // Fibonacci hashing; the high bits are the mixed ones
  hash ^= hash >> 32;
  size_t slot = hash & mask_;
  while (slots_[slot].first != key && slots_[slot].first != kEmpty) slot = (slot + 1) & mask_;
  return slot;
}

void MergeTable::Set(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = KeyOf(left, right);
  slots_[SlotOf(key)] = {key, merge};
}

MergeTable::Merge MergeTable::Find(int32_t left, int32_t right) const {
  return slots_[SlotOf(KeyOf(left, right))].second;
}

void Bpe::Encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (!options_.whole_words.empty()) {
    if (const auto whole = options_.whole_words.find(std::string(word)); whole != options_.whole_words.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  std::vector<int32_t> symbols = InitialSymbols(word);
  if (symbols.size() <= kShortWord) {
    MergeShort(symbols);
  } else {
    MergeLong(symbols);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

std::vector<int32_t> Bpe::InitialSymbols(std::string_view word) const {
  std::vector<int32_t> symbols;
  symbols.reserve(word.size());
  bool after_unknown = false;  // an unknown token is yet to be appended
  const auto append_unknown = [&] {
    if (after_unknown) symbols.push_back(options_.unknown_id);
    after_unknown = false;
  };
  for (size_t i = 0; i < word.size();) {
    const CodePoint character = CodePointAt(word, i);
    const auto known = options_.character_ids.find(character.value);
    if (known != options_.character_ids.end()) {
      append_unknown();
      symbols.push_back(known->second);
    } else if (!AppendBytes(word.substr(i, character.length), symbols) && options_.unknown_id >= 0) {
      if (!options_.fuse_unknown) append_unknown();
      after_unknown = true;
    }
    i += character.length;
  }
  append_unknown();
  return symbols;
}

// False if a byte has no token. Bytes go in front of an unknown token that is yet to be appended, as in the reference.
bool Bpe::AppendBytes(std::string_view character, std::vector<int32_t>& symbols) const {
  const auto id_of = [this](char byte) { return options_.byte_ids[static_cast<uint8_t>(byte)]; };
  for (const char byte : character) {
    if (id_of(byte) < 0) return false;
  }
  for (const char byte : character) symbols.push_back(id_of(byte));
  return true;
}

void Bpe::MergeShort(std::vector<int32_t>& symbols) const {
  if (symbols.size() < 2) return;
  std::array<MergeTable::Merge, kShortWord> pairs;  // pairs[i]: symbols i and i + 1
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = merges_.Find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == MergeTable::kNoMerge) break;
    symbols[best] = pairs[best].result;
    for (size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      pairs[i] = pairs[i + 1];
    }
    --count;
    if (best + 1 < count) pairs[best] = merges_.Find(symbols[best], symbols[best + 1]);
    if (best > 0) pairs[best - 1] = merges_.Find(symbols[best - 1], symbols[best]);
  }
  symbols.resize(count);
}

void Bpe::MergeLong(std::vector<int32_t>& symbols) const {
  // A doubly linked list over the places of the word; a merge keeps the left place and removes the right one.
  const size_t size = symbols.size();
  std::vector<size_t> previous(size), next(size);
  for (size_t i = 0; i < size; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == size ? kNone : i + 1;
  }
  // Candidates by rank, then from left to right. Merges leave stale ones behind; they are recognised when they come up,
  // because the pair at that place no longer makes the same token.
  using Candidate = std::tuple<int32_t, size_t, int32_t>;  // rank, place, result
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t place) {
    const MergeTable::Merge merge = merges_.Find(symbols[place], symbols[next[place]]);
    if (merge.rank != MergeTable::kNoMerge) queue.emplace(merge.rank, place, merge.result);
  };
  for (size_t i = 0; i + 1 < size; ++i) offer(i);
  std::vector<bool> removed(size, false);
  while (!queue.empty()) {
    const auto [rank, place, result] = queue.top();
    queue.pop();
    if (removed[place] || next[place] == kNone) continue;
    const size_t right = next[place];
    if (merges_.Find(symbols[place], symbols[right]).result != result) continue;
    symbols[place] = result;
    removed[right] = true;
    next[place] = next[right];
    if (next[place] != kNone) {
      previous[next[place]] = place;
      offer(place);
    }
    if (previous[place] != kNone) offer(previous[place]);
  }
  size_t kept = 0;
  for (size_t i = 0; i != kNone && i < size; i = next[i]) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

}  // namespace kgrpo::tokenizer
