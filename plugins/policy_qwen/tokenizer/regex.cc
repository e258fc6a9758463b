#include "policy_qwen/tokenizer/regex.h"

#include <kgrpo/sdk/error.h>
#include <oniguruma.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <new>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

const OnigUChar* Bytes(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

std::string MessageOf(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = onig_error_code_to_str(text, code, info);  // reads `info` for errors of compiling alone
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(length)};
}

// Gives the properties that the patterns of tokenizers use the code points that the reference's Oniguruma knows and an
// older one lacks. Oniguruma looks up properties defined here before its own; they are the process's, 20 at most.
void DefineProperties() {
  constexpr int kReferenceVersion = 16;
  auto& tables = *new std::deque<std::vector<OnigCodePoint>>;  // Oniguruma keeps pointers to them
  for (const std::string_view name :
       {"L", "Lu", "Ll", "Lm", "Lo", "M", "Mn", "Mc", "N", "Nd", "No", "P", "Po", "S", "Sm", "So", "Han", "Word"}) {
    const int type = ONIGENC_PROPERTY_NAME_TO_CTYPE(ONIG_ENCODING_UTF8, const_cast<OnigUChar*>(Bytes(name)),
                                                    const_cast<OnigUChar*>(Bytes(name)) + name.size());
    OnigCodePoint unused = 0;
    const OnigCodePoint* own = nullptr;
    if (type < 0 || ONIGENC_GET_CTYPE_CODE_RANGE(ONIG_ENCODING_UTF8, static_cast<OnigCtype>(type), &unused, &own) != 0)
      continue;
    std::vector<std::pair<OnigCodePoint, OnigCodePoint>> ranges;
    for (OnigCodePoint i = 0; i < own[0]; ++i) ranges.emplace_back(own[1 + 2 * i], own[2 + 2 * i]);
    for (const UnicodeRange& addition : UnicodeAdditions()) {
      const std::string_view category = addition.category;
      // All letters from plane 2 on are Han.
      const bool belongs = name == "Han"    ? addition.first >= 0x20000
                           : name == "Word" ? category[0] == 'L' || category[0] == 'M' || category == "Nd"
                                            : category.starts_with(name);
      if (belongs && addition.value <= kReferenceVersion) ranges.emplace_back(addition.first, addition.last);
    }
    std::sort(ranges.begin(), ranges.end());
    std::vector<OnigCodePoint>& table = tables.emplace_back(1);
    for (const auto& [first, last] : ranges) {
      if (table.size() > 1 && first <= table.back() + 1) {
        table.back() = std::max(table.back(), last);
      } else {
        table.insert(table.end(), {first, last});
      }
    }
    table[0] = static_cast<OnigCodePoint>((table.size() - 1) / 2);
    onig_unicode_define_user_property(std::string(name).c_str(), table.data());
  }
}

// `\d` and `\w` written as the properties above. Throws for what differs between versions in a way that can't be
// written so.
std::string WithKnownProperties(const std::string& pattern) {
  std::string out;
  int classes = 0;  // that are open
  const auto written = [&](char escape) -> std::string {
    const bool upper = escape == 'D' || escape == 'W';
    if (escape == 'd' || escape == 'D') return upper ? "\\P{Nd}" : "\\p{Nd}";
    if (escape != 'w' && escape != 'W') return {'\\', escape};
    if (classes > 0) return upper ? "\\P{Word}" : "\\p{Word}";
    return std::string(upper ? "[^" : "[") + "\\p{Word}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}]";  // these of Latin-1 too
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    for (const char* unlike : {"\\p{C}", "\\P{C}", "\\p{Cn}", "\\P{Cn}", "\\p{^C", "[:punct:]", "[:^punct:]"}) {
      if (std::string_view(pattern).substr(i).starts_with(unlike)) {
        throw Error(KGRPO_ERROR_UNSUPPORTED, "the pattern " + pattern + " uses " + unlike + " (at byte " +
                                                 std::to_string(i) + "), which differs between Oniguruma's versions");
      }
    }
    if (pattern[i] == '[') ++classes;
    if (pattern[i] == ']' && classes > 0) --classes;
    const bool escape = pattern[i] == '\\' && i + 1 < pattern.size();
    out += escape ? written(pattern[++i]) : std::string(1, pattern[i]);
  }
  return out;
}

}  // namespace

Regex::Regex(const std::string& pattern, Kind kind) {
  static std::mutex mutex;  // compiling is not safe from several threads
  const std::lock_guard<std::mutex> lock(mutex);
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encoding = ONIG_ENCODING_UTF8;
    onig_initialize(&encoding, 1);
    DefineProperties();
  });
  const std::string known = kind == Kind::kTokenizer ? WithKnownProperties(pattern) : pattern;
  regex_t* code = nullptr;
  OnigErrorInfo info{};
  const int result = onig_new(&code, Bytes(known), Bytes(known) + known.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                              kind == Kind::kLiteral  ? ONIG_SYNTAX_ASIS
                              : kind == Kind::kPython ? ONIG_SYNTAX_PYTHON
                                                      : OnigDefaultSyntax,
                              &info);
  if (result != ONIG_NORMAL) {
    throw Error(KGRPO_ERROR_INVALID,
                "the pattern " + pattern + " is not a regular expression: " + MessageOf(result, &info));
  }
  code_.reset(code, &onig_free);
}

std::vector<Span> Regex::FindAll(std::string_view valid_text) const {
  std::vector<Span> matches;
  // Made once, because many texts are single words.
  thread_local const std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region(
      onig_region_new(), [](OnigRegion* made) { onig_region_free(made, 1); });
  if (!region) throw std::bad_alloc();
  const OnigUChar* const begin = Bytes(valid_text);
  const OnigUChar* const limit = begin + valid_text.size();
  const size_t none = static_cast<size_t>(-1);
  size_t position = 0, last_end = none;
  while (position <= valid_text.size()) {
    const int found = onig_search(code_.get(), begin, limit, begin + position, limit, region.get(), ONIG_OPTION_NONE);
    if (found == ONIG_MISMATCH) break;
    if (found < 0) {
      throw Error(KGRPO_ERROR_INVALID, "matching a pattern against a text of " + std::to_string(valid_text.size()) +
                                           " bytes failed: " + MessageOf(found, nullptr));
    }
    const auto start = static_cast<size_t>(region->beg[0]), end = static_cast<size_t>(region->end[0]);
    if (start == end && end == last_end) {
      if (position >= valid_text.size()) break;
      position += CodePointAt(valid_text, position).length;
      continue;
    }
    matches.emplace_back(start, end);
    position = last_end = end;
  }
  return matches;
}

std::string Regex::ReplaceAll(std::string_view valid_text, std::string_view content) const {
  std::string out;
  size_t taken = 0;
  for (const auto& [start, end] : valid_text.empty() ? std::vector<Span>() : FindAll(valid_text)) {
    out.append(valid_text.substr(taken, start - taken)).append(content);
    taken = end;
  }
  return out.append(valid_text.substr(taken));
}

Regex ReadPattern(ObjectReader& step) {
  ObjectReader pattern = step.Object("pattern");
  const bool literal = pattern.Find("String") != nullptr;
  const std::string text = pattern.String(literal ? "String" : "Regex");
  pattern.RefuseOthers();
  try {
    return Regex(text, literal ? Regex::Kind::kLiteral : Regex::Kind::kTokenizer);
  } catch (const Error& error) {
    throw Error(error.code(), step.file() + ": " + pattern.PathOf("Regex") + ": " + error.what());
  }
}

}  // namespace kgrpo::tokenizer
