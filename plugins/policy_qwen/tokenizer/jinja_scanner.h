// The characters and words of a Jinja template: the lowest part of its interpreter (jinja_expressions.h, jinja.cc).
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_SCANNER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_SCANNER_H_
#include <initializer_list>
#include <string>
#include <string_view>

#include "policy_qwen/tokenizer/jinja.h"
#include "policy_qwen/tokenizer/jinja_value.h"

namespace kgrpo::jinja {

// Reads from a place in a template, and moves it on.
class Scanner {
 public:
  // The line of the current place.
  std::string Line() const {
    return std::to_string(
        1 + std::count(source_.begin(), source_.begin() + static_cast<ptrdiff_t>(std::min(at_, source_.size())), '\n'));
  }

 protected:
  using Words = std::initializer_list<std::string_view>;

  // `first`: receives what the first reading finds; null later.
  Scanner(std::string_view source, const Template::Notes& notes, Template::Notes* first)
      : source_(source), notes_(notes), first_(first) {}

  bool Starts(std::string_view text) const { return source_.substr(std::min(at_, source_.size())).starts_with(text); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  static bool IsNameCharacter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0;
  }
  void SkipSpace();
  [[noreturn]] void FailHere(const std::string& expected);
  // Reads a word or an operator, if it is next.
  bool Accept(std::string_view text);
  // True if `c` and what follows are another operator or a tag's end.
  bool IsHalf(char c, char next) const;
  void Expect(std::string_view text);
  bool IsNext(std::string_view text);
  std::string AcceptAny(Words words);
  std::string Note(std::string word);
  std::string Name();
  Value Number();
  std::string String();
  // Adds the text up to the next tag to `out`, and returns the tag's place. '-' strips all white space before a tag; a
  // statement or comment without '+' strips the blanks before it on its line.
  size_t PlainText(std::string* out);
  void Comment();
  // Reads the end of a tag. '-' strips all white space after it, a statement or comment without '+' the line feed.
  void Close(std::string_view closing);

  std::string_view source_;
  const Template::Notes& notes_;
  Template::Notes* first_;
  size_t at_ = 0;
};

}  // namespace kgrpo::jinja
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_SCANNER_H_
