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

bool Is(const Tokens& tokens, size_t i, std::string_view text) {
  return i < tokens.size() && tokens[i].Is(text);
}

bool IsName(const Tokens& tokens, size_t i) {
  return i < tokens.size() && tokens[i].kind == Token::Kind::kIdentifier;
}

// True if the parenthesis at `open` is followed by a body.
bool HasBody(const Tokens& tokens, const std::vector<size_t>& closes, size_t open) {
  if (closes[open] == 0) return false;
  const size_t after = closes[open] + 1;
  return Is(tokens, Is(tokens, after, "noexcept") ? after + 1 : after, "{");
}

// True if the brace at `at` belongs to a namespace or extern "C".
bool OpensScope(const Tokens& tokens, size_t at) {
  return at > 0 && (tokens[at - 1].kind == Token::Kind::kString || Is(tokens, at - 1, "namespace") ||
                    (at > 1 && Is(tokens, at - 2, "namespace")));
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

struct Comment {
  size_t begin, end;
};

// The comments, which are the text between tokens. Sets *open if the last one does not end.
std::vector<Comment> Comments(std::string_view source, const Tokens& tokens, bool* open) {
  std::vector<Comment> comments;
  size_t at = 0;
  for (size_t next = 0; next <= tokens.size(); ++next) {
    const size_t end = next < tokens.size() ? tokens[next].begin : source.size();
    while (at + 1 < end) {
      const std::string_view two = source.substr(at, 2);
      const size_t close = two == "//" ? source.find('\n', at) : two == "/*" ? source.find("*/", at + 2) + 2 : at + 1;
      *open = two == "/*" && close == 1;  // npos + 2
      const size_t after = *open ? end : std::min(close, end);
      if (two == "//" || two == "/*") comments.push_back({at, after});
      at = after;
    }
    at = next < tokens.size() ? tokens[next].end : end;
  }
  return comments;
}

// Does a comment, or a line of the code, stand for code that is left out?
enum class Sign {
  kNone,
  kLikely,  // if a brace closes after it, or the text ends: a remark may read so
  kInBody,  // within a function
  kSure,
};

Sign SignIn(std::string_view comment) {
  std::string words = " ";
  for (const char c : Lower(comment) + " ") {
    if (IsLetter(c) || words.back() != ' ') words += IsLetter(c) ? c : ' ';
  }
  constexpr std::string_view kAround = "/*# \t\r\n()[]<>-";
  const size_t first = comment.find_first_not_of(kAround);
  if (first == std::string_view::npos) return Sign::kNone;
  comment = comment.substr(first, comment.find_last_not_of(kAround) + 1 - first);
  const bool begins = comment.starts_with("...") || comment.starts_with("\u2026");
  const bool ends = comment.ends_with("...") || comment.ends_with("\u2026");
  const bool bare = comment.find_first_not_of(".\xe2\x80\xa6") == std::string_view::npos;
  const auto count = std::count(words.begin(), words.end(), ' ') - 1;
  const auto has = [&words](std::string_view phrases) { return FindAny(words, phrases) < words.size(); };
  const bool phrase = has(
      " rest of the code | rest of code | rest of the kernel | rest of kernel | rest of the function | rest of the "
      "file | rest of the implementation | rest unchanged | rest is | rest remains | rest as | rest stays | rest same |"
      " remaining code | existing | same as | same code | unchanged | unmodified | no change | no changes | omitted |"
      " elided | snip | as before | as above | as in the original | as they were | as given | identical to | previous "
      "implementation | previous code | original code | your code | see above | implementation here | goes here |"
      " code here | todo implement | todo add | todo fill | todo write | todo complete | fill in | to be implemented |"
      " not implemented | placeholder | keep the rest ");
  if ((begins && ends && !bare) || (phrase && ends && count <= 4)) return Sign::kSure;
  if (begins && count <= 8 &&
      has(" above | before | body | code | definitions | existing | function | functions | helper | helpers | here |"
          " identical | implementation | includes | kernel | kernels | keep | logic | omitted | original | other |"
          " previous | remain | remaining | remains | rest | same | snip | unchanged | unmodified "))
    return Sign::kInBody;
  const bool in_chinese = FindAny(comment, "\u4e0d\u53d8|\u7701\u7565|\u540c\u4e0a|\u5176\u4f59") < comment.size();
  const bool short_words = count <= 8 && has(" same | identical | previous | original | kept | etc | your | brevity ");
  return begins || phrase || in_chinese || short_words ? Sign::kLikely : Sign::kNone;
}

// Tells whether places, each after the last one, are within a function or a type.
class Bodies {
 public:
  explicit Bodies(const Tokens& tokens) : tokens_(tokens) {}

  bool Contain(size_t place) {
    for (; next_ < tokens_.size() && tokens_[next_].begin < place; ++next_) {
      if (tokens_[next_].Is("{") && (depth_ > 0 || !OpensScope(tokens_, next_))) ++depth_;
      if (tokens_[next_].Is("}") && depth_ > 0) --depth_;
    }
    return depth_ > 0;
  }

 private:
  const Tokens& tokens_;
  size_t next_ = 0;
  int depth_ = 0;
};

// True if nothing but blanks, or a brace that opens, stands before `at` on its line.
bool BeginsLine(std::string_view source, size_t at) {
  while (at > 0 && (source[at - 1] == ' ' || source[at - 1] == '\t')) --at;
  return at == 0 || source[at - 1] == '\n' || source[at - 1] == '{';
}

}  // namespace

bool IsBalanced(std::string_view source) {
  bool balanced = false;
  Closes(Lex(source).tokens, &balanced);
  return balanced && !EndsInComment(source);
}

bool EndsInComment(std::string_view source) {
  bool open = false;
  Comments(source, Lex(source).tokens, &open);
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
  size_t body = 0;                    // the closing brace of the outermost body that contains the token
  bool named = false, fixed = false;  // the declaration's name was found; it declares no mere variable
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
    if (scope || token.Is(";") || token.Is("}")) named = fixed = false;
    if (token.Is("template") && Is(tokens, i + 1, "<")) {
      for (int depth = 0; ++i < tokens.size();) {
        depth += Is(tokens, i, "<") ? 1 : Is(tokens, i, ">") ? -1 : 0;
        if (IsName(tokens, i)) names.used.emplace(tokens[i].text);
        if (depth == 0) break;
      }
    }
    if (i >= tokens.size() || !IsName(tokens, i) || named) continue;
    fixed = fixed || kFixed.count(token.text) > 0;
    names.runs = names.runs || kStatements.count(token.text) > 0;
    if (Is(tokens, i + 1, "(")) {
      if (token.text.starts_with("__") || token.Is("alignas")) {  // __launch_bounds__(256)
        i = std::max(i, closes[i + 1]);
        continue;
      }
      named = true;
      const bool defined = HasBody(tokens, closes, i + 1);
      if (defined) names.defined.emplace(token.text);
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
  }
  return names;
}

std::string LeftOut(std::string_view source, std::string_view current) {
  const Tokens tokens = Lex(source).tokens;
  Bodies bodies(tokens);
  bool open = false;
  for (const Comment& comment : Comments(source, tokens, &open)) {
    const bool in_body = bodies.Contain(comment.begin);
    const std::string_view text = Trimmed(source.substr(comment.begin, comment.end - comment.begin));
    const Sign sign = SignIn(text);
    if (sign == Sign::kNone || !BeginsLine(source, comment.begin) || current.find(text) != std::string_view::npos)
      continue;
    const size_t next = std::min(source.find_first_not_of(" \t\r\n", comment.end), source.size());
    if (sign == Sign::kSure || next == source.size() || source[next] == '}' || (sign == Sign::kInBody && in_body))
      return OneLine(text);
  }
  constexpr size_t kMostLine = 400;  // bytes that each token looks at
  static const NameSet kDirectives = {"include", "define", "undef", "if",     "ifdef", "ifndef", "elif",
                                      "else",    "endif",  "error", "pragma", "line",  "warning"};
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string_view line = source.substr(tokens[i].begin, kMostLine);
    line = line.substr(0, line.find('\n'));
    if (tokens[i].kind == Token::Kind::kDirective) {  // "# rest of the code"
      const Tokens words = Lex(tokens[i].text.substr(1)).tokens;
      if (IsName(words, 0) && kDirectives.count(words[0].text) == 0) return OneLine(line);
    }
    if (!line.starts_with("...") && !line.starts_with("\u2026") && !line.starts_with("# ...")) continue;
    const bool instead = i > 0 && (Is(tokens, i - 1, "{") || Is(tokens, i - 1, ";") || Is(tokens, i - 1, "<<<"));
    if (instead || (BeginsLine(source, tokens[i].begin) && SignIn(line) >= Sign::kInBody)) return OneLine(line);
  }
  const Names names = NamesOf(source);
  if (!names.only_launched.empty()) return "it launches " + *names.only_launched.begin() + ", which it does not define";
  for (const std::string& name : NamesOf(current).defined) {
    const bool declared = names.declared.count(name) > 0 && names.prototypes.count(name) == 0;
    if (names.used.count(name) > 0 && names.defined.count(name) == 0 && !declared)
      return "it uses " + name + ", which only the given kernel defines";
  }
  return "";
}

}  // namespace kgrpo::coder_shared
