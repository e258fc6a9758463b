#include "policy_qwen/tokenizer/jinja_program.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace kgrpo::tokenizer {
namespace {

using Kind = JinjaToken::Kind;

constexpr std::string_view kSpace = " \t\n\r\f\v";
constexpr int kDeepest = 64;  // blocks within blocks; real templates need eight

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

constexpr std::array<std::string_view, 8> kOperatorWords = {"and", "or", "not", "in", "is", "if", "else", "elif"};

bool IsOperatorWord(std::string_view word) {
  return std::find(kOperatorWords.begin(), kOperatorWords.end(), word) != kOperatorWords.end();
}

// A tag or the text between two tags.
struct Piece {
  enum class Kind { kText, kOutput, kStatement, kComment } kind;
  std::string_view inside;  // without the delimiters and the '-' that strip
  bool strips_before = false;
  bool strips_after = false;
};

// The end of the tag that starts at `start`: the place of `closing` outside of quotes.
size_t EndOfTag(std::string_view program, size_t start, std::string_view closing, bool quotes) {
  char quote = 0;
  for (size_t i = start; i < program.size(); ++i) {
    const char c = program[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (quotes && (c == '\'' || c == '"')) {
      quote = c;
    } else if (program.substr(i).starts_with(closing)) {
      return i;
    }
  }
  throw Error(KGRPO_ERROR_INVALID,
              "the template has a tag without an end: " + std::string(program.substr(start - 2, 40)));
}

std::vector<Piece> CutIntoPieces(std::string_view program) {
  std::vector<Piece> pieces;
  size_t position = 0;
  while (position < program.size()) {
    size_t tag = position;
    while (true) {
      tag = program.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= program.size()) {
        tag = program.size();
        break;
      }
      if (program[tag + 1] == '{' || program[tag + 1] == '%' || program[tag + 1] == '#') break;
      ++tag;
    }
    pieces.push_back({Piece::Kind::kText, program.substr(position, tag - position)});
    if (tag == program.size()) break;
    const char opening = program[tag + 1];
    const std::string closing = std::string(1, opening == '{' ? '}' : opening) + "}";
    const size_t end = EndOfTag(program, tag + 2, closing, opening != '#');
    Piece piece{opening == '{'   ? Piece::Kind::kOutput
                : opening == '%' ? Piece::Kind::kStatement
                                 : Piece::Kind::kComment,
                program.substr(tag + 2, end - tag - 2)};
    if (piece.inside.starts_with('-')) {
      piece.strips_before = true;
      piece.inside.remove_prefix(1);
    }
    if (piece.inside.ends_with('-')) {
      piece.strips_after = true;
      piece.inside.remove_suffix(1);
    }
    pieces.push_back(piece);
    position = end + 2;
  }
  return pieces;
}

// The text between two tags, stripped: '-' strips all white space on its side; otherwise a statement or comment takes
// the line feed after it, and the blanks before it on its line.
std::string_view StripText(std::string_view text, const Piece* before, const Piece* after) {
  const auto is_block = [](const Piece* piece) { return piece != nullptr && piece->kind != Piece::Kind::kOutput; };
  if (before != nullptr && before->strips_after) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  } else if (is_block(before) && text.starts_with('\n')) {
    text.remove_prefix(1);
  }
  if (after != nullptr && after->strips_before) {
    const size_t last = text.find_last_not_of(kSpace);
    return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  }
  if (is_block(after)) {
    const size_t last = text.find_last_not_of(" \t");
    const size_t kept = last == std::string_view::npos ? 0 : last + 1;
    const bool line_start = kept == 0 ? before == nullptr || is_block(before) : text[kept - 1] == '\n';
    if (line_start) return text.substr(0, kept);
  }
  return text;
}

JinjaToken ReadString(std::string_view text, size_t& position) {
  const char quote = text[position++];
  JinjaToken token{Kind::kString, ""};
  for (; position < text.size() && text[position] != quote; ++position) {
    char c = text[position];
    if (c == '\\' && position + 1 < text.size()) {
      c = text[++position];
      if (c == 'n')
        c = '\n';
      else if (c == 't')
        c = '\t';
      else if (c == 'r')
        c = '\r';
      else if (c != '\\' && c != '\'' && c != '"')
        token.text.push_back('\\');
    }
    token.text.push_back(c);
  }
  ++position;
  return token;
}

JinjaExpression ReadTokens(std::string_view text) {
  JinjaExpression tokens;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (kSpace.find(c) != std::string_view::npos) {
      ++i;
    } else if (c == '\'' || c == '"') {
      tokens.push_back(ReadString(text, i));
    } else if (IsNameCharacter(c)) {
      size_t end = i;
      while (end < text.size() && IsNameCharacter(text[end])) ++end;
      tokens.push_back({Kind::kWord, std::string(text.substr(i, end - i))});
      i = end;
    } else {
      const std::string_view two = text.substr(i, 2);
      const size_t length = two == "==" || two == "!=" || two == "<=" || two == ">=" ? 2 : 1;
      tokens.push_back({Kind::kPunctuation, std::string(text.substr(i, length))});
      i += length;
    }
  }
  return tokens;
}

// Drops the parentheses that only group. Those of a call follow a name; those after `not` say how far it reaches.
JinjaExpression WithoutGrouping(const JinjaExpression& tokens) {
  JinjaExpression out;
  std::vector<bool> open_groups;
  for (const JinjaToken& token : tokens) {
    if (token.kind == Kind::kPunctuation && token.text == "(") {
      const bool kept =
          !out.empty() && (out.back().kind == Kind::kWord ? !IsOperatorWord(out.back().text) || out.back().text == "not"
                                                          : out.back().text == "]" || out.back().text == ")");
      open_groups.push_back(!kept);
      if (!kept) continue;
    } else if (token.kind == Kind::kPunctuation && token.text == ")" && !open_groups.empty()) {
      const bool group = open_groups.back();
      open_groups.pop_back();
      if (group) continue;
    }
    out.push_back(token);
  }
  return out;
}

bool IsName(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), IsNameCharacter);
}

// ['key'] becomes .key, and 'a' + 'b' becomes 'ab'.
JinjaExpression Simplified(const JinjaExpression& tokens) {
  JinjaExpression out;
  const auto is = [](const JinjaToken& token, std::string_view text) {
    return token.kind == Kind::kPunctuation && token.text == text;
  };
  for (const JinjaToken& token : tokens) {
    const size_t size = out.size();
    if (is(token, "]") && size >= 3 && is(out[size - 2], "[") && out[size - 1].kind == Kind::kString &&
        IsName(out[size - 1].text)) {
      out[size - 2].text = ".";
      out[size - 1].kind = Kind::kWord;
    } else if (token.kind == Kind::kString && size >= 2 && is(out[size - 1], "+") &&
               out[size - 2].kind == Kind::kString) {
      out[size - 2].text += token.text;
      out.pop_back();
    } else {
      out.push_back(token);
    }
  }
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view program) : pieces_(CutIntoPieces(program)) {}

  std::vector<JinjaNode> Run() {
    std::vector<JinjaNode> nodes = Body(0);
    if (position_ < pieces_.size()) Fail("has no beginning");
    return nodes;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "the template's statement {%" + std::string(pieces_[position_].inside) + "%} " + what);
  }

  // The word that a statement begins with; empty if the piece is none.
  static std::string FirstWord(const JinjaExpression& tokens) {
    return tokens.empty() || tokens[0].kind != Kind::kWord ? "" : tokens[0].text;
  }

  // Reads up to a statement that belongs to the enclosing block (elif, else, end...), or to the end.
  std::vector<JinjaNode> Body(int depth) {
    if (depth > kDeepest) Fail("is nested too deeply");
    std::vector<JinjaNode> nodes;
    for (; position_ < pieces_.size(); ++position_) {
      const Piece& piece = pieces_[position_];
      if (piece.kind == Piece::Kind::kText) {
        const Piece* before = position_ == 0 ? nullptr : &pieces_[position_ - 1];
        const Piece* after = position_ + 1 == pieces_.size() ? nullptr : &pieces_[position_ + 1];
        std::string_view text = StripText(piece.inside, before, after);
        if (after == nullptr && text.ends_with('\n'))
          text.remove_suffix(1);  // Jinja drops the last line feed of a program
        if (!text.empty()) nodes.push_back({JinjaNode::Kind::kOutput, {{Kind::kString, std::string(text)}}, {}});
      } else if (piece.kind == Piece::Kind::kOutput) {
        nodes.push_back({JinjaNode::Kind::kOutput, ReadTokens(piece.inside), {}});
      } else if (piece.kind == Piece::Kind::kStatement) {
        JinjaExpression tokens = ReadTokens(piece.inside);
        const std::string word = FirstWord(tokens);
        if (word == "endgeneration" || word == "generation") continue;
        if (word == "elif" || word == "else" || word.starts_with("end")) return nodes;
        if (!tokens.empty()) tokens.erase(tokens.begin());
        nodes.push_back(Statement(word, std::move(tokens), depth));
      }
    }
    return nodes;
  }

  JinjaNode Statement(const std::string& word, JinjaExpression rest, int depth) {
    if (word == "set") return {JinjaNode::Kind::kSet, std::move(rest), {}};
    if (word == "for") {
      JinjaNode node{JinjaNode::Kind::kFor, std::move(rest), {}};
      node.branches.push_back({{}, BodyAfter(depth)});
      Expect("endfor");
      return node;
    }
    if (word != "if") Fail("is not known");
    JinjaNode node{JinjaNode::Kind::kIf, {}, {}};
    node.branches.push_back({std::move(rest), BodyAfter(depth)});
    while (CurrentWord() == "elif") {
      JinjaExpression condition = ReadTokens(pieces_[position_].inside);
      condition.erase(condition.begin());
      node.branches.push_back({std::move(condition), BodyAfter(depth)});
    }
    if (CurrentWord() == "else") node.branches.push_back({{}, BodyAfter(depth)});
    Expect("endif");
    return node;
  }

  std::vector<JinjaNode> BodyAfter(int depth) {
    ++position_;
    return Body(depth + 1);
  }

  std::string CurrentWord() const {
    return position_ < pieces_.size() ? FirstWord(ReadTokens(pieces_[position_].inside)) : "";
  }

  void Expect(const std::string& word) const {
    if (position_ >= pieces_.size())
      throw Error(KGRPO_ERROR_INVALID, "the template ends before its {% " + word + " %}");
    if (CurrentWord() != word) Fail("stands where {% " + word + " %} was expected");
  }

  std::vector<Piece> pieces_;
  size_t position_ = 0;
};

}  // namespace

std::vector<JinjaNode> ParseJinja(std::string_view program) {
  return Parser(program).Run();
}

std::string Spell(const JinjaExpression& expression) {
  std::string out;
  bool after_word = false;
  for (const JinjaToken& token : Simplified(WithoutGrouping(expression))) {
    const bool word = token.kind != Kind::kPunctuation;
    if (word && after_word) out.push_back(' ');
    if (token.kind == Kind::kString) {
      out.push_back('\'');
      for (const char c : token.text) {
        if (c == '\n') {
          out += "\\n";
        } else {
          if (c == '\'' || c == '\\') out.push_back('\\');
          out.push_back(c);
        }
      }
      out.push_back('\'');
    } else {
      out += token.text;
    }
    after_word = word || token.text == ")" || token.text == "]";
  }
  return out;
}

}  // namespace kgrpo::tokenizer
