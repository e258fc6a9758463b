#include "policy_qwen/tokenizer/regex.h"

#include <kgrpo/sdk/error.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <span>

#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

constexpr int kReferenceVersion = 16;  // of Unicode, in Oniguruma as the reference has it

// The code points of the general categories that begin with `category` which PCRE2 may not know yet, as the inside of a
// class: \x{..}-\x{..}...
std::string AdditionsTo(std::string_view category) {
  std::string ranges;
  const std::span<const UnicodeAddition> additions = UnicodeAdditions();
  for (size_t i = 0; i < additions.size(); ++i) {
    const auto belongs = [&](size_t index) {
      return additions[index].version <= kReferenceVersion &&
             std::string_view(additions[index].category).starts_with(category);
    };
    if (!belongs(i)) continue;
    const uint32_t first = additions[i].first;
    while (i + 1 < additions.size() && belongs(i + 1) && additions[i + 1].first == additions[i].last + 1) ++i;
    char text[32];
    std::snprintf(text, sizeof(text), "\\x{%X}-\\x{%X}", first, additions[i].last);
    ranges += text;
  }
  return ranges;
}

// The meaning of `\w` in Oniguruma, as the inside of a class.
std::string Word() {
  return "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}" + AdditionsTo("L") + AdditionsTo("M") + AdditionsTo("Nd") +
         AdditionsTo("Nl") + AdditionsTo("Pc");
}

// Outside a class, Oniguruma's `\w` has these of Latin-1 besides: the superscript digits and the fractions.
constexpr std::string_view kMoreWordOutsideClass = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";

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
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return Copy(2);
      case 'v':  // one character to Oniguruma, a class to PCRE2
        return Replace(2, "\\x0b");
      case 's':
        return Replace(2, "\\p{White_Space}");
      case 'S':
        return Replace(2, "\\P{White_Space}");
      case 'd':
        return Replace(2, Category("Nd", /*negated=*/false, in_class));
      case 'D':
        return Replace(2, Category("Nd", /*negated=*/true, in_class));
      case 'w':
        return Replace(2, in_class ? Word() : "[" + Word() + std::string(kMoreWordOutsideClass) + "]");
      case 'W':
        if (in_class) break;
        return Replace(2, "[^" + Word() + std::string(kMoreWordOutsideClass) + "]");
      case 'p':
      case 'P':
        return Property(in_class);
      case 'x':
      case 'u':
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

  // A general category, of one or two letters. A negated one inside a class is left as PCRE2 knows it.
  static std::string Category(const std::string& name, bool negated, bool in_class) {
    std::string property = (negated ? "\\P{" : "\\p{") + name + "}";
    const std::string additions = AdditionsTo(name);
    if (additions.empty()) return property;
    if (in_class) return negated ? property : property + additions;
    return (negated ? "[^\\p{" : "[\\p{") + name + "}" + additions + "]";
  }

  // \p{Name}, \p{^Name}, \P{Name}: a general category, or else a script. PCRE2 would take a bare script name for
  // "script extensions", which is a larger set.
  void Property(bool in_class) {
    const size_t end = pattern_.find('}', position_);
    if (position_ + 2 >= pattern_.size() || pattern_[position_ + 2] != '{' || end == std::string_view::npos) {
      Refuse("a property without braces");
    }
    std::string name(pattern_.substr(position_ + 3, end - position_ - 3));
    bool negated = pattern_[position_ + 1] == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.erase(0, 1);
    }
    const size_t length = end + 1 - position_;
    if (name == "C" || name == "Cn")
      Refuse("the unassigned code points, \\p{" + name + "}, which differ by Unicode version,");
    if (name.size() <= 2) return Replace(length, Category(name, negated, in_class));
    const bool binary = name == "Alphabetic" || name == "White_Space" || name == "Any";
    Replace(length, (negated ? "\\P{" : "\\p{") + (binary ? name : "sc:" + name) + "}");
  }

  // \xHH (below 0x80: above, Oniguruma means a byte of UTF-8), \x{H...} and \uHHHH.
  void Character() {
    const bool braces = Ahead("\\x{");
    const size_t start = position_ + (braces ? 3 : 2);
    const size_t longest = braces ? 6 : pattern_[position_ + 1] == 'u' ? 4 : 2;
    size_t end = start;
    while (end < pattern_.size() && end - start < longest && std::isxdigit(static_cast<unsigned char>(pattern_[end])))
      ++end;
    const bool complete =
        braces ? end > start && end < pattern_.size() && pattern_[end] == '}' : end - start == longest;
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

// The working memory of one search; each search owns its own, so that a Regex can be shared.
class MatchSpace {
 public:
  explicit MatchSpace(const pcre2_code* code)
      : data_(pcre2_match_data_create_from_pattern(code, nullptr), &pcre2_match_data_free),
        stack_(nullptr, &pcre2_jit_stack_free),
        context_(nullptr, &pcre2_match_context_free) {
    if (!data_) throw std::bad_alloc();
  }

  // As pcre2_match. The JIT has 32 KiB of the machine's stack, which is enough for nearly every text; where it is not,
  // the search is done again with a stack of its own.
  int Match(const pcre2_code* code, std::string_view text, size_t position) {
    const auto match = [&] {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), position, PCRE2_NO_UTF_CHECK,
                         data_.get(), context_.get());
    };
    const int result = match();
    if (result != PCRE2_ERROR_JIT_STACKLIMIT || stack_) return result;
    stack_.reset(pcre2_jit_stack_create(64 * 1024, 64 * 1024 * 1024, nullptr));
    context_.reset(pcre2_match_context_create(nullptr));
    if (!stack_ || !context_) throw std::bad_alloc();
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
    return match();
  }

  const PCRE2_SIZE* offsets() const { return pcre2_get_ovector_pointer(data_.get()); }

 private:
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data_;
  std::unique_ptr<pcre2_jit_stack, decltype(&pcre2_jit_stack_free)> stack_;
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context_;
};

}  // namespace

std::string TranslatePattern(std::string_view oniguruma) {
  return Translator(oniguruma).Run();
}

void Regex::Free::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Regex::Regex(std::string_view oniguruma_pattern) : pattern_(TranslatePattern(oniguruma_pattern)) {
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);  // '.' excludes the line feed only
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern_.data()), pattern_.size(), PCRE2_UTF | PCRE2_UCP,
                            &error, &offset, context.get()));
  if (!code_) {
    throw Error(KGRPO_ERROR_INVALID, "the pattern " + std::string(oniguruma_pattern) +
                                         " is not a regular expression: " + Pcre2Message(error) + " (at byte " +
                                         std::to_string(offset) + " of " + pattern_ + ")");
  }
  // A machine without JIT memory still tokenizes, slower: pcre2_match falls back to the interpreter.
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
}

std::vector<std::pair<size_t, size_t>> Regex::FindAll(std::string_view valid_text) const {
  std::vector<std::pair<size_t, size_t>> matches;
  MatchSpace space(code_.get());
  const size_t none = static_cast<size_t>(-1);
  size_t position = 0, last_end = none;
  while (position <= valid_text.size()) {
    const int code = space.Match(code_.get(), valid_text, position);
    if (code == PCRE2_ERROR_NOMATCH) break;
    if (code < 0) {
      throw Error(KGRPO_ERROR_INVALID, "matching the pre-tokenizer's pattern against a text of " +
                                           std::to_string(valid_text.size()) + " bytes failed: " + Pcre2Message(code));
    }
    const size_t start = space.offsets()[0], end = space.offsets()[1];
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
