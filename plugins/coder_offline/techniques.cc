#include "coder_offline/techniques.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "coder_offline/phrases.h"

namespace kgrpo::coder_offline {
namespace {

// By technique: its option in a schedule line, and its name in messages.
constexpr std::pair<std::string_view, std::string_view> kTechniques[] = {
    {"tile", "shared-memory tiling"},
    {"register", "register blocking"},
    {"vectorize", "vectorised loads"},
    {"unroll", "loop unrolling"},
    {"grid_stride", "a grid-stride loop"},
    {"coalesce", "coalesced access"},
    {"fuse", "fusion"},
    {"shuffle", "warp shuffles"},
    {"cooperate", "one block a row"},
    {"one_pass", "one pass"},
    {"restrict", "read-only __restrict__ pointers"},
    {"block", "another block size"},
    {"hoist", "hoisting"},
    {"branchless", "removing divergence"},
    {"pad", "padding of shared memory"},
    {"fast", "fast intrinsics"},
    {"half", "half precision"},
    {"privatize", "private counters"},
    {"prefetch", "prefetching"},
    {"launch_bounds", "launch bounds"},
    {"narrow", "32-bit indices"}};

constexpr std::string_view kSmallWords[] = {"a",    "an",    "the",  "of", "in",   "into", "to",    "by",
                                            "with", "using", "use",  "on", "from", "for",  "its",   "it",
                                            "at",   "each",  "this", "is", "that", "size", "width", "factor"};
constexpr std::string_view kRejections[] = {"no",    "not",     "don",  "dont", "without", "avoid",
                                            "never", "instead", "drop", "undo", "skip"};
constexpr int kRejectionReach = 2;  // a rejection counts this many words before a technique: "do not ever tile"
constexpr int kLargestParameter = 4096;

struct Word {
  std::string text;
  int clause;
  int number = 0;  // the word's value, if it is a number
};

bool IsAmong(std::string_view word, const auto& list) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// Splits a text into lower-case words and their clauses. An x between numbers separates them: "16x16" is 16 16.
std::vector<Word> Words(std::string_view text) {
  std::vector<Word> words;
  int clause = 0;
  std::string word;
  const auto finish = [&] {
    if (word.empty()) return;
    const bool digits = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    Word found{word, clause, 0};
    if (digits && word.size() <= 4) found.number = std::stoi(word);
    if (word == "and" || word == "then" || word == "plus") ++clause;
    words.push_back(found);
    word.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool after_digit = !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    if (after_digit && std::isdigit(c) == 0) finish();
    if (std::isalnum(c) != 0) {
      if (after_digit && (c == 'x' || c == 'X')) continue;  // 16x16
      word += static_cast<char>(std::tolower(c));
      continue;
    }
    finish();
    if (c == ',' || c == ';' || c == '.' || c == '+' || c == '\n' || c == ':') ++clause;
  }
  finish();
  return words;
}

bool Matches(std::string_view pattern, std::string_view word) {
  if (pattern.back() != '*') return pattern == word;
  pattern.remove_suffix(1);
  return word.substr(0, pattern.size()) == pattern;
}

// The number of words from `at` that the phrase covers; 0 if it does not match there. Small words and numbers that the
// phrase does not name are skipped inside a match: "a block of 512 threads".
size_t Covers(std::string_view phrase, const std::vector<Word>& words, size_t at) {
  const size_t start = at;
  bool first = true;
  while (!phrase.empty()) {
    const size_t space = phrase.find(' ');
    const std::string_view pattern = phrase.substr(0, space);
    phrase = space == std::string_view::npos ? "" : phrase.substr(space + 1);
    const auto passed_over = [&] {
      const Word& word = words[at];
      return !Matches(pattern, word.text) && (word.number > 0 || IsAmong(word.text, kSmallWords));
    };
    while (!first && at < words.size() && passed_over()) ++at;
    if (at >= words.size() || !Matches(pattern, words[at].text)) return 0;
    if (words[at].clause != words[start].clause) return 0;
    ++at;
    first = false;
  }
  return at - start;
}

struct Found {
  size_t begin, end;
  Ask ask;
  bool rejected = false;
};

// The number that belongs to a found technique: the first one after it in its clause and before the next technique,
// else the last one before it in its clause and after the previous technique; 0 if there is none.
int NumberFor(const std::vector<Word>& words, const std::vector<Found>& found, size_t index) {
  const size_t clause_of = found[index].begin;
  const size_t next = index + 1 < found.size() ? found[index + 1].begin : words.size();
  for (size_t i = found[index].begin; i < next && words[i].clause == words[clause_of].clause; ++i) {
    if (words[i].number > 0) return words[i].number;
  }
  const size_t previous = index > 0 ? found[index - 1].end : 0;
  for (size_t i = found[index].begin; i > previous && words[i - 1].clause == words[clause_of].clause; --i) {
    if (words[i - 1].number > 0) return words[i - 1].number;
  }
  return 0;
}

}  // namespace

std::string_view NameOf(Technique technique) { return kTechniques[static_cast<size_t>(technique)].second; }

std::string_view OptionOf(Technique technique) { return kTechniques[static_cast<size_t>(technique)].first; }

std::vector<Ask> Understand(std::string_view text) {
  const std::vector<Word> words = Words(text.substr(0, kLongestSuggestion));
  std::vector<Found> found;
  for (size_t at = 0; at < words.size();) {
    size_t longest = 0;
    const Phrase* best = nullptr;
    for (const Phrase& phrase : Phrases()) {
      const size_t covered = Covers(phrase.words, words, at);
      if (covered > longest) {
        longest = covered;
        best = &phrase;
      }
    }
    if (best == nullptr) {
      ++at;
      continue;
    }
    Found match{at, at + longest, {best->technique, best->value}};
    int reach = kRejectionReach;
    for (size_t i = at; i > 0 && reach > 0 && words[i - 1].clause == words[at].clause; --i) {
      if (!found.empty() && i - 1 < found.back().end) break;
      if (IsAmong(words[i - 1].text, kRejections)) match.rejected = true;
      if (!IsAmong(words[i - 1].text, kSmallWords)) --reach;
    }
    found.push_back(match);
    at += longest;
  }
  std::vector<Ask> asks;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].rejected) continue;
    Ask ask = found[i].ask;
    if (ask.value == 0) ask.value = std::min(NumberFor(words, found, i), kLargestParameter);
    const auto same =
        std::find_if(asks.begin(), asks.end(), [&](const Ask& a) { return a.technique == ask.technique; });
    if (same == asks.end()) {
      asks.push_back(ask);
    } else if (same->value == 0) {
      same->value = ask.value;  // "tile it: a tile of 32"
    }
  }
  return asks;
}

const std::vector<std::string>& Suggestions() {
  static const std::vector<std::string> kSuggestions = {"tile in shared memory 16",
                                                        "tile in shared memory 32",
                                                        "register blocking 4",
                                                        "register blocking 8",
                                                        "vectorize loads 2",
                                                        "vectorize loads 4",
                                                        "unroll 4",
                                                        "grid stride loop",
                                                        "coalesce by loop interchange",
                                                        "fuse kernels",
                                                        "warp shuffle reduction",
                                                        "one block per row",
                                                        "single pass",
                                                        "read only restrict",
                                                        "block size 128",
                                                        "block size 512",
                                                        "hoist invariants",
                                                        "remove divergence",
                                                        "pad shared memory",
                                                        "fast intrinsics",
                                                        "half precision",
                                                        "privatize histogram",
                                                        "prefetch next tile"};
  return kSuggestions;
}

}  // namespace kgrpo::coder_offline
