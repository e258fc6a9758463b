#include "coder_shared/source.h"

#include "coder_shared/text.h"
#include "cuda_source/lexer.h"

#include <algorithm>
#include <map>
#include <vector>

namespace kgrpo::coder_shared {
namespace {

using cuda_source::Closes, cuda_source::Lex, cuda_source::Token;
using Tokens = std::vector<Token>;

bool Is(const Tokens& tokens, size_t i, std::string_view text) { return i < tokens.size() && tokens[i].Is(text); }

bool IsName(const Tokens& tokens, size_t i) { return i < tokens.size() && tokens[i].kind == Token::Kind::kIdentifier; }

// True if the parenthesis at `open` is followed by a body.
bool HasBody(const Tokens& tokens, const std::vector<size_t>& closes, size_t open) {
  if (closes[open] == 0) return false;
  const size_t after = closes[open] + 1;
  return Is(tokens, Is(tokens, after, "noexcept") ? after + 1 : after, "{");
}

// The name of the kernel that "<<<" at `at` launches, which may have template arguments; `at` if there is none.
size_t LaunchedName(const Tokens& tokens, size_t at) {
  constexpr size_t kMostTokens = 64;  // of the template's arguments
  int depth = 0;
  for (size_t i = at; i-- > 0 && at - i < kMostTokens;) {
    if (depth == 0 && IsName(tokens, i)) return i;
    if (depth == 0 && !Is(tokens, i, ">")) break;
    depth += Is(tokens, i, ">") ? 1 : Is(tokens, i, "<") ? -1 : 0;
  }
  return at;
}

}  // namespace

bool OpensScope(const Tokens& tokens, size_t at) {
  return at > 0 && (tokens[at - 1].kind == Token::Kind::kString || Is(tokens, at - 1, "namespace") ||
                    (at > 1 && Is(tokens, at - 2, "namespace")));
}

std::vector<Comment> CommentsOf(std::string_view source, const Tokens& tokens, bool* open) {
  std::vector<Comment> comments;
  size_t at = 0;
  for (size_t next = 0; next <= tokens.size(); ++next) {
    const size_t end = next < tokens.size() ? tokens[next].begin : source.size();
    while (at + 1 < end) {
      const std::string_view two = source.substr(at, 2);
      const size_t close = two == "//" ? source.find('\n', at) : two == "/*" ? source.find("*/", at + 2) + 2 : at + 1;
      const bool unended = two == "/*" && close == 1;  // npos + 2
      const size_t after = unended ? end : std::min(close, end);
      if (two == "//" || two == "/*") comments.push_back({at, after});
      if (open != nullptr) *open = unended;
      at = after;
    }
    at = next < tokens.size() ? tokens[next].end : end;
  }
  return comments;
}

bool IsBalanced(std::string_view source) {
  bool balanced = false;
  Closes(Lex(source).tokens, &balanced);
  return balanced && !EndsInComment(source);
}

bool EndsInComment(std::string_view source) {
  bool open = false;
  CommentsOf(source, Lex(source).tokens, &open);
  return open;
}

std::string Essence(std::string_view source) {
  const Tokens tokens = Lex(source).tokens;
  std::string essence;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.kind == Token::Kind::kDirective) {
      bool blank = false;
      essence += '\n';
      for (const char c : cuda_source::RemoveSplices(token.text)) {
        if (blank && c != ' ' && c != '\t' && c != '\r') essence += ' ';
        blank = c == ' ' || c == '\t' || c == '\r';
        if (!blank) essence += c;
      }
      essence += '\n';
      continue;
    }
    // Without a blank between them the two are one operator: "a ++b" is not "a + +b".
    const bool one = i > 0 && tokens[i - 1].end == token.begin && (tokens[i - 1].text == token.text || token.Is("=")) &&
                     std::string_view("+-&|<>=!*/%^").find(tokens[i - 1].text) != std::string_view::npos;
    if (!essence.empty() && !one) essence += ' ';
    essence += token.text;
  }
  return essence;
}

std::string StrayCharacter(std::string_view source) {
  const Tokens tokens = Lex(source).tokens;
  if (Is(tokens, 0, ">")) return ">";  // a quotation
  for (const Token& token : tokens) {
    const bool spliced = token.text == "\\" && source.substr(token.end).starts_with('\n');
    if (token.kind == Token::Kind::kPunctuation && token.text.find_first_of("`\\@") == 0 && !spliced)
      return std::string(token.text);
  }
  return "";
}

Names NamesOf(std::string_view source) {
  static const NameSet kFixed = {"const",   "constexpr", "__constant__", "__device__", "static", "inline", "extern",
                                 "typedef", "using",     "struct",       "class",      "enum",   "union"};
  static const NameSet kBeforeUses = {"return", "else", "case", "throw", "new", "delete", "sizeof", "do"};
  static const NameSet kStatements = {"if", "for", "while", "switch", "do"};
  Names names;
  const Tokens tokens = Lex(source).tokens;
  const std::vector<size_t> closes = Closes(tokens);
  std::map<std::string_view, size_t> elsewhere;  // how often a name occurs other than in a launch
  std::vector<size_t> launched;
  std::set<std::string_view> functions;  // of the device
  size_t body = 0;                       // the closing brace of the outermost body that contains the token
  // In a declaration: its name was found; it declares no mere variable; it is one of the device.
  bool named = false, fixed = false, on_device = false;
  int parens = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.kind == Token::Kind::kDirective) {
      const Tokens words = Lex(token.text.substr(1)).tokens;
      for (const Token& word : words) ++elsewhere[word.text];
      if (Is(words, 0, "define") && words.size() > 1) names.defined.emplace(words[1].text);
      continue;
    }
    if (token.Is("<<<")) launched.push_back(LaunchedName(tokens, i));
    if (IsName(tokens, i)) {
      ++elsewhere[token.text];
      const bool member = i > 0 && (Is(tokens, i - 1, ".") || Is(tokens, i - 1, "->") || Is(tokens, i - 1, "::"));
      if (!member) names.used.emplace(token.text);
      if (i > 0 && IsName(tokens, i - 1) && kBeforeUses.count(tokens[i - 1].text) == 0)
        names.declared.emplace(token.text);
    }
    if (i < body) continue;
    const bool scope = token.Is("{") && OpensScope(tokens, i);
    if (token.Is("{") && !scope) body = closes[i];
    if (scope || token.Is(";") || token.Is("}")) named = fixed = on_device = false;
    parens += token.Is("(") ? 1 : token.Is(")") ? -1 : 0;
    if (token.Is(",") && fixed && parens == 0) named = false;  // constexpr int kRows = 4, kCols = 8;
    if (token.Is("template") && Is(tokens, i + 1, "<")) {
      for (int depth = 0; ++i < tokens.size();) {
        depth += Is(tokens, i, "<") ? 1 : Is(tokens, i, ">") ? -1 : 0;
        if (IsName(tokens, i)) names.used.emplace(tokens[i].text);
        if (depth == 0) break;
      }
    }
    if (i >= tokens.size() || !IsName(tokens, i) || named) continue;
    fixed = fixed || kFixed.count(token.text) > 0;
    on_device = on_device || token.Is("__device__");
    names.runs = names.runs || kStatements.count(token.text) > 0;
    if (Is(tokens, i + 1, "(")) {
      if (token.text.starts_with("__") || token.Is("alignas")) {  // __launch_bounds__(256)
        i = std::max(i, closes[i + 1]);
        continue;
      }
      named = true;
      const bool defined = HasBody(tokens, closes, i + 1);
      if (defined) names.defined.emplace(token.text);
      if (defined && on_device) functions.insert(token.text);
      const bool declared = i > 0 && (IsName(tokens, i - 1) || Is(tokens, i - 1, "*") || Is(tokens, i - 1, "&") ||
                                      Is(tokens, i - 1, ">"));
      const bool macro =
          !defined && names.defined.count(std::string(token.text)) > 0;  // which defines what it is given
      for (size_t k = i + 2; macro && k < closes[i + 1]; ++k) {
        if (IsName(tokens, k)) names.defined.emplace(tokens[k].text);
      }
      if (declared && !defined && Is(tokens, closes[i + 1] + 1, ";")) {
        names.prototypes.emplace(token.text);
        --elsewhere[token.text];
      }
      names.runs = names.runs || (!declared && !defined && !macro && !token.Is("static_assert") && !token.Is("asm"));
    } else if (Is(tokens, i + 1, "=") || Is(tokens, i + 1, "[") || Is(tokens, i + 1, "{") || Is(tokens, i + 1, ":") ||
               (Is(tokens, i + 1, ";") && i > 0 && !Is(tokens, i - 1, "struct"))) {
      named = true;
      if (fixed && !Is(tokens, i - 1, "namespace")) names.defined.emplace(token.text);
    }
  }
  for (const size_t name : launched) --elsewhere[tokens[name].text];
  if (source.find("##") != std::string_view::npos) return names;  // macros may make them
  for (const size_t name : launched) {
    if (elsewhere[tokens[name].text] == 0) names.only_launched.emplace(tokens[name].text);
    functions.erase(tokens[name].text);
  }
  for (const std::string_view name : functions) {
    if (elsewhere[name] == 1) names.idle.emplace(name);
  }
  return names;
}

}  // namespace kgrpo::coder_shared
