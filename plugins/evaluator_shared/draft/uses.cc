#include "evaluator_shared/draft/uses.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace kgrpo::evaluator {
namespace {

using Kind = Token::Kind;
using Renaming = std::map<std::string, std::string>;  // a function's parameters in names of the entry's

constexpr int kDeepest = 8;  // calls that are followed

bool IsOneOf(const Token& token, std::string_view characters) {
  return token.kind == Kind::kPunctuation && token.text.size() == 1 && characters.find(token.text) != std::string::npos;
}

// The arguments of a call whose "(" is `open`: begin and end of each.
std::vector<std::pair<size_t, size_t>> ArgumentsOf(const SourceReader& tokens, size_t open) {
  std::vector<std::pair<size_t, size_t>> arguments;
  const size_t close = tokens.SkipGroup(open, tokens.size()) - 1;
  size_t begin = open + 1;
  for (size_t i = open + 1; i <= close;) {
    if (i == close || tokens.At(i).Is(",")) {
      if (i > begin) arguments.emplace_back(begin, i);
      begin = ++i;
    } else if (IsOneOf(tokens.At(i), "([{")) {
      i = tokens.SkipGroup(i, tokens.size());
    } else {
      ++i;
    }
  }
  return arguments;
}

// The callee of the call whose "(" is `open`: the token of its name; `open` where there is none.
size_t CalleeOf(const SourceReader& tokens, size_t open) {
  size_t i = open;
  if (i > 0 && tokens.At(i - 1).Is(">>>")) {
    while (i > 0 && !tokens.At(i).Is("<<<")) --i;
  }
  return i > 0 && tokens.At(i - 1).kind == Kind::kIdentifier ? i - 1 : open;
}

class Finder {
 public:
  // `grid`: the number of blocks that the function is launched with, in the entry's names; "" where it is not known.
  Finder(const CudaSource& source, std::string grid)
      : source_(source), tokens_(source.tokens()), grid_(std::move(grid)) {}

  // `whole`: the parameter points to the tensor's first element, so its indices give the tensor's shape.
  void Walk(const CudaFunction& function, const std::string& parameter, const Renaming& renaming, int depth,
            bool whole = true) {
    std::set<std::string> names = {parameter};
    const auto look_at = [&](size_t begin, size_t end) {
      if (!uses_.shape) uses_.shape = ShapeBy(begin, end, function, renaming);
    };
    for (size_t i = function.body; i < function.end; ++i) {
      const Token& token = tokens_.At(i);
      if (token.kind != Kind::kIdentifier || !names.contains(std::string(token.text))) continue;
      if (tokens_.At(i - 1).Is(".") || tokens_.At(i - 1).Is("->")) continue;
      if (const std::string alias = AliasAt(i, function); !alias.empty()) {
        names.insert(alias);
        if (whole && tokens_.At(i + 1).Is("+")) look_at(i + 2, EndOfSum(i + 2, function.end));
        continue;
      }
      if (tokens_.At(i + 1).Is("[")) {
        if (whole && token.Is(parameter)) look_at(i + 2, tokens_.SkipGroup(i + 1, function.end) - 1);
        if (!tokens_.At(i - 1).Is("&")) {
          Classify(tokens_.SkipGroup(i + 1, function.end), i);
          continue;
        }
      } else if (tokens_.At(i - 1).Is("*") && IsOneOf(tokens_.At(i - 2), ";{}(,=+-/<>?:!")) {
        Classify(i + 1, i);
        continue;
      }
      if (whole && token.Is(parameter) && tokens_.At(i + 1).Is("+")) look_at(i + 2, EndOfSum(i + 2, function.end));
      Passed(i, function, renaming, depth);
    }
  }

  Uses uses() const { return uses_; }

 private:
  void Read(size_t token) {
    if (!uses_.read) uses_.read_line = source_.LineOf(token);
    uses_.read = true;
  }
  void Write() {
    if (!uses_.read && !uses_.written) uses_.written_first = true;
    uses_.written = true;
  }

  // The token after an offset that begins at i.
  size_t EndOfSum(size_t i, size_t end) const {
    while (i < end && !IsOneOf(tokens_.At(i), ";,)")) i = tokens_.At(i).Is("(") ? tokens_.SkipGroup(i, end) : i + 1;
    return i;
  }

  // Returns whether the value assigned to the element at `at`, after token `next`, uses the tensor itself.
  bool ReadsItself(size_t next, size_t at) const {
    for (size_t i = next; i < tokens_.size() && !tokens_.At(i).Is(";"); ++i) {
      if (tokens_.At(i).kind == Kind::kIdentifier && tokens_.At(i).text == tokens_.At(at).text) return true;
    }
    return false;
  }

  // Notes a read or a write of the element that token `at` names, by the tokens that follow it.
  void Classify(size_t next, size_t at) {
    while (tokens_.At(next).Is(".") || tokens_.At(next).Is("[")) {
      next = tokens_.At(next).Is("[") ? tokens_.SkipGroup(next, tokens_.size()) : next + 2;
    }
    const Token& first = tokens_.At(next);
    const Token& second = tokens_.At(next + 1);
    if (first.Is("=") && !second.Is("=")) {
      if (ReadsItself(next, at)) Read(at);
      return Write();
    }
    Read(at);
    const bool steps = IsOneOf(first, "+-") && second.text == first.text && IsOneOf(tokens_.At(next + 2), ";),");
    if ((IsOneOf(first, "+-*/%&|^") && second.Is("=")) || steps) Write();
  }

  // `float4* q = ... p ...;` gives "q".
  std::string AliasAt(size_t i, const CudaFunction& function) const {
    size_t begin = i;
    while (begin > function.body + 1 && !IsOneOf(tokens_.At(begin - 1), ";{}")) --begin;
    for (size_t t = begin; t < i; ++t) {
      if (tokens_.At(t).Is("[")) return "";
      if (!tokens_.At(t).Is("=")) continue;
      for (size_t star = begin + 1; star + 1 < t; ++star) {
        if (tokens_.At(star).Is("*")) return std::string(tokens_.At(t - 1).text);
      }
      return "";
    }
    return "";
  }

  // The pointer itself, or an element's address, as a function gets it.
  void Passed(size_t i, const CudaFunction& function, const Renaming& renaming, int depth) {
    size_t open = i;
    for (int inside = 0; open > function.body; --open) {
      if (IsOneOf(tokens_.At(open), ")]")) ++inside;
      if (IsOneOf(tokens_.At(open), "([") && inside-- == 0) break;
    }
    if (!tokens_.At(open).Is("(")) return Read(i);
    if (tokens_.At(open - 1).Is(">")) {  // reinterpret_cast<float4*>(p)[j]
      const size_t after = tokens_.SkipGroup(open, function.end);
      if (tokens_.At(after).Is("[")) Classify(tokens_.SkipGroup(after, function.end), i);
      return;
    }
    const size_t callee = CalleeOf(tokens_, open);
    const std::string name(tokens_.At(callee).text);
    const auto arguments = ArgumentsOf(tokens_, open);
    size_t position = 0;
    while (position < arguments.size() && arguments[position].second <= i) ++position;
    const CudaFunction* called = callee == open ? nullptr : source_.Find(name);
    if (called != nullptr && depth < kDeepest && position < called->parameters.size()) {
      Renaming inner;
      for (size_t p = 0; p < std::min(arguments.size(), called->parameters.size()); ++p) {
        if (arguments[p].second - arguments[p].first != 1) continue;
        const auto outer = renaming.find(std::string(tokens_.At(arguments[p].first).text));
        if (outer != renaming.end()) inner[called->parameters[p].name] = outer->second;
      }
      if (tokens_.At(open - 1).Is(">>>")) grid_ = GridOf(callee, renaming);
      const bool at_begin = arguments[position].second - arguments[position].first == 1;
      return Walk(*called, called->parameters[position].name, inner, depth + 1, at_begin);
    }
    if (name.rfind("atomic", 0) == 0) {
      if (!uses_.shape && arguments[0].second - arguments[0].first == 1) uses_.shape = {"1"};
      Read(i);
      return Write();
    }
    const bool is_first = position == 0;
    if (is_first &&
        (name.rfind("cudaMemset", 0) == 0 || name.rfind("cudaMemcpy", 0) == 0 || name.rfind("__st", 0) == 0))
      return Write();
    Read(i);
  }

  // The blocks of the launch of the kernel that token `callee` names; "" where they are no plain expression.
  std::string GridOf(size_t callee, const Renaming& renaming) const {
    size_t begin = callee + 1;
    while (!tokens_.At(begin).Is("<<<")) ++begin;
    size_t end = begin + 1;
    while (!tokens_.At(end).Is(",")) end = tokens_.At(end).Is("(") ? tokens_.SkipGroup(end, tokens_.size()) : end + 1;
    return Renamed(source_.TextOf(begin + 1, end), renaming);
  }

  // The shape that an index implies: "i" with `i < n` gives [n], "r * cols + c" with `r < rows` gives [rows, cols].
  std::optional<std::vector<std::string>> ShapeBy(size_t begin, size_t end, const CudaFunction& function,
                                                  const Renaming& renaming) const {
    if (end - begin == 1 && tokens_.At(begin).text == "0") return std::vector<std::string>{"1"};
    const bool cast = begin + 3 < end && tokens_.At(begin).Is("(") && tokens_.At(begin + 2).Is(")");  // (size_t)row
    if (cast) begin += 3;
    const bool neighbour = end - begin == 3 && IsOneOf(tokens_.At(begin + 1), "+-") &&
                           tokens_.At(begin + 2).kind == Kind::kNumber;  // of the element at i
    if (neighbour) end = begin + 1;
    size_t star = begin, plus = begin;
    while (star < end && !tokens_.At(star).Is("*")) ++star;
    while (plus < end && !tokens_.At(plus).Is("+")) ++plus;
    std::vector<std::string> shape = {RangeOf(begin, std::min(star, end), function, renaming)};
    if (star + 1 < end) {
      if (std::min(plus, end) != star + 2) return std::nullopt;
      shape.push_back(Renamed(std::string(tokens_.At(star + 1).text), renaming));
    } else if (plus < end) {
      return std::nullopt;
    }
    for (const std::string& dimension : shape) {
      if (dimension.empty()) return std::nullopt;
    }
    return shape;
  }

  // Number of values of a variable: by a condition on it, or for a block index by the grid.
  std::string RangeOf(size_t begin, size_t end, const CudaFunction& function, const Renaming& renaming) const {
    if (IsBlockNumber(begin, end)) return grid_;
    if (end - begin != 1) return "";
    const std::string variable(tokens_.At(begin).text);
    if (const std::string bound = BoundOf(source_, function, variable); !bound.empty()) return Renamed(bound, renaming);
    for (size_t i = function.body; i + 4 < function.end; ++i) {
      if (tokens_.At(i).Is(variable) && tokens_.At(i + 1).Is("=") && IsBlockNumber(i + 2, i + 5) &&
          tokens_.At(i + 5).Is(";"))
        return grid_;
    }
    return "";
  }
  bool IsBlockNumber(size_t begin, size_t end) const {
    return end - begin == 3 && tokens_.At(begin).Is("blockIdx") && tokens_.At(begin + 2).Is("x");
  }

  // An expression of a function's parameters in the entry's names; "" where it has others.
  std::string Renamed(const std::string& expression, const Renaming& renaming) const {
    std::string renamed;
    for (const Token& token : Lex(expression).tokens) {
      if (token.kind == Kind::kIdentifier) {
        const auto found = renaming.find(std::string(token.text));
        const std::string name = found == renaming.end() ? ConstantOf(std::string(token.text)) : found->second;
        if (name.empty()) return "";
        renamed += name;
      } else if (token.kind == Kind::kNumber || IsOneOf(token, "*+-()")) {
        renamed += token.text;
      } else {
        return "";
      }
    }
    return renamed;
  }

  // The number of `constexpr int kBins = 1024;`; "" where there is none of that name.
  std::string ConstantOf(const std::string& name) const {
    for (size_t i = 2; i + 3 < tokens_.size(); ++i) {
      const bool defined = tokens_.At(i).Is(name) && tokens_.At(i - 2).Is("constexpr") && tokens_.At(i + 1).Is("=");
      if (defined && tokens_.At(i + 2).kind == Kind::kNumber && tokens_.At(i + 3).Is(";"))
        return std::string(tokens_.At(i + 2).text);
    }
    return "";
  }

  const CudaSource& source_;
  const SourceReader& tokens_;
  std::string grid_;
  Uses uses_;
};

}  // namespace

Uses UsesOf(const CudaSource& source, const CudaFunction& function, const std::string& parameter,
            const std::string& grid) {
  Renaming same;
  for (const FunctionParameter& one : function.parameters) {
    if (!one.pointer) same[one.name] = one.name;
  }
  Finder finder(source, grid);
  finder.Walk(function, parameter, same, 0);
  return finder.uses();
}

std::vector<KernelLaunch> LaunchesOf(const CudaSource& source, const CudaFunction& function) {
  std::vector<KernelLaunch> launches;
  const SourceReader& tokens = source.tokens();
  for (size_t i = function.body; i < function.end; ++i) {
    if (!tokens.At(i).Is(">>>") || !tokens.At(i + 1).Is("(")) continue;
    const CudaFunction* kernel = source.Find(std::string(tokens.At(CalleeOf(tokens, i + 1)).text));
    if (kernel == nullptr) continue;
    KernelLaunch launch{kernel, {}};
    for (const auto& [begin, end] : ArgumentsOf(tokens, i + 1)) launch.arguments.push_back(source.TextOf(begin, end));
    launches.push_back(std::move(launch));
  }
  return launches;
}

std::string BoundOf(const CudaSource& source, const CudaFunction& function, const std::string& variable) {
  const SourceReader& tokens = source.tokens();
  for (size_t i = function.body; i + 2 < function.end; ++i) {
    if (!tokens.At(i).Is(variable)) continue;
    const bool below = tokens.At(i + 1).Is("<") && !tokens.At(i + 2).Is("<") && !tokens.At(i + 2).Is("=");
    const bool not_below = tokens.At(i + 1).Is(">") && tokens.At(i + 2).Is("=");
    if (!below && !not_below) continue;
    const size_t begin = i + (below ? 2 : 3);
    size_t end = begin;
    while (end < function.end && !IsOneOf(tokens.At(end), ";)&|,?")) ++end;
    const std::string bound = source.TextOf(begin, end);
    if (bound != "0") return bound;  // `row >= 0` is the other side's
  }
  return "";
}

}  // namespace kgrpo::evaluator
