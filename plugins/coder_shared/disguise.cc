#include "coder_shared/parts.h"

#include "coder_shared/literals.h"
#include "coder_shared/text.h"
#include "cuda_source/lexer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kgrpo::coder_shared {
namespace {

using cuda_source::Lex, cuda_source::Token;

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

// Replaces each first text by its second.
std::string Replaced(std::string_view text, const Pairs& pairs) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const auto found = std::find_if(pairs.begin(), pairs.end(),
                                    [&](const auto& pair) { return text.substr(at).starts_with(pair.first); });
    if (found == pairs.end()) {
      result += text[at++];
    } else {
      result += found->second;
      at += found->first.size();
    }
  }
  return result;
}

std::string Joined(const std::vector<std::string_view>& lines) {
  std::string text;
  for (const std::string_view line : lines) text += std::string(line) + '\n';
  return text;
}

bool IsEmpty(std::string_view line) { return Trimmed(line).empty(); }

// Removes `count(line)` bytes from each line that is not empty; nothing if that is 0 for one of them.
template <typename Count>
bool RemoveFromLines(std::vector<std::string_view>* lines, const Count& count) {
  std::vector<std::string_view> rest;
  for (const std::string_view line : *lines) {
    const size_t bytes = IsEmpty(line) ? 0 : count(line);
    if (bytes == 0 && !IsEmpty(line)) return false;
    rest.push_back(IsEmpty(line) ? "" : line.substr(bytes));
  }
  *lines = std::move(rest);
  return true;
}

// The whole code is one line with "\n" in it.
std::string EscapedLineEnds(std::string code) {
  const size_t first = code.find("\\n");
  const bool one_line = Trimmed(code).find('\n') == std::string_view::npos;
  if (one_line && first != std::string::npos && code.find("\\n", first + 1) != std::string::npos)
    code = Unescaped(code);
  return code;
}

// Entities stand in the code itself, not only in its comments and literals.
std::string Entities(std::string code) {
  static const Pairs kEntities = {{"&lt;", "<"},    {"&gt;", ">"},   {"&amp;", "&"},  {"&quot;", "\""}, {"&apos;", "'"},
                                  {"&nbsp;", " "},  {"&#60;", "<"},  {"&#62;", ">"},  {"&#38;", "&"},   {"&#34;", "\""},
                                  {"&#39;", "'"},   {"&#160;", " "}, {"&#x3c;", "<"}, {"&#x3e;", ">"},  {"&#x26;", "&"},
                                  {"&#x22;", "\""}, {"&#x27;", "'"}, {"&#xa0;", " "}, {"&#x3C;", "<"},  {"&#x3E;", ">"},
                                  {"&#X3C;", "<"},  {"&#X3E;", ">"}};
  for (int escaped = 0; escaped < 2; ++escaped) {
    const auto tokens = Lex(code).tokens;
    const auto has = [&](const Token& token) {
      const size_t at = token.kind == Token::Kind::kDirective ? token.text.find('&') : token.Is("&") ? 0 : code.npos;
      const std::string_view rest = std::string_view(code).substr(std::min(token.begin + at, code.size()));
      return at < code.npos && std::any_of(kEntities.begin(), kEntities.end(),
                                           [&](const auto& entity) { return rest.starts_with(entity.first); });
    };
    if (std::none_of(tokens.begin(), tokens.end(), has)) break;
    code = Replaced(code, kEntities);
  }
  return code;
}

// "12 | ", "12: ", "[12] " or "12 " before every line, in rising order.
std::string LineNumbers(std::string code) {
  std::vector<std::string_view> lines = Lines(code);
  uint64_t number = 0, count = 0;
  const bool all = RemoveFromLines(&lines, [&](std::string_view line) -> size_t {
    size_t at = line.find_first_not_of(" \t");
    const size_t first = at += line[at] == 'L' || line[at] == '[' ? 1 : 0;
    uint64_t value = 0;
    while (at < line.size() && IsDigit(line[at]) && at < first + 9)
      value = value * 10 + static_cast<uint64_t>(line[at++] - '0');
    if (at == first || (count++ > 0 && value <= number)) return 0;
    number = value;
    size_t end = std::min(line.find_first_not_of(' ', at), line.size());
    for (const std::string_view mark : {"|", ":", ".", ")", "]", "\t", "\u2502", "\u2192"}) {
      if (line.substr(end).starts_with(mark)) return end + mark.size();
    }
    return end == line.size() ? end : at < end ? at : 0;
  });
  if (!all || count < 2) return code;
  RemoveFromLines(&lines, [](std::string_view line) { return line[0] == ' ' ? 1U : 0U; });
  return Joined(lines);
}

// The code itself has characters of typeset text, not only its comments and literals.
std::string Typography(std::string code) {
  static const Pairs kTypeset = {
      {"\ufeff", ""},   {"\u200b", ""},   {"\u200c", ""},   {"\u200d", ""},   {"\u2060", ""},   {"\u00ad", ""},
      {"\u200e", ""},   {"\u00a0", " "},  {"\u202f", " "},  {"\u2007", " "},  {"\u2009", " "},  {"\u2003", " "},
      {"\u3000", " "},  {"\u2028", "\n"}, {"\u201c", "\""}, {"\u201d", "\""}, {"\u201e", "\""}, {"\u00ab", "\""},
      {"\u00bb", "\""}, {"\u2033", "\""}, {"\u2018", "'"},  {"\u2019", "'"},  {"\u2212", "-"},  {"\u2013", "-"},
      {"\u2010", "-"},  {"\u2011", "-"},  {"\u2014", "--"}, {"\uff1b", ";"},  {"\uff0c", ","},  {"\uff08", "("},
      {"\uff09", ")"},  {"\uff5b", "{"},  {"\uff5d", "}"},  {"\uff1a", ":"},  {"\uff1d", "="}};
  for (const Token& token : Lex(code).tokens) {
    const bool literal = token.kind == Token::Kind::kString || token.kind == Token::Kind::kCharacter;
    if (literal || std::none_of(token.text.begin(), token.text.end(), [](char c) { return (c & 0x80) != 0; })) continue;
    return Replaced(code, kTypeset);
  }
  return code;
}

// Lines above the code: a language, a button's text, a notebook's command.
std::string FirstLines(std::string code) {
  for (;;) {
    const std::string line = Lower(Trimmed(code.substr(0, code.find('\n'))));
    if (!line.starts_with("%%") && !Contains("|cuda|cpp|c++|copy|copy code|", "|" + line + "|")) return code;
    code.erase(0, std::min(code.find('\n'), code.size() - 1) + 1);
  }
}

}  // namespace

std::string Undisguised(std::string code) {
  for (const auto undo : {EscapedLineEnds, Entities, LineNumbers, Typography, FirstLines}) code = undo(std::move(code));
  return code;
}

std::string WithLines(std::string_view answer) {
  std::string text = Replaced(answer, {{"\r\n", "\n"}, {"\r", "\n"}});
  if (text.starts_with("\ufeff")) text.erase(0, 3);
  return text.find_first_of("{[") == 0 ? text : EscapedLineEnds(std::move(text));
}

std::string WithPlainApostrophes(std::string_view text) { return Replaced(text, {{"\u2019", "'"}}); }

}  // namespace kgrpo::coder_shared
