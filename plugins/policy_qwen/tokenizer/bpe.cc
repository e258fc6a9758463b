#include "policy_qwen/tokenizer/bpe.h"

#include <functional>
#include <queue>
#include <tuple>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {

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

void Bpe::Encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (!options_.whole_words.empty()) {
    if (const auto whole = options_.whole_words.find(std::string(word)); whole != options_.whole_words.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  // A doubly linked list over the places of the word, in which a merge keeps the left place and removes the right one.
  struct Place {
    int32_t symbol;
    size_t previous, next;
    bool removed = false;
  };
  const std::vector<int32_t> symbols = InitialSymbols(word);
  const size_t none = symbols.size();  // the neighbour of the first and the last place
  std::vector<Place> places;
  places.reserve(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) places.push_back({symbols[i], i == 0 ? none : i - 1, i + 1});
  // Candidates by rank, then from left to right. Merges leave stale ones behind; they are recognised when they come up,
  // because the pair at that place no longer makes the same token.
  using Candidate = std::tuple<int32_t, size_t, int32_t>;  // rank, place, result
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto merge_at = [&](size_t place) -> const Merge* {
    if (places[place].removed || places[place].next == none) return nullptr;
    const auto found = options_.merges.find(KeyOf(places[place].symbol, places[places[place].next].symbol));
    return found == options_.merges.end() ? nullptr : &found->second;
  };
  const auto offer = [&](size_t place) {
    if (const Merge* merge = merge_at(place)) queue.emplace(merge->rank, place, merge->result);
  };
  for (size_t i = 0; i < places.size(); ++i) offer(i);
  while (!queue.empty()) {
    const auto [rank, index, result] = queue.top();
    queue.pop();
    if (const Merge* merge = merge_at(index); merge == nullptr || merge->result != result) continue;
    Place& place = places[index];
    place.symbol = result;
    places[place.next].removed = true;
    place.next = places[place.next].next;
    if (place.next != none) places[place.next].previous = index;
    offer(index);
    if (place.previous != none) offer(place.previous);
  }
  for (size_t i = 0; i < places.size(); i = places[i].next) ids.push_back(places[i].symbol);
}

}  // namespace kgrpo::tokenizer
