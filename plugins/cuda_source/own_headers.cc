#include "cuda_source/own_headers.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "cuda_source/conditionals.h"
#include "cuda_source/lexer.h"

namespace kgrpo::cuda_source {
namespace {

namespace fs = std::filesystem;

constexpr char kKernel[] = "kernel.cu";
constexpr size_t kMostBytes = size_t{16} << 20;  // headers without a guard may multiply

std::string ReadText(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream) throw Error(KGRPO_ERROR_NOT_FOUND, "cannot read the kernel " + file);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());  // refused anywhere but at the beginning
  return text;
}

int LinesIn(const std::string& source, size_t begin, size_t end) {
  return static_cast<int>(std::count(source.begin() + static_cast<std::ptrdiff_t>(begin),
                                     source.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
}

// Returns where the line ends on which a directive ends: after it is nothing, or a comment.
size_t LineEnd(std::string_view source, const Token& directive) {
  for (size_t end = directive.end;; ++end) {
    end = std::min(source.find('\n', end), source.size());
    const size_t last = source.substr(0, end).find_last_not_of(" \t\r");
    const bool continues = last != std::string_view::npos && last >= directive.end && source[last] == '\\';
    if (end == source.size() || !continues) return end;
  }
}

// The line and the file that a #line directive, or a line marker of a preprocessor, gives to the next line; 0 of
// others.
SourcePlace PlaceGiven(const Directive& directive) {
  const bool marker = !directive.word.empty() && std::isdigit(static_cast<unsigned char>(directive.word[0])) != 0;
  if (directive.word != "line" && !marker) return {};
  SourcePlace place = {"", std::atoi(std::string(marker ? directive.word : directive.rest).c_str())};
  const size_t open = directive.rest.find('"'), close = directive.rest.rfind('"');
  if (open != close) place.file = directive.rest.substr(open + 1, close - open - 1);
  return place;
}

enum class Guard { kNone, kPragma, kMacro };

// Returns how a header is kept from being read twice: by #pragma once, or by one #ifndef around all of it.
Guard GuardOf(const std::vector<Token>& tokens) {
  int depth = 0;
  bool around = tokens.size() > 2;
  std::string_view name;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kDirective) continue;
    const auto [word, rest] = ReadDirective(tokens[i].text);
    if (word == "pragma" && rest.starts_with("once")) return Guard::kPragma;
    const auto words = Lex(rest).tokens;
    const auto first = [&](size_t k) { return k < words.size() ? words[k].text : std::string_view(); };
    if (i == 0) {
      const size_t open = first(2) == "(" ? 1 : 0;
      const bool negated = word == "if" && first(0) == "!" && first(1) == "defined" && words.size() == 3 + 2 * open;
      name = word == "ifndef" ? first(0) : negated ? first(2 + open) : "";
    }
    if (i == 1 && (word != "define" || first(0) != name)) name = "";
    if (word.starts_with("if")) ++depth;
    const bool other = depth == 1 && (word == "else" || word.starts_with("elif"));
    if (word == "endif" && --depth == 0 && i + 1 < tokens.size()) around = false;
    if (other) around = false;
  }
  return around && !name.empty() && depth == 0 ? Guard::kMacro : Guard::kNone;
}

class Reader {
 public:
  Reader(const std::string& file, const std::vector<std::string>& folders, bool confined)
      : folders_(folders.begin(), folders.end()), confined_(confined) {
    if (!confined) return;
    roots_.push_back(fs::weakly_canonical(fs::absolute(file).parent_path()));
    for (const std::string& folder : folders) roots_.push_back(fs::weakly_canonical(folder));
  }

  std::string Read(const std::string& file, std::string* written = nullptr) {
    const std::string source = ReadText(file);
    if (written != nullptr) *written = source;
    headers_[fs::path(file).lexically_normal().string()].open = true;
    headers_[fs::weakly_canonical(file).string()].open = true;
    Append(source, fs::path(file).parent_path(), confined_ ? kKernel : file, false);
    return std::move(text_);
  }

 private:
  // An open conditional. `arm` differs for each of its branches; 0: a header's guard, which leaves out what is there.
  struct Branch {
    int arm;
    bool has_headers;
  };
  struct Header {
    bool open = false;                    // being appended
    int number = 0;                       // 0: not yet read
    std::vector<std::vector<int>> paths;  // the arms in which it was read
  };

  // Appends a file. `name`: in #line directives.
  void Append(const std::string& source, const fs::path& beside, const std::string& name, bool is_header) {
    const std::vector<Token> tokens = Lex(source).tokens;
    const bool guarded = is_header && GuardOf(tokens) == Guard::kMacro;
    const size_t outside = branches_.size();
    SourcePlace given = {name, 0};  // by the author's own #line: the file, and what to add to a line's number
    size_t copied = 0;
    int line = 1;
    size_t counted = 0;  // where `line` is
    const auto copy = [&](size_t end) {
      text_.append(source, copied, end - copied);
      copied = end;
    };
    for (const Token& token : tokens) {
      if (token.kind != Token::Kind::kDirective) continue;
      line += LinesIn(source, counted, token.begin);
      counted = token.begin;
      const std::string joined = RemoveSplices(token.text);
      const Directive directive = ReadDirective(joined);
      const size_t next = std::min(LineEnd(source, token) + 1, source.size());
      const int next_line = line + std::max(LinesIn(source, token.begin, next), 1);
      const auto go_on = [&] {
        copied = next;
        EndLine();
        text_ += "#line " + std::to_string(next_line + given.line) + " \"" + given.file + "\"\n";
      };
      if (directive.word == "include") {
        const auto [header, header_name] = OwnHeader(directive.rest, beside);
        if (header.empty()) continue;
        copy(token.begin);
        text_.erase(text_.find_last_not_of(" \t") + 1);  // of an indented #include
        if (AppendHeader(header, header_name)) {
          for (Branch& branch : branches_) branch.has_headers = true;
          go_on();
        } else {
          copied = token.end;
        }
      } else if (directive.word.starts_with("if") || directive.word.starts_with("el") || directive.word == "endif") {
        copy(token.begin);
        text_ += WithOwnHeadersKnown(std::string(token.text), beside);
        copied = token.end;
        bool has_headers = false;
        if (!directive.word.starts_with("if")) {
          if (branches_.size() <= outside) continue;  // compilers refuse it
          has_headers = branches_.back().has_headers;
          branches_.pop_back();
        }
        const bool guard = guarded && branches_.size() == outside;
        if (directive.word != "endif") branches_.push_back({guard ? 0 : ++arms_, has_headers});
        if (!has_headers) continue;
        copy(next);
        go_on();
      } else if (directive.word == "pragma" && directive.rest.starts_with("once") && is_header) {
        copy(token.begin);
        copied = token.end;
      } else if (const SourcePlace place = PlaceGiven(directive); place.line > 0) {
        given = {place.file.empty() ? given.file : place.file, place.line - next_line};
      }
    }
    copy(source.size());
    branches_.resize(std::min(branches_.size(), outside));
  }

  // Appends a header, with "#line 1" before it. Returns false where nothing has to be read: its guard leaves it out.
  bool AppendHeader(const std::string& file, const std::string& name) {
    Header& header = headers_[file];
    if (header.open) return false;  // it includes itself
    const std::string source = ReadText(file);
    const Guard guard = GuardOf(Lex(source).tokens);
    std::vector<int> path;
    for (const Branch& branch : branches_) {
      if (branch.arm != 0) path.push_back(branch.arm);
    }
    // Read in a branch that may be left out, it is here again, and the compiler chooses.
    const bool certain = std::any_of(header.paths.begin(), header.paths.end(), [&](const std::vector<int>& read) {
      return read.size() <= path.size() && std::equal(read.begin(), read.end(), path.begin());
    });
    if (certain && guard != Guard::kNone) return false;
    if (text_.size() + source.size() > kMostBytes)
      throw Error(KGRPO_ERROR_INVALID, file + ": with this header the kernel is larger than 16 MiB");
    if (header.number == 0) header.number = ++numbers_;
    header.paths.push_back(path);
    EndLine();
    const std::string once = "OWN_HEADER_" + std::to_string(header.number) + "_IS_READ";
    const bool wrapped = guard == Guard::kPragma && !header.paths[0].empty();
    if (wrapped) text_ += "#ifndef " + once + "\n#define " + once + "\n";
    text_ += "#line 1 \"" + name + "\"\n";
    header.open = true;
    Append(source, fs::path(file).parent_path(), name, true);
    headers_[file].open = false;
    EndLine();
    if (wrapped) text_ += "#endif\n";
    return true;
  }

  void EndLine() {
    if (!text_.empty() && text_.back() != '\n') text_ += "\n";
  }

  // A condition with 1 in place of `__has_include("x.h")` of own headers, which no compiler will find as files.
  std::string WithOwnHeadersKnown(std::string condition, const fs::path& beside) const {
    constexpr std::string_view kAsks = "__has_include";
    for (size_t at = 0; (at = condition.find(kAsks, at)) != std::string::npos; ++at) {
      const size_t name = condition.find_first_of("\"<", at), close = condition.find(')', at);
      if (name > close || close == std::string::npos) continue;
      if (!OwnHeader(std::string_view(condition).substr(name), beside).first.empty())
        condition.replace(at, close + 1 - at, "1");
    }
    return condition;
  }

  // The file of an own header that `"x.h"` or `<x.h>` at the beginning of `words` names, and its name; else empty.
  std::pair<std::string, std::string> OwnHeader(std::string_view words, const fs::path& beside) const {
    const std::string_view header = HeaderNamed(words);
    if (header.empty()) return {};
    std::vector<fs::path> places = folders_;
    if (words[0] == '"') places.insert(places.begin(), beside);
    for (const fs::path& place : places) {
      std::error_code code;
      const fs::path file = (place / header).lexically_normal();
      if (!fs::is_regular_file(file, code)) continue;
      if (!confined_) return {file.string(), file.string()};
      const fs::path target = fs::canonical(file, code);
      for (const fs::path& root : roots_) {
        const fs::path inside = target.lexically_relative(root);
        if (!code && !inside.empty() && *inside.begin() != "..") return {target.string(), inside.string()};
      }
    }
    return {};
  }

  const std::vector<fs::path> folders_;
  const bool confined_;
  std::vector<fs::path> roots_;  // canonical: confined headers lie in one of them
  std::map<std::string, Header> headers_;
  std::vector<Branch> branches_;
  int arms_ = 0, numbers_ = 0;
  std::string text_;
};

}  // namespace

std::string ReadWithOwnHeaders(const std::string& file, const std::vector<std::string>& folders) {
  return Reader(file, folders, false).Read(file);
}

std::string ReadKernelWithOwnHeaders(const std::string& file, const std::vector<std::string>& folders,
                                     std::string* written) {
  return Reader(file, folders, true).Read(file, written);
}

std::vector<SourcePlace> PlacesOfLines(std::string_view text, const std::string& file) {
  std::vector<SourcePlace> places;
  SourcePlace compiled = {file, 1};  // as compilers count; a #line in a branch that they do not read counts there only
  SourcePlace place = compiled;
  size_t at = 0;
  const auto go_to = [&](size_t end) {  // past the lines that end before `end`
    for (size_t line_end; (line_end = text.find('\n', at)) < end; at = line_end + 1) {
      places.push_back(place);
      ++place.line;
      ++compiled.line;
    }
  };
  const std::string active = WithoutInactive(text).text;
  for (const Token& token : Lex(text).tokens) {
    if (token.kind != Token::Kind::kDirective) continue;
    const bool is_read = active[token.begin] != ' ';
    go_to(token.begin);
    if (is_read) place = compiled;
    const std::string joined = RemoveSplices(token.text);
    const SourcePlace given = PlaceGiven(ReadDirective(joined));
    if (given.line == 0) continue;
    go_to(std::min(LineEnd(text, token) + 1, text.size()));
    place = {given.file.empty() ? place.file : given.file, given.line};
    if (is_read) compiled = place;
  }
  go_to(text.size());
  places.push_back(place);
  return places;
}

}  // namespace kgrpo::cuda_source
