#include <utf8proc.h>

#include <algorithm>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/regex.h"
#include "policy_qwen/tokenizer/steps.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

// No normal form changes anything below U+00A0, nor NFC anything below U+0300, and in their UTF-8 no byte is as large
// as this.
constexpr uint8_t kFirstChanged = 0xC2;
constexpr uint8_t kFirstChangedByNfc = 0xCC;

int CombiningClass(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

// Appends the normal form of decomposed code points, which are in any order within a run of combining marks, and
// empties them. Sorts by itself: utf8proc's sort takes quadratic time.
void AppendOrdered(std::vector<utf8proc_int32_t>& decomposed, bool compose, std::string& out) {
  for (auto begin = decomposed.begin(); begin != decomposed.end();) {
    const auto end = std::find_if(begin, decomposed.end(), [](auto c) { return CombiningClass(c) == 0; });
    std::stable_sort(begin, end, [](auto a, auto b) { return CombiningClass(a) < CombiningClass(b); });
    begin = end == decomposed.end() ? end : end + 1;
  }
  if (compose) {
    const auto size = utf8proc_normalize_utf32(decomposed.data(), static_cast<utf8proc_ssize_t>(decomposed.size()),
                                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    decomposed.resize(static_cast<size_t>(size));
  }
  for (const utf8proc_int32_t code_point : decomposed) AppendUtf8(static_cast<uint32_t>(code_point), out);
  decomposed.clear();
}

std::string NormalForm(const std::string& text, bool compose, bool compatible) {
  const uint8_t first_changed = compose && !compatible ? kFirstChangedByNfc : kFirstChanged;
  if (std::none_of(text.begin(), text.end(), [&](char c) { return static_cast<uint8_t>(c) >= first_changed; }))
    return text;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  std::string out;
  std::vector<utf8proc_int32_t> decomposed;
  for (size_t i = 0; i < text.size();) {
    const CodePoint character = CodePointAt(text, i);
    if (IsUnknownToReference(character.value)) {
      // It stands for itself there, and nothing is moved or composed across it.
      AppendOrdered(decomposed, compose, out);
      out.append(text, i, character.length);
    } else {
      utf8proc_int32_t parts[32];  // the longest decomposition has 18
      int unused = 0;
      const utf8proc_ssize_t count =
          utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character.value), parts, 32, options, &unused);
      decomposed.insert(decomposed.end(), parts, parts + count);
    }
    i += character.length;
  }
  AppendOrdered(decomposed, compose, out);
  return out;
}

void Strip(Normalizer::Result& result, bool left, bool right) {
  const std::string_view text = result.text;
  const size_t begin = left ? EndOfSpaceAfter(text, 0) : 0;
  const size_t end = right ? StartOfSpaceBefore(text, text.size(), begin) : text.size();
  if (begin > 0) result.keeps_start = false;
  result.text = std::string(text.substr(begin, end - begin));
}

// What has no place in the given text counts as coming from the character before it, as in the reference.
void Replace(Normalizer::Result& result, const Regex& pattern, const std::string& content) {
  const std::vector<Span> matches = result.text.empty() ? std::vector<Span>() : pattern.FindAll(result.text);
  if (matches.empty()) return;
  if (const auto [start, end] = matches[0]; start == 0 && end > 0) {
    result.keeps_start &= !content.empty() && CodePointAt(result.text, 0).length == end;
  }
  result.text = pattern.ReplaceAll(result.text, content);
}

}  // namespace

Normalizer::Normalizer(const std::string& file, const nlohmann::json& value) {
  for (ObjectReader& step : ReadSteps(file, "normalizer", value, "normalizers")) {
    const std::string type = step.String("type");
    if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
      steps_.emplace_back([compose = type.back() == 'C', compatible = type.size() == 4](Result& result) {
        result.text = NormalForm(result.text, compose, compatible);
      });
    } else if (type == "Lowercase") {
      steps_.emplace_back([](Result& result) {
        std::string lower;
        for (size_t i = 0; i < result.text.size(); i += CodePointAt(result.text, i).length)
          AppendLowercase(CodePointAt(result.text, i).value, lower);
        result.text = std::move(lower);
      });
    } else if (type == "Strip") {
      steps_.emplace_back([left = step.Bool("strip_left", true),
                           right = step.Bool("strip_right", true)](Result& result) { Strip(result, left, right); });
    } else if (type == "Prepend") {
      steps_.emplace_back([prefix = step.String("prepend")](Result& result) {
        if (!result.text.empty()) result.text.insert(0, prefix);
      });
    } else if (type == "Replace") {
      steps_.emplace_back([pattern = ReadPattern(step), content = step.String("content")](Result& result) {
        Replace(result, pattern, content);
      });
    } else if (type == "ByteLevel") {
      steps_.emplace_back([](Result& result) {
        std::string spelled;
        AppendSpelling(result.text, spelled);
        result.text = std::move(spelled);
      });
    } else {
      step.RefuseType("normalizer", "NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, ByteLevel");
    }
    step.RefuseOthers();
  }
}

Normalizer::Result Normalizer::Normalize(std::string_view text) const {
  Result result{std::string(text)};
  for (const auto& step : steps_) step(result);
  return result;
}

}  // namespace kgrpo::tokenizer
