#include "policy_qwen/tokenizer/pre_tokenizer.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

// GPT-2's pattern, which a ByteLevel with use_regex means.
constexpr std::string_view kGpt2Words =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// A part of a text, and whether the pattern matched it.
struct SplitPart {
  size_t start;
  size_t end;
  bool matched;
};

// The matches and the text between them, which together are the whole text.
std::vector<SplitPart> Partition(size_t size, const std::vector<std::pair<size_t, size_t>>& matches) {
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

std::vector<std::pair<size_t, size_t>> FindAllLiteral(std::string_view text, std::string_view literal) {
  std::vector<std::pair<size_t, size_t>> matches;
  if (literal.empty()) return matches;
  for (size_t at = text.find(literal); at != std::string_view::npos; at = text.find(literal, at + literal.size())) {
    matches.emplace_back(at, at + literal.size());
  }
  return matches;
}

std::vector<std::pair<size_t, size_t>> FindAllDigits(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> matches;
  for (size_t i = 0; i < text.size();) {
    const CodePoint character = CodePointAt(text, i);
    if (IsNumeric(character.value)) matches.emplace_back(i, i + character.length);
    i += character.length;
  }
  return matches;
}

// Joins or drops parts as `behavior` says.
std::vector<SplitPart> Arrange(const std::vector<SplitPart>& parts, SplitBehavior behavior) {
  std::vector<SplitPart> out;
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return parts;
    case SplitBehavior::kRemoved:
      std::copy_if(parts.begin(), parts.end(), std::back_inserter(out),
                   [](const SplitPart& part) { return !part.matched; });
      return out;
    case SplitBehavior::kContiguous:
      for (const SplitPart& part : parts) {
        if (!out.empty() && out.back().matched == part.matched) {
          out.back().end = part.end;
        } else {
          out.push_back(part);
        }
      }
      return out;
    case SplitBehavior::kMergedWithPrevious: {
      bool after_match = false;
      for (const SplitPart& part : parts) {
        if (part.matched && !after_match && !out.empty()) {
          out.back().end = part.end;
        } else {
          out.push_back(part);
        }
        after_match = part.matched;
      }
      return out;
    }
    case SplitBehavior::kMergedWithNext: {
      bool before_match = false;
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (part->matched && !before_match && !out.empty()) {
          out.back().start = part->start;
        } else {
          out.push_back(*part);
        }
        before_match = part->matched;
      }
      std::reverse(out.begin(), out.end());
      return out;
    }
  }
  return out;
}

void AppendWords(std::string_view text, const std::vector<SplitPart>& parts, std::vector<std::string_view>& words) {
  for (const SplitPart& part : parts) {
    if (part.start != part.end) words.push_back(text.substr(part.start, part.end - part.start));
  }
}

SplitBehavior ReadBehavior(ObjectReader& reader) {
  const std::string name = reader.String("behavior");
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  reader.Fail("behavior", "'" + name +
                              "' is not a behaviour of Split: Isolated, Removed, MergedWithPrevious, MergedWithNext, " +
                              "Contiguous");
}

}  // namespace

PreTokenizer::PreTokenizer(const std::string& file, const nlohmann::json& value) {
  if (!value.is_null()) ReadSteps(file, "pre_tokenizer", value);
  if (steps_.empty() || !std::holds_alternative<ByteLevelStep>(steps_.back())) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                file + ": pre_tokenizer: the last step must be ByteLevel, because only byte-level " +
                    "tokenizers are supported; use a model of the Qwen, SmolLM or GPT-2 family");
  }
}

PreTokenizer::SplitStep PreTokenizer::ReadSplit(ObjectReader& reader) {
  ObjectReader pattern = reader.Object("pattern");
  const SplitBehavior behavior = ReadBehavior(reader);
  const bool invert = reader.Bool("invert", false);
  if (pattern.Find("String") != nullptr) {
    std::string literal = pattern.String("String");
    pattern.RefuseOthers();
    return {std::move(literal), behavior, invert};
  }
  const std::string expression = pattern.String("Regex");
  pattern.RefuseOthers();
  try {
    return {Regex(expression), behavior, invert};
  } catch (const Error& error) {
    throw Error(error.code(), reader.file() + ": " + pattern.PathOf("Regex") + ": " + error.what());
  }
}

void PreTokenizer::ReadSteps(const std::string& file, const std::string& path, const nlohmann::json& value) {
  ObjectReader reader(file, path, value);
  const std::string type = reader.String("type");
  if (!steps_.empty() && std::holds_alternative<ByteLevelStep>(steps_.back())) {
    reader.Refuse("type", "'" + type + "' comes after ByteLevel, which must be the last step");
  }
  if (type == "Sequence") {
    const nlohmann::json& parts = reader.Array("pretokenizers");
    for (size_t i = 0; i < parts.size(); ++i) {
      ReadSteps(file, reader.PathOf("pretokenizers") + "[" + std::to_string(i) + "]", parts[i]);
    }
  } else if (type == "Split") {
    steps_.emplace_back(ReadSplit(reader));
  } else if (type == "Digits") {
    steps_.emplace_back(DigitsStep{reader.Bool("individual_digits", false)});
  } else if (type == "ByteLevel") {
    reader.Find("trim_offsets");  // concerns offsets, not tokens
    const bool add_prefix_space = reader.Bool("add_prefix_space", true);
    const bool use_regex = reader.Bool("use_regex", true);
    steps_.emplace_back(ByteLevelStep{add_prefix_space, use_regex ? std::make_unique<Regex>(kGpt2Words) : nullptr});
  } else {
    reader.Refuse("type", "pre-tokenizer '" + type +
                              "' is not supported (Sequence, Split, Digits and ByteLevel are); use a " +
                              "model of the Qwen, SmolLM or GPT-2 family");
  }
  reader.RefuseOthers();
}

void PreTokenizer::Apply(const Step& step, std::string_view word, std::vector<std::string_view>& words,
                         std::deque<std::string>& storage) {
  if (const auto* split = std::get_if<SplitStep>(&step)) {
    const auto* regex = std::get_if<Regex>(&split->pattern);
    std::vector<SplitPart> parts = Partition(
        word.size(), regex ? regex->FindAll(word) : FindAllLiteral(word, std::get<std::string>(split->pattern)));
    if (split->invert) {
      for (SplitPart& part : parts) part.matched = !part.matched;
    }
    AppendWords(word, Arrange(parts, split->behavior), words);
  } else if (const auto* digits = std::get_if<DigitsStep>(&step)) {
    const SplitBehavior behavior = digits->individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
    AppendWords(word, Arrange(Partition(word.size(), FindAllDigits(word)), behavior), words);
  } else {
    const auto& byte_level = std::get<ByteLevelStep>(step);
    if (byte_level.add_prefix_space && !word.starts_with(' ')) word = storage.emplace_back(" " + std::string(word));
    if (byte_level.words) {
      AppendWords(word, Partition(word.size(), byte_level.words->FindAll(word)), words);
    } else {
      words.push_back(word);
    }
  }
}

std::vector<std::string_view> PreTokenizer::Split(std::string_view text, std::deque<std::string>& storage) const {
  std::vector<std::string_view> words;
  if (!text.empty()) words.push_back(text);
  for (const Step& step : steps_) {
    std::vector<std::string_view> finer;
    for (const std::string_view word : words) Apply(step, word, finer, storage);
    words = std::move(finer);
  }
  return words;
}

}  // namespace kgrpo::tokenizer
