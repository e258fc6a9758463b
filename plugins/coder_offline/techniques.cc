#include "coder_offline/techniques.h"

#include <algorithm>
#include <cctype>

namespace kgrpo::coder_offline {
namespace {

// A phrase is a sequence of words; a word that ends in '*' stands for every word that starts so. Small words ("the",
// "of", "in") are dropped from texts before they are compared, so phrases leave them out.
struct Phrase {
  std::string_view words;
  Technique technique;
  int value = 0;  // what the phrase itself says, such as 4 in "float4"
};

// A longer match wins over a shorter one that starts at the same word, so "register tiling" is not "tiling".
constexpr Phrase kPhrases[] = {
    {"tile*", Technique::kTile},
    {"tiling", Technique::kTile},
    {"shared memory", Technique::kTile},
    {"shared mem", Technique::kTile},
    {"smem", Technique::kTile},
    {"shared tile*", Technique::kTile},
    {"shared memory tile*", Technique::kTile},
    {"shared memory tiling", Technique::kTile},
    {"tile* shared memory", Technique::kTile},
    {"tiling shared memory", Technique::kTile},
    {"block tile*", Technique::kTile},
    {"block tiling", Technique::kTile},
    {"cache block*", Technique::kTile},
    {"loop block*", Technique::kTile},
    {"blocked loop*", Technique::kTile},
    {"stage* shared memory", Technique::kTile},
    {"stage* tile* shared memory", Technique::kTile},
    {"cache tile* shared memory", Technique::kTile},
    {"load* tile* shared memory", Technique::kTile},
    {"scratchpad", Technique::kTile},

    {"register block*", Technique::kRegister},
    {"register tile*", Technique::kRegister},
    {"register tiling", Technique::kRegister},
    {"block* registers", Technique::kRegister},
    {"tile* registers", Technique::kRegister},
    {"micro tile*", Technique::kRegister},
    {"microtile*", Technique::kRegister},
    {"thread coarsen*", Technique::kRegister},
    {"coarsen*", Technique::kRegister},
    {"coarsen* threads", Technique::kRegister},
    {"thread tile*", Technique::kRegister},
    {"thread tiling", Technique::kRegister},
    {"outputs per thread", Technique::kRegister},
    {"results per thread", Technique::kRegister},
    {"rows per thread", Technique::kRegister},
    {"multiple outputs per thread", Technique::kRegister},
    {"several outputs per thread", Technique::kRegister},
    {"more work per thread", Technique::kRegister},
    {"accumulate* registers", Technique::kRegister},

    {"vector*", Technique::kVectorize},
    {"vectori* load*", Technique::kVectorize},
    {"vectori* memory access*", Technique::kVectorize},
    {"vector load*", Technique::kVectorize},
    {"vector width", Technique::kVectorize},
    {"float4", Technique::kVectorize, 4},
    {"float4 load*", Technique::kVectorize, 4},
    {"float4 vector*", Technique::kVectorize, 4},
    {"float4 vectori* load*", Technique::kVectorize, 4},
    {"vectori* float4", Technique::kVectorize, 4},
    {"vectori* load* float4", Technique::kVectorize, 4},
    {"vectori* float4 load*", Technique::kVectorize, 4},
    {"int4", Technique::kVectorize, 4},
    {"int4 load*", Technique::kVectorize, 4},
    {"128 bit load*", Technique::kVectorize, 4},
    {"float2", Technique::kVectorize, 2},
    {"float2 load*", Technique::kVectorize, 2},
    {"vectori* float2", Technique::kVectorize, 2},
    {"vectori* load* float2", Technique::kVectorize, 2},
    {"64 bit load*", Technique::kVectorize, 2},
    {"wide load*", Technique::kVectorize},
    {"wider load*", Technique::kVectorize},

    {"unroll*", Technique::kUnroll},
    {"loop unroll*", Technique::kUnroll},
    {"unroll* loop*", Technique::kUnroll},
    {"unroll* inner loop*", Technique::kUnroll},
    {"pragma unroll", Technique::kUnroll},
    {"instruction level parallelism", Technique::kUnroll},
    {"ilp", Technique::kUnroll},

    {"grid stride", Technique::kGridStride},
    {"grid stride loop*", Technique::kGridStride},
    {"gridstride", Technique::kGridStride},
    {"grid strided loop*", Technique::kGridStride},
    {"persistent threads", Technique::kGridStride},
    {"persistent kernel*", Technique::kGridStride},
    {"fewer blocks", Technique::kGridStride},

    {"coalesc*", Technique::kCoalesce},
    {"coalesc* access*", Technique::kCoalesce},
    {"coalesc* load*", Technique::kCoalesce},
    {"coalesc* memory access*", Technique::kCoalesce},
    {"coalesc* global memory", Technique::kCoalesce},
    {"coalesc* loop interchange", Technique::kCoalesce},
    {"interchange loop*", Technique::kCoalesce},
    {"loop interchange", Technique::kCoalesce},
    {"swap loop*", Technique::kCoalesce},
    {"swap indices", Technique::kCoalesce},
    {"swap thread indices", Technique::kCoalesce},
    {"reorder loop*", Technique::kCoalesce},
    {"contiguous access*", Technique::kCoalesce},
    {"consecutive addresses", Technique::kCoalesce},
    {"adjacent threads", Technique::kCoalesce},

    {"fuse*", Technique::kFuse},
    {"fusing", Technique::kFuse},
    {"fusion", Technique::kFuse},
    {"fuse* kernel*", Technique::kFuse},
    {"fuse* passes", Technique::kFuse},
    {"kernel fusion", Technique::kFuse},
    {"merge kernel*", Technique::kFuse},
    {"combine kernel*", Technique::kFuse},
    {"single kernel", Technique::kFuse},

    {"shuffle*", Technique::kShuffle},
    {"shuffling", Technique::kShuffle},
    {"shfl*", Technique::kShuffle},
    {"warp shuffle*", Technique::kShuffle},
    {"warp shuffle* reduc*", Technique::kShuffle},
    {"warp shuffle* scan*", Technique::kShuffle},
    {"warp level reduc*", Technique::kShuffle},
    {"warp level primitive*", Technique::kShuffle},
    {"warp level", Technique::kShuffle},
    {"warp reduc*", Technique::kShuffle},
    {"warp per row", Technique::kShuffle},
    {"one warp per row", Technique::kShuffle},
    {"shuffle* reduc*", Technique::kShuffle},

    {"block per row", Technique::kCooperate},
    {"one block per row", Technique::kCooperate},
    {"cooperat*", Technique::kCooperate},
    {"cooperative block*", Technique::kCooperate},
    {"block reduc*", Technique::kCooperate},
    {"block level reduc*", Technique::kCooperate},
    {"block wide reduc*", Technique::kCooperate},
    {"block cooperat*", Technique::kCooperate},
    {"parallel reduc*", Technique::kCooperate},
    {"tree reduc*", Technique::kCooperate},
    {"parallelize row*", Technique::kCooperate},
    {"split row*", Technique::kCooperate},
    {"whole block", Technique::kCooperate},
    {"block row*", Technique::kCooperate},

    {"one pass", Technique::kOnePass},
    {"single pass", Technique::kOnePass},
    {"online", Technique::kOnePass},
    {"online softmax", Technique::kOnePass},
    {"single pass online", Technique::kOnePass},
    {"one pass online", Technique::kOnePass},
    {"two passes one", Technique::kOnePass},
    {"passes one", Technique::kOnePass},
    {"merge passes", Technique::kOnePass},
    {"combine passes", Technique::kOnePass},
    {"fewer passes", Technique::kOnePass},
    {"last block*", Technique::kOnePass},

    {"restrict", Technique::kRestrict},
    {"read only", Technique::kRestrict},
    {"readonly", Technique::kRestrict},
    {"read only restrict", Technique::kRestrict},
    {"read only cache", Technique::kRestrict},
    {"restrict read only", Technique::kRestrict},
    {"const restrict", Technique::kRestrict},
    {"restrict pointers", Technique::kRestrict},
    {"ldg", Technique::kRestrict},
    {"no alias*", Technique::kRestrict},

    {"block size", Technique::kBlock},
    {"blocksize", Technique::kBlock},
    {"block dim*", Technique::kBlock},
    {"blockdim", Technique::kBlock},
    {"threads per block", Technique::kBlock},
    {"threads block", Technique::kBlock},
    {"block* threads", Technique::kBlock},
    {"thread block size", Technique::kBlock},
    {"occupancy", Technique::kBlock},
    {"larger block*", Technique::kBlock, 512},
    {"bigger block*", Technique::kBlock, 512},
    {"smaller block*", Technique::kBlock, 128},
    {"larger block size", Technique::kBlock, 512},
    {"smaller block size", Technique::kBlock, 128},

    {"hoist*", Technique::kHoist},
    {"hoist* invariant*", Technique::kHoist},
    {"loop invariant*", Technique::kHoist},
    {"hoist* loop invariant*", Technique::kHoist},
    {"precompute*", Technique::kHoist},
    {"compute once", Technique::kHoist},
    {"reuse computed", Technique::kHoist},
    {"common subexpression*", Technique::kHoist},
    {"move out loop", Technique::kHoist},

    {"branchless", Technique::kBranchless},
    {"divergen*", Technique::kBranchless},
    {"remove* divergen*", Technique::kBranchless},
    {"reduce divergen*", Technique::kBranchless},
    {"avoid* divergen*", Technique::kBranchless},
    {"eliminat* divergen*", Technique::kBranchless},
    {"warp divergence", Technique::kBranchless},
    {"remove* warp divergence", Technique::kBranchless},
    {"avoid* warp divergence", Technique::kBranchless},
    {"reduce warp divergence", Technique::kBranchless},
    {"remove* branch*", Technique::kBranchless},
    {"avoid* branch*", Technique::kBranchless},
    {"eliminat* branch*", Technique::kBranchless},
    {"without branch*", Technique::kBranchless},
    {"predicat*", Technique::kBranchless},
    {"sequential addressing", Technique::kBranchless},

    {"pad*", Technique::kPad},
    {"pad* shared memory", Technique::kPad},
    {"pad* shared", Technique::kPad},
    {"pad* shared tile*", Technique::kPad},
    {"pad* tile*", Technique::kPad},
    {"padding shared memory", Technique::kPad},
    {"pad* against bank conflict*", Technique::kPad},
    {"bank conflict*", Technique::kPad},
    {"avoid* bank conflict*", Technique::kPad},
    {"remove* bank conflict*", Technique::kPad},
    {"avoid* shared memory bank conflict*", Technique::kPad},
    {"shared memory bank conflict*", Technique::kPad},
    {"no bank conflict*", Technique::kPad},
    {"without bank conflict*", Technique::kPad},

    {"fast intrinsic*", Technique::kFast},
    {"intrinsic*", Technique::kFast},
    {"fast math", Technique::kFast},
    {"fast math intrinsic*", Technique::kFast},
    {"fast exp*", Technique::kFast},
    {"approximate*", Technique::kFast},
    {"approximate intrinsic*", Technique::kFast},
    {"special function unit*", Technique::kFast},

    {"half precision", Technique::kHalf},
    {"half", Technique::kHalf},
    {"half2", Technique::kHalf},
    {"fp16", Technique::kHalf},
    {"float16", Technique::kHalf},
    {"lower precision", Technique::kHalf},
    {"reduced precision", Technique::kHalf},
    {"16 bit float*", Technique::kHalf},

    {"privati*", Technique::kPrivatize},
    {"privati* histogram*", Technique::kPrivatize},
    {"privati* shared memory", Technique::kPrivatize},
    {"privati* histogram* shared memory", Technique::kPrivatize},
    {"private histogram*", Technique::kPrivatize},
    {"private cop*", Technique::kPrivatize},
    {"private counter*", Technique::kPrivatize},
    {"shared memory histogram*", Technique::kPrivatize},
    {"shared histogram*", Technique::kPrivatize},
    {"shared memory atomic*", Technique::kPrivatize},
    {"shared atomic*", Technique::kPrivatize},
    {"local histogram*", Technique::kPrivatize},
    {"avoid* global atomic*", Technique::kPrivatize},
    {"fewer atomic*", Technique::kPrivatize},
    {"reduce contention", Technique::kPrivatize},

    {"prefetch*", Technique::kPrefetch},
    {"prefetch* next tile*", Technique::kPrefetch},
    {"double buffer*", Technique::kPrefetch},
    {"software pipelin*", Technique::kPrefetch},
    {"pipelin*", Technique::kPrefetch},
    {"next tile*", Technique::kPrefetch},
    {"overlap load* compute", Technique::kPrefetch},
};

constexpr std::string_view kSmallWords[] = {"a",    "an",    "the",  "of", "in",   "into", "to",    "by",
                                            "with", "using", "use",  "on", "from", "for",  "its",   "it",
                                            "at",   "each",  "this", "is", "that", "size", "width", "factor"};
constexpr std::string_view kRejections[] = {"no",    "not",     "don",  "dont", "without", "avoid",
                                            "never", "instead", "drop", "undo", "skip"};
constexpr int kRejectionReach = 2;  // "do not ever tile": how many words before a technique may reject it
constexpr int kLargestParameter = 4096;

struct Word {
  std::string text;
  int clause;
  int number = 0;  // when the word is one
};

bool IsOneOf(std::string_view word, const auto& list) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// Words in lower case, numbers apart from letters after an x ("16x16" is 16 16), with the clause each stands in.
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

// How many of `words` from `at` the phrase covers; 0 when it does not match there. Small words and numbers
// that the phrase does not itself name are passed over inside a match: "a block of 512 threads".
size_t Covers(std::string_view phrase, const std::vector<Word>& words, size_t at) {
  const size_t start = at;
  bool first = true;
  while (!phrase.empty()) {
    const size_t space = phrase.find(' ');
    const std::string_view pattern = phrase.substr(0, space);
    phrase = space == std::string_view::npos ? "" : phrase.substr(space + 1);
    const auto passed_over = [&] {
      const Word& word = words[at];
      return !Matches(pattern, word.text) && (word.number > 0 || IsOneOf(word.text, kSmallWords));
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

// The number that belongs to what was found: the first one after it in its clause and before the next technique, else
// the last one before it in its clause and after the previous technique.
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

std::string_view NameOf(Technique technique) {
  switch (technique) {
    case Technique::kTile:
      return "shared-memory tiling";
    case Technique::kRegister:
      return "register blocking";
    case Technique::kVectorize:
      return "vectorised loads";
    case Technique::kUnroll:
      return "loop unrolling";
    case Technique::kGridStride:
      return "a grid-stride loop";
    case Technique::kCoalesce:
      return "coalesced access";
    case Technique::kFuse:
      return "fusion";
    case Technique::kShuffle:
      return "warp shuffles";
    case Technique::kCooperate:
      return "one block a row";
    case Technique::kOnePass:
      return "one pass";
    case Technique::kRestrict:
      return "read-only __restrict__ pointers";
    case Technique::kBlock:
      return "another block size";
    case Technique::kHoist:
      return "hoisting";
    case Technique::kBranchless:
      return "removing divergence";
    case Technique::kPad:
      return "padding of shared memory";
    case Technique::kFast:
      return "fast intrinsics";
    case Technique::kHalf:
      return "half precision";
    case Technique::kPrivatize:
      return "private counters";
    case Technique::kPrefetch:
      return "prefetching";
  }
  return "";
}

std::vector<Ask> Understand(std::string_view text) {
  const std::vector<Word> words = Words(text.substr(0, kLongestSuggestion));
  std::vector<Found> found;
  for (size_t at = 0; at < words.size();) {
    size_t longest = 0;
    const Phrase* best = nullptr;
    for (const Phrase& phrase : kPhrases) {
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
      if (IsOneOf(words[i - 1].text, kRejections)) match.rejected = true;
      if (!IsOneOf(words[i - 1].text, kSmallWords)) --reach;
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
  static const std::vector<std::string> kSuggestions = {
      "tile in shared memory 16",
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
      "prefetch next tile",
  };
  return kSuggestions;
}

}  // namespace kgrpo::coder_offline
