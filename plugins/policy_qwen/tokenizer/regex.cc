#include "policy_qwen/tokenizer/regex.h"

#include <kgrpo/sdk/error.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cctype>
#include <cstdint>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

// What `\w` stands for in Oniguruma, as the inside of a class.
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";

// Walks a pattern once, from left to right, and writes its translation.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string Run() {
    while (position_ < pattern_.size()) {
      const char c = pattern_[position_];
      if (c == '\\') {
        Escape(/*in_class=*/false);
      } else if (c == '[') {
        Class();
      } else if (c == '(') {
        Group();
      } else if (c == '{') {
        Interval();
      } else if (c == '^' || c == '$') {
        Refuse(std::string("the anchor '") + c + "'");
      } else {
        Copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void Refuse(const std::string& what) const {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "the pattern " + std::string(pattern_) + " uses " + what + " (at byte " +
                                             std::to_string(position_) + "), which is not supported");
  }

  std::string_view Rest() const { return pattern_.substr(position_); }
  bool Ahead(std::string_view text) const { return Rest().starts_with(text); }
  void Copy(size_t count) {
    out_.append(pattern_.substr(position_, count));
    position_ += count;
  }

  void Escape(bool in_class) {
    if (position_ + 1 >= pattern_.size()) Refuse("a backslash at its end");
    const char c = pattern_[position_ + 1];
    if (!std::isalnum(static_cast<unsigned char>(c))) return Copy(2);
    switch (c) {
      case 'r': case 'n': case 't': case 'f': case 'a': case 'e':
        return Copy(2);
      case 'v':  // one character to Oniguruma, a class to PCRE2
        return Replace(2, "\\x0b");
      case 's':
        return Replace(2, "\\p{White_Space}");
      case 'S':
        return Replace(2, "\\P{White_Space}");
      case 'd':
        return Replace(2, "\\p{Nd}");
      case 'D':
        return Replace(2, "\\P{Nd}");
      case 'w':
        return Replace(2, in_class ? std::string(kWord) : "[" + std::string(kWord) + "]");
      case 'W':
        if (in_class) break;
        return Replace(2, "[^" + std::string(kWord) + "]");
      case 'p': case 'P':
        return Property();
      case 'x': case 'u':
        return Character();
      default:
        break;
    }
    Refuse("the escape '\\" + std::string(1, c) + "'" + (in_class ? " inside a class" : ""));
  }

  void Replace(size_t count, std::string_view by) {
    out_.append(by);
    position_ += count;
  }

  // \p{Name}, \p{^Name}, \P{Name}. General categories have one or two letters; a longer name is taken for a script. PCRE2
  // would take a bare script name for "script extensions", which is a larger set.
  void Property() {
    const size_t end = pattern_.find('}', position_);
    if (position_ + 2 >= pattern_.size() || pattern_[position_ + 2] != '{' || end == std::string_view::npos) {
      Refuse("a property without braces");
    }
    std::string_view name = pattern_.substr(position_ + 3, end - position_ - 3);
    bool negated = pattern_[position_ + 1] == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    const bool whole = name.size() <= 2 || name == "Alphabetic" || name == "White_Space" || name == "Any";
    Replace(end + 1 - position_,
            std::string(negated ? "\\P{" : "\\p{") + (whole ? "" : "sc:") + std::string(name) + "}");
  }

  // \xHH (below 0x80: above, Oniguruma means a byte of UTF-8), \x{H...} and \uHHHH.
  void Character() {
    const bool braces = Ahead("\\x{");
    const size_t start = position_ + (braces ? 3 : 2);
    const size_t longest = braces ? 6 : pattern_[position_ + 1] == 'u' ? 4 : 2;
    size_t end = start;
    while (end < pattern_.size() && end - start < longest && std::isxdigit(static_cast<unsigned char>(pattern_[end]))) ++end;
    const bool complete = braces ? end > start && end < pattern_.size() && pattern_[end] == '}' : end - start == longest;
    if (!complete) Refuse("an incomplete character code");
    const std::string digits(pattern_.substr(start, end - start));
    if (longest == 2 && std::stoul(digits, nullptr, 16) >= 0x80) Refuse("a byte above 0x7F");
    Replace(end + (braces ? 1 : 0) - position_, "\\x{" + digits + "}");
  }

  void Class() {
    Copy(1);
    if (Ahead("^")) Copy(1);
    if (Ahead("]")) Refuse("an empty class");
    while (!Ahead("]")) {
      if (position_ >= pattern_.size()) Refuse("a class without an end");
      if (Ahead("[")) Refuse("a class inside a class");
      if (Ahead("&&")) Refuse("an intersection of classes ('&&')");
      if (Ahead("\\")) {
        Escape(/*in_class=*/true);
      } else {
        Copy(1);
      }
    }
    Copy(1);
  }

  void Group() {
    if (!Ahead("(?")) return Copy(1);
    for (const std::string_view opening : {"(?:", "(?i:", "(?i)", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (Ahead(opening)) return Copy(opening.size());
    }
    Refuse("the group '" + std::string(Rest().substr(0, 4)) + "'");
  }

  void Interval() {
    const size_t end = pattern_.find('}', position_);
    if (end == std::string_view::npos || Ahead("{,") || Ahead("{}")) Refuse("a brace that is no {n}, {n,} or {n,m}");
    for (size_t i = position_ + 1; i < end; ++i) {
      if (!std::isdigit(static_cast<unsigned char>(pattern_[i])) && pattern_[i] != ',') {
        Refuse("a brace that is no {n}, {n,} or {n,m}");
      }
    }
    // Oniguruma repeats the interval where PCRE2 would make it possessive.
    if (end + 1 < pattern_.size() && pattern_[end + 1] == '+') Refuse("'+' after an interval");
    Copy(end + 1 - position_);
  }

  std::string_view pattern_;
  size_t position_ = 0;
  std::string out_;
};

std::string Pcre2Message(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

// What one search needs besides the code; a search owns its own, so that a Regex can be shared.
struct MatchSpace {
  explicit MatchSpace(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr), &pcre2_match_data_free),
        stack(pcre2_jit_stack_create(32 * 1024, 8 * 1024 * 1024, nullptr), &pcre2_jit_stack_free),
        context(pcre2_match_context_create(nullptr), &pcre2_match_context_free) {
    if (!data || !context) throw std::bad_alloc();
    // Without a JIT there is no stack, and none is needed.
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data;
  std::unique_ptr<pcre2_jit_stack, decltype(&pcre2_jit_stack_free)> stack;
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context;
};

}  // namespace

std::string TranslatePattern(std::string_view oniguruma) { return Translator(oniguruma).Run(); }

void Regex::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Regex::Regex(std::string_view oniguruma_pattern) : pattern_(TranslatePattern(oniguruma_pattern)) {
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);  // '.' excludes the line feed only
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern_.data()), pattern_.size(), PCRE2_UTF | PCRE2_UCP, &error,
                            &offset, context.get()));
  if (!code_) {
    throw Error(KGRPO_ERROR_INVALID, "the pattern " + std::string(oniguruma_pattern) + " is not a regular expression: " +
                                         Pcre2Message(error) + " (at byte " + std::to_string(offset) + " of " + pattern_ + ")");
  }
  // A machine without JIT memory still tokenizes, slower: pcre2_match falls back to the interpreter.
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
}

std::vector<std::pair<size_t, size_t>> Regex::FindAll(std::string_view valid_text) const {
  std::vector<std::pair<size_t, size_t>> matches;
  const MatchSpace space(code_.get());
  const size_t none = static_cast<size_t>(-1);
  size_t position = 0, last_end = none;
  while (position <= valid_text.size()) {
    const int code = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(valid_text.data()), valid_text.size(), position,
                                 PCRE2_NO_UTF_CHECK, space.data.get(), space.context.get());
    if (code == PCRE2_ERROR_NOMATCH) break;
    if (code < 0) {
      throw Error(KGRPO_ERROR_INVALID, "matching the pre-tokenizer's pattern against a text of " +
                                           std::to_string(valid_text.size()) + " bytes failed: " + Pcre2Message(code));
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(space.data.get());
    const size_t start = offsets[0], end = offsets[1];
    if (start == end && start == last_end) {
      if (position >= valid_text.size()) break;
      position += CodePointAt(valid_text, position).length;
      continue;
    }
    matches.emplace_back(start, end);
    position = last_end = end;
  }
  return matches;
}

}  // namespace kgrpo::tokenizer
