#include <algorithm>
#include <iterator>
#include <optional>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/regex.h"
#include "policy_qwen/tokenizer/steps.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

// GPT-2's pattern, which a ByteLevel with use_regex means.
constexpr const char* kGpt2Words = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// A part of a text, and whether the pattern matched it.
struct SplitPart {
  size_t start;
  size_t end;
  bool matched;
};

// The matches and the text between them, which together are the whole text.
std::vector<SplitPart> Partition(size_t size, const std::vector<Span>& matches) {
  std::vector<SplitPart> parts;
  size_t taken = 0;
  for (const auto& [start, end] : matches) {
    if (taken != start) parts.push_back({taken, start, false});
    parts.push_back({start, end, true});
    taken = end;
  }
  if (taken != size) parts.push_back({taken, size, false});
  return parts;
}

// The characters for which `matches` is true, each for itself.
template <typename Predicate>
std::vector<Span> FindCharacters(std::string_view text, const Predicate& matches) {
  std::vector<Span> found;
  for (size_t i = 0; i < text.size();) {
    const CodePoint character = CodePointAt(text, i);
    if (matches(character.value)) found.emplace_back(i, i + character.length);
    i += character.length;
  }
  return found;
}

// How a step treats the matches of its pattern (and, with the matches, text between them): the names of the file.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Joins or drops parts as `behavior` says.
std::vector<SplitPart> Arrange(std::vector<SplitPart> parts, SplitBehavior behavior) {
  if (behavior == SplitBehavior::kIsolated) return parts;
  if (behavior == SplitBehavior::kRemoved) {
    std::erase_if(parts, [](const SplitPart& part) { return part.matched; });
    return parts;
  }
  const bool contiguous = behavior == SplitBehavior::kContiguous,
             backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(parts.begin(), parts.end());
  std::vector<SplitPart> out;
  bool after_match = false;
  for (const SplitPart& part : parts) {
    if (!out.empty() && (contiguous ? part.matched == after_match : part.matched && !after_match)) {
      out.back().start = std::min(out.back().start, part.start);
      out.back().end = std::max(out.back().end, part.end);
    } else {
      out.push_back(part);
    }
    after_match = part.matched;
  }
  if (backwards) std::reverse(out.begin(), out.end());
  return out;
}

SplitBehavior ReadBehavior(ObjectReader& step) {
  const std::string name = step.String("behavior");
  constexpr std::string_view kNames[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  const auto known = std::ranges::find(kNames, name);
  if (known != std::end(kNames)) return static_cast<SplitBehavior>(known - std::begin(kNames));
  step.Fail("behavior", "'" + name +
                            "' is not a behaviour of Split: Isolated, Removed, MergedWithPrevious, MergedWithNext, " +
                            "Contiguous");
}

void AppendParts(const Word& word, const std::vector<SplitPart>& parts, std::vector<Word>& words) {
  for (const SplitPart& part : parts) {
    if (part.start != part.end)
      words.push_back({word.text.substr(part.start, part.end - part.start), word.at_start && part.start == 0});
  }
}

void AppendParts(const Word& word, const std::vector<Span>& matches, SplitBehavior behavior, std::vector<Word>& words) {
  AppendParts(word, Arrange(Partition(word.text.size(), matches), behavior), words);
}

// Rust's `\w+|[^\w\s]+`: runs of word characters, and runs of others that are no space.
void AppendRuns(const Word& word, std::vector<Word>& words) {
  const auto kind_of = [](uint32_t c) { return IsWordCharacter(c) ? 1 : IsWhiteSpace(c) ? 0 : 2; };
  for (size_t i = 0, end = 0; i < word.text.size(); i = end) {
    const int kind = kind_of(CodePointAt(word.text, i).value);
    while (end < word.text.size() && kind_of(CodePointAt(word.text, end).value) == kind)
      end += CodePointAt(word.text, end).length;
    if (kind != 0) words.push_back({word.text.substr(i, end - i), word.at_start && i == 0});
  }
}

void AppendMetaspaced(const Word& word, const Metaspace& metaspace, std::vector<Word>& words,
                      std::deque<std::string>& storage) {
  std::string& text = storage.emplace_back();
  const bool wanted = metaspace.prepend_scheme == "always" || (metaspace.prepend_scheme == "first" && word.at_start);
  if (wanted && !word.text.starts_with(' ') && !word.text.starts_with(metaspace.replacement))
    text = metaspace.replacement;
  for (const char c : word.text) c == ' ' ? text += metaspace.replacement : text += c;
  const Word replaced = {text, word.at_start};
  if (!metaspace.split) return words.push_back(replaced);
  const auto is_replacement = [&](uint32_t c) { return c == CodePointAt(metaspace.replacement, 0).value; };
  AppendParts(replaced, FindCharacters(text, is_replacement), SplitBehavior::kMergedWithNext, words);
}

// A ByteLevel: `pattern` is GPT-2's, or nothing if use_regex is false.
void SpellWords(std::vector<Word>& words, bool add_prefix_space, const std::optional<Regex>& pattern,
                std::deque<std::string>& storage) {
  size_t size = 0;
  for (const Word& word : words) size += 2 * (word.text.size() + 1);
  std::string& spelled = storage.emplace_back();
  spelled.reserve(size);  // the words point into it: it must not move
  std::vector<Word> out;
  out.reserve(words.size());
  const auto append = [&](const Word& part) {
    const size_t before = spelled.size();
    AppendSpelling(part.text, spelled);
    out.push_back({std::string_view(spelled).substr(before), part.at_start});
  };
  for (Word word : words) {
    std::string prefixed;
    if (add_prefix_space && !word.text.starts_with(' ')) word.text = prefixed = " " + std::string(word.text);
    if (!pattern) {
      append(word);
      continue;
    }
    std::vector<Word> parts;
    AppendParts(word, Partition(word.text.size(), pattern->FindAll(word.text)), parts);
    for (const Word& part : parts) append(part);
  }
  words = std::move(out);
}

}  // namespace

Metaspace::Metaspace(ObjectReader& step)
    : replacement(step.Character("replacement")),
      prepend_scheme(step.Find("prepend_scheme") != nullptr ? step.String("prepend_scheme") : "always"),
      split(step.Bool("split", true)) {
  step.Find("str_rep");                                               // written by old versions, read by none
  const bool add_prefix_space = step.Bool("add_prefix_space", true);  // of old versions
  if (prepend_scheme != "always" && prepend_scheme != "first" && prepend_scheme != "never")
    step.Fail("prepend_scheme", "is '" + prepend_scheme + "', must be always, first or never");
  if (!add_prefix_space && prepend_scheme != "never") {
    step.Fail("add_prefix_space", "is false, which contradicts the prepend_scheme '" + prepend_scheme + "'");
  }
}

PreTokenizer::PreTokenizer(const std::string& file, const nlohmann::json& value) {
  // A step that replaces each word by its parts, independently of the others.
  const auto add = [this](auto append_parts) {
    steps_.emplace_back([append_parts](std::vector<Word>& words, std::deque<std::string>& storage) {
      std::vector<Word> parts;
      parts.reserve(words.size());
      for (const Word& word : words) append_parts(word, parts, storage);
      words = std::move(parts);
    });
  };
  for (ObjectReader& step : ReadSteps(file, "pre_tokenizer", value, "pretokenizers")) {
    const std::string type = step.String("type");
    if (type == "Split") {
      add([pattern = ReadPattern(step), behavior = ReadBehavior(step), invert = step.Bool("invert", false)](
              const Word& word, std::vector<Word>& words, auto&) {
        std::vector<SplitPart> parts = Partition(word.text.size(), pattern.FindAll(word.text));
        for (SplitPart& part : parts) part.matched ^= invert;
        AppendParts(word, Arrange(std::move(parts), behavior), words);
      });
    } else if (type == "Digits") {
      const bool individual = step.Bool("individual_digits", false);
      add([behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous](
              const Word& word, std::vector<Word>& words, auto&) {
        AppendParts(word, FindCharacters(word.text, IsNumeric), behavior, words);
      });
    } else if (type == "Punctuation") {
      const bool given = step.Find("behavior") != nullptr;
      add([behavior = given ? ReadBehavior(step) : SplitBehavior::kIsolated](const Word& word, std::vector<Word>& words,
                                                                             auto&) {
        AppendParts(word, FindCharacters(word.text, IsPunctuation), behavior, words);
      });
    } else if (type == "Whitespace") {
      add([](const Word& word, std::vector<Word>& words, auto&) { AppendRuns(word, words); });
    } else if (type == "WhitespaceSplit") {
      add([](const Word& word, std::vector<Word>& words, auto&) {
        AppendParts(word, FindCharacters(word.text, IsWhiteSpace), SplitBehavior::kRemoved, words);
      });
    } else if (type == "Metaspace") {
      add([metaspace = Metaspace(step)](const Word& word, std::vector<Word>& words, std::deque<std::string>& storage) {
        AppendMetaspaced(word, metaspace, words, storage);
      });
    } else if (type == "ByteLevel") {
      step.Find("trim_offsets");  // concerns offsets, not tokens
      const bool use_regex = step.Bool("use_regex", true);
      steps_.emplace_back([prefix = step.Bool("add_prefix_space", true),
                           pattern = use_regex ? std::optional<Regex>(kGpt2Words) : std::nullopt](
                              std::vector<Word>& words, std::deque<std::string>& storage) {
        SpellWords(words, prefix, pattern, storage);
      });
    } else {
      step.RefuseType("pre-tokenizer", "ByteLevel, Digits, Metaspace, Punctuation, Split, Whitespace, WhitespaceSplit");
    }
    step.RefuseOthers();
  }
}

std::vector<Word> PreTokenizer::Split(Word text, std::deque<std::string>& storage) const {
  std::vector<Word> words;
  if (!text.text.empty()) words.push_back(text);
  for (const auto& step : steps_) step(words, storage);
  return words;
}

}  // namespace kgrpo::tokenizer
