#include "draft/uses.h"

#include <algorithm>
#include <cstdint>
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

// The token that opens what the bracket at `close` closes: "(", "[", or "<" of template arguments.
size_t OpeningOf(const SourceReader& tokens, size_t close) {
  const std::string_view closing = tokens.At(close).text;
  const std::string_view opening = closing == ")" ? "(" : closing == "]" ? "[" : closing == "}" ? "{" : "<";
  int depth = 0;
  for (size_t i = close + 1; i-- > 0;) {
    if (tokens.At(i).Is(closing)) ++depth;
    if (tokens.At(i).Is(opening) && --depth == 0) return i;
    if (closing == ">" && IsOneOf(tokens.At(i), ";{}")) break;
  }
  return close;
}

// The callee of the call whose "(" is `open`: the token of its name; `open` where there is none.
size_t CalleeOf(const SourceReader& tokens, size_t open) {
  size_t i = open;
  if (i > 0 && tokens.At(i - 1).Is(">>>")) {
    while (i > 0 && !tokens.At(i).Is("<<<")) --i;
  }
  if (i > 0 && tokens.At(i - 1).Is(">")) i = OpeningOf(tokens, i - 1);
  return i > 0 && tokens.At(i - 1).kind == Kind::kIdentifier ? i - 1 : open;
}

bool IsCooperativeLaunch(const SourceReader& tokens, size_t i) {
  return tokens.At(i).text.rfind("cudaLaunchCooperativeKernel", 0) == 0 && i + 1 < tokens.size() &&
         tokens.At(i + 1).Is("(");
}

// The kernel's name in the first argument of a cooperative launch: `(void*)k<float>`.
std::string KernelOf(const CudaSource& source, const std::pair<size_t, size_t>& argument) {
  for (size_t i = argument.first; i < argument.second; ++i) {
    const std::string name(source.tokens().At(i).text);
    if (const CudaFunction* found = source.Find(name); found != nullptr && found->kernel) return name;
  }
  return "";
}

// The arguments of a cooperative launch in `function`: those whose addresses the array in its fourth argument contains.
std::vector<std::pair<size_t, size_t>> CooperativeArguments(const CudaSource& source, const CudaFunction& function,
                                                            const std::pair<size_t, size_t>& array) {
  const SourceReader& tokens = source.tokens();
  std::vector<std::pair<size_t, size_t>> arguments;
  for (size_t i = function.body; i + 1 < function.end; ++i) {
    if (tokens.At(i).text != tokens.At(array.second - 1).text) continue;
    size_t open = i + 1;
    while (open < function.end && !tokens.At(open).Is("{") && !tokens.At(open).Is(";")) ++open;
    if (!tokens.At(open).Is("{")) continue;
    for (const auto& [begin, end] : ArgumentsOf(tokens, open)) arguments.emplace_back(end - 1, end);
    break;
  }
  return arguments;
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
    for (size_t i = function.body; i < function.end; ++i) {
      const Token& token = tokens_.At(i);
      if (token.kind != Kind::kIdentifier) continue;
      if (IsCooperativeLaunch(tokens_, i)) Cooperative(i, function, parameter, renaming, depth);
      if (!names.contains(std::string(token.text)) || tokens_.At(i - 1).Is(".") || tokens_.At(i - 1).Is("->")) continue;
      const auto look_at = [&](size_t begin, size_t end) {
        if (whole && token.Is(parameter) && !uses_.shape) uses_.shape = ShapeBy(begin, end, function, renaming);
      };
      if (tokens_.At(i + 1).Is("[")) look_at(i + 2, tokens_.SkipGroup(i + 1, function.end) - 1);
      if (tokens_.At(i + 1).Is("+") && !tokens_.At(i + 2).Is("+") && !tokens_.At(i + 2).Is("="))
        look_at(i + 2, EndOfSum(i + 2, function.end));
      const Place place = PlaceAround(i);
      if (place.element) {
        Classify(place, i);
      } else if (tokens_.At(place.begin - 1).Is("=") && tokens_.At(place.begin - 2).kind == Kind::kIdentifier) {
        names.emplace(tokens_.At(place.begin - 2).text);  // `float4* q = ... p ...;`
      } else if (!IsOneOf(tokens_.At(place.end), "+-=?&|!") && !tokens_.At(i - 1).Is("*")) {
        Passed(place, i, function, renaming, depth);
      }
    }
  }

  Uses uses() const {
    Uses uses = uses_;
    uses.written = !writes_.empty();
    uses.written_first = uses.written && !read_unwritten_;
    return uses;
  }

 private:
  // The largest expression around a pointer that is still the pointer, or an element of its memory.
  struct Place {
    size_t begin, end;
    bool element;
  };

  void Read(size_t token) {
    const bool written = std::any_of(writes_.begin(), writes_.end(), [&](size_t w) { return !Excludes(w, token); });
    if (!uses_.read || (!written && !read_unwritten_)) uses_.read_line = source_.LineOf(token);
    uses_.read = true;
    read_unwritten_ = read_unwritten_ || !written;
  }
  void Write(size_t token) { writes_.push_back(token); }

  // Returns whether a thread that writes at one token does not get to a later one: that is in the `else` of a branch
  // with the first, or the branch returns.
  bool Excludes(size_t first, size_t later) const {
    bool same_statement = true;
    for (size_t i = first; i < later; ++i) {
      const bool last = same_statement && tokens_.At(i).Is(";");
      same_statement = same_statement && !IsOneOf(tokens_.At(i), ";{}");
      if (last && tokens_.At(i + 1).Is("else") && later < EndOfStatement(i + 2)) return true;
      if (!tokens_.At(i).Is("}")) continue;
      const size_t open = OpeningOf(tokens_, i);
      if (open >= first) continue;
      if (tokens_.At(i - 1).Is(";") && tokens_.At(i - 2).Is("return")) return true;
      if (tokens_.At(i + 1).Is("else") && later < EndOfStatement(i + 2)) return true;
    }
    return false;
  }

  // The token after the statement at i, with the branches that follow it.
  size_t EndOfStatement(size_t i) const {
    for (;;) {
      if (tokens_.At(i).Is("if")) i = tokens_.SkipGroup(i + 1, tokens_.size());
      i = tokens_.At(i).Is("{") ? tokens_.SkipGroup(i, tokens_.size()) : tokens_.SkipToSemicolon(i, tokens_.size());
      if (!tokens_.At(i).Is("else")) return i;
      ++i;
    }
  }

  // The token after an offset that begins at i.
  size_t EndOfSum(size_t i, size_t end) const {
    while (i < end && !IsOneOf(tokens_.At(i), ";,)]")) {
      const bool group = tokens_.At(i).Is("(") || tokens_.At(i).Is("[");
      i = group ? tokens_.SkipGroup(i, end) : i + 1;
    }
    return i;
  }

  // Returns whether the operator at token i has one operand: nothing before it ends one.
  bool IsUnary(size_t i) const {
    const Token& before = tokens_.At(i - 1);
    if (before.Is("return") || before.Is("else")) return true;
    return before.kind == Kind::kPunctuation && !before.Is(")") && !before.Is("]");
  }

  // Returns whether the group from `open` on is a cast to a pointer, `(const float4*)`.
  bool IsPointerCast(size_t open, size_t close) const {
    if (!tokens_.At(close - 1).Is("*") && !tokens_.At(close - 1).Is("__restrict__")) return false;
    for (size_t i = open + 1; i < close; ++i) {
      const bool type = tokens_.At(i).kind == Kind::kIdentifier || tokens_.At(i).Is("*") || tokens_.At(i).Is("::");
      if (!type) return false;
    }
    return close > open + 2;
  }

  // Of the pointer that token i names: `p[j]`, `*(p + j)`, `((float4*)p)[j]`, `reinterpret_cast<int4*>(&p[j])[0]`, and
  // `FLOAT4(p[j])` of a macro that the file defines.
  Place PlaceAround(size_t i) const {
    Place place = {i, i + 1, false};
    for (;;) {
      const Token &before = tokens_.At(place.begin - 1), &next = tokens_.At(place.end);
      if (next.Is("[")) {
        place = {place.begin, tokens_.SkipGroup(place.end, tokens_.size()), true};
      } else if ((next.Is(".") || next.Is("->")) && !tokens_.At(place.end + 2).Is("(")) {
        place = {place.begin, place.end + 2, true};
      } else if (before.Is("&") && place.element && IsUnary(place.begin - 1)) {
        place = {place.begin - 1, place.end, false};
      } else if (before.Is("*") && !place.element && IsUnary(place.begin - 1)) {
        place = {place.begin - 1, place.end, true};
      } else if (!place.element && IsOneOf(next, "+-") && !IsOneOf(tokens_.At(place.end + 1), "+-=")) {
        place.end = EndOfSum(place.end, tokens_.size());
      } else if (before.Is(")") && !place.element &&
                 IsPointerCast(OpeningOf(tokens_, place.begin - 1), place.begin - 1)) {
        place.begin = OpeningOf(tokens_, place.begin - 1);
      } else if (before.Is("(") && next.Is(")")) {
        const size_t callee = CalleeOf(tokens_, place.begin - 1);
        const std::string_view name = tokens_.At(callee).text;
        const bool plain = callee == place.begin - 1;
        if (plain && (tokens_.At(callee - 1).kind == Kind::kString || tokens_.At(callee - 1).Is(">>>"))) return place;
        const bool macro = !plain && source_.IsMacro(std::string(name));
        if (!plain && !macro && !name.ends_with("_cast")) return place;
        if (name == "static_cast" && place.element) return place;
        place = {callee, place.end + 1, place.element || macro};
      } else {
        return place;
      }
    }
  }

  // Returns whether the value assigned to the element at `at`, after token `next`, uses the tensor itself.
  bool ReadsItself(size_t next, size_t at) const {
    for (size_t i = next; i < tokens_.size() && !tokens_.At(i).Is(";"); ++i) {
      const bool member = tokens_.At(i - 1).Is(".") || tokens_.At(i - 1).Is("->");
      if (tokens_.At(i).kind == Kind::kIdentifier && tokens_.At(i).text == tokens_.At(at).text && !member) return true;
    }
    return false;
  }

  // Notes a read or a write of an element of the tensor that token `at` names, by the tokens around it.
  void Classify(const Place& place, size_t at) {
    const Token& first = tokens_.At(place.end);
    const Token& second = tokens_.At(place.end + 1);
    if (first.Is("=") && !second.Is("=")) {
      if (ReadsItself(place.end, at)) Read(at);
      return Write(at);
    }
    Read(at);
    const bool steps = IsOneOf(first, "+-") && second.text == first.text && IsOneOf(tokens_.At(place.end + 2), ";),");
    const Token& before = tokens_.At(place.begin - 1);
    const bool stepped = IsOneOf(before, "+-") && tokens_.At(place.begin - 2).text == before.text;
    if ((IsOneOf(first, "+-*/%&|^") && second.Is("=")) || steps || stepped) Write(at);
  }

  // The pointer itself, or an element's address, as a function gets it.
  void Passed(const Place& place, size_t i, const CudaFunction& function, const Renaming& renaming, int depth) {
    size_t open = place.begin - 1;
    for (int inside = 0; open > function.body; --open) {
      if (IsOneOf(tokens_.At(open), ")]")) ++inside;
      if (IsOneOf(tokens_.At(open), "([") && inside-- == 0) break;
      if (IsOneOf(tokens_.At(open), ";{}")) return;
    }
    if (!tokens_.At(open).Is("(")) return Read(i);
    const size_t callee = CalleeOf(tokens_, open);
    const std::string name(tokens_.At(callee).text);
    if (name == "if" || name == "while") return;
    const auto arguments = ArgumentsOf(tokens_, open);
    size_t position = 0;
    while (position < arguments.size() && arguments[position].second <= i) ++position;
    const CudaFunction* called = callee == open ? nullptr : source_.Find(name);
    if (called != nullptr && position < called->parameters.size()) {
      if (tokens_.At(open - 1).Is(">>>")) grid_ = GridOf(callee, renaming);
      return Follow(*called, arguments, position, renaming, depth);
    }
    if (name.rfind("atomic", 0) == 0) {
      if (!uses_.shape && arguments[0].second - arguments[0].first == 1) uses_.shape = {"1"};
      Read(i);
      return Write(i);
    }
    const bool writes = name.rfind("cudaMemset", 0) == 0 || name.rfind("cudaMemcpy", 0) == 0 ||
                        name.rfind("__st", 0) == 0 || name.find("store") != std::string::npos;
    if (position == 0 && writes) return Write(i);
    if (tokens_.At(open - 1).kind == Kind::kString) return InAssembly(i, function);
    if (callee != open) Read(i);
  }

  // An operand of assembly, which writes if it stores.
  void InAssembly(size_t i, const CudaFunction& function) {
    size_t begin = i;
    while (begin > function.body && !IsOneOf(tokens_.At(begin), ";{}")) --begin;
    for (size_t t = begin; t < i; ++t) {
      if (tokens_.At(t).kind == Kind::kString && tokens_.At(t).text.find("st.") != std::string_view::npos)
        return Write(i);
    }
    Read(i);
  }

  // Into a function that gets the pointer as its argument at `position`.
  void Follow(const CudaFunction& called, const std::vector<std::pair<size_t, size_t>>& arguments, size_t position,
              const Renaming& renaming, int depth) {
    if (depth >= kDeepest) return;
    Renaming inner;
    for (size_t p = 0; p < std::min(arguments.size(), called.parameters.size()); ++p) {
      if (arguments[p].second - arguments[p].first != 1) continue;
      const auto outer = renaming.find(std::string(tokens_.At(arguments[p].first).text));
      if (outer != renaming.end()) inner[called.parameters[p].name] = outer->second;
    }
    const bool at_begin = arguments[position].second - arguments[position].first == 1;
    Walk(called, called.parameters[position].name, inner, depth + 1, at_begin);
  }

  // `cudaLaunchCooperativeKernel((void*)k, grid, block, args)`: the kernel gets what args points to.
  void Cooperative(size_t i, const CudaFunction& function, const std::string& parameter, const Renaming& renaming,
                   int depth) {
    const auto words = ArgumentsOf(tokens_, i + 1);
    if (words.size() < 4) return;
    const CudaFunction* kernel = source_.Find(KernelOf(source_, words[0]));
    const auto arguments = CooperativeArguments(source_, function, words[3]);
    for (size_t p = 0; kernel != nullptr && p < std::min(arguments.size(), kernel->parameters.size()); ++p) {
      if (tokens_.At(arguments[p].first).Is(parameter)) Follow(*kernel, arguments, p, renaming, depth);
    }
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
    if (const std::string bound = Renamed(BoundOf(source_, function, source_.TextOf(begin, end)), renaming);
        !bound.empty())
      return std::vector<std::string>{bound};
    if (end - begin == 1 && RangeOf(begin, end, function, renaming).empty()) {
      for (size_t i = function.body; i < begin; ++i) {  // `int at = row * cols + c;`
        if (tokens_.At(i).text == tokens_.At(begin).text && tokens_.At(i + 1).Is("=") && !tokens_.At(i + 2).Is("="))
          return ShapeBy(i + 2, tokens_.SkipToSemicolon(i, function.end) - 1, function, renaming);
      }
    }
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
    const std::string value = source_.ValueOf(name);
    return !value.empty() && std::all_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c); })
               ? value
               : "";
  }

  const CudaSource& source_;
  const SourceReader& tokens_;
  std::string grid_;
  Uses uses_;
  std::vector<size_t> writes_;   // tokens
  bool read_unwritten_ = false;  // by no write before
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
  for (size_t i = function.body; i + 1 < function.end; ++i) {
    std::vector<std::pair<size_t, size_t>> arguments;
    std::string name;
    if (IsCooperativeLaunch(tokens, i)) {
      const auto words = ArgumentsOf(tokens, i + 1);
      if (words.size() < 4) continue;
      name = KernelOf(source, words[0]);
      arguments = CooperativeArguments(source, function, words[3]);
    } else if (tokens.At(i).Is(">>>") && tokens.At(i + 1).Is("(")) {
      name = std::string(tokens.At(CalleeOf(tokens, i + 1)).text);
      arguments = ArgumentsOf(tokens, i + 1);
    }
    const CudaFunction* kernel = source.Find(name);
    if (kernel == nullptr) continue;
    KernelLaunch launch{kernel, {}};
    for (const auto& [begin, end] : arguments) launch.arguments.push_back(source.TextOf(begin, end));
    launches.push_back(std::move(launch));
  }
  return launches;
}

// Returns whether a variable is defined by the block's number.
static bool IsGlobalIndex(const CudaSource& source, const CudaFunction& function, const std::string& name) {
  const SourceReader& tokens = source.tokens();
  for (size_t i = function.body; i + 1 < function.end; ++i) {
    if (!tokens.At(i).Is(name) || !tokens.At(i + 1).Is("=") || tokens.At(i + 2).Is("=")) continue;
    for (size_t k = i; !tokens.At(k).Is(";") && k < function.end; ++k) {
      if (tokens.At(k).Is("blockIdx")) return true;
    }
  }
  return false;
}

std::string BoundOf(const CudaSource& source, const CudaFunction& function, const std::string& index) {
  const std::vector<std::string> bounds = BoundsOf(source, function, index);
  return bounds.empty() ? "" : bounds[0];
}

std::vector<std::string> BoundsOf(const CudaSource& source, const CudaFunction& function, const std::string& index) {
  std::vector<std::string> bounds;
  constexpr int64_t kSmallestConstantSize = 256;
  const SourceReader& tokens = source.tokens();
  const LexedSource wanted = Lex(index);
  const size_t length = wanted.tokens.size();
  const bool global = length == 1 && IsGlobalIndex(source, function, index);
  for (size_t i = function.body; i + length + 2 < function.end; ++i) {
    size_t same = 0;
    while (same < length && tokens.At(i + same).text == wanted.tokens[same].text) ++same;
    if (same < length || tokens.At(i - 1).Is(".") || tokens.At(i - 1).Is("->")) continue;
    size_t at = i + length;
    const bool inside =
        tokens.At(i - 1).Is("(") && tokens.At(at).Is("+") && tokens.At(at + 2).Is(")");          // `(i + 3) < n`
    if (tokens.At(at).Is("+") && tokens.At(at + 1).kind == Kind::kNumber) at += inside ? 3 : 2;  // `i + 3 < n`
    const bool below = tokens.At(at).Is("<") && !tokens.At(at + 1).Is("<") && !tokens.At(at + 1).Is("=");
    const bool not_below = tokens.At(at).Is(">") && tokens.At(at + 1).Is("=");
    if (!below && !not_below) continue;
    const size_t begin = at + (below ? 1 : 2);
    size_t end = begin;
    while (end < function.end && !IsOneOf(tokens.At(end), ";)&|,?")) {
      const bool group = tokens.At(end).Is("(");
      end = group ? tokens.SkipGroup(end, function.end) : end + 1;
    }
    const std::string bound = source.TextOf(begin, end);
    if (bound == "0") continue;  // `row >= 0` is the other side's
    // Of an index over the grid, a small constant is a halo's or a tile's, not the number of elements.
    const std::string constant = source.ValueOf(bound);
    const std::string& number = constant.empty() ? bound : constant;
    const bool digits = number.find_first_not_of("0123456789") == std::string::npos;
    if (global && digits && (number.size() < 3 || std::stoll(number.substr(0, 9)) < kSmallestConstantSize)) continue;
    if (std::find(bounds.begin(), bounds.end(), bound) == bounds.end()) bounds.push_back(bound);
  }
  return bounds;
}

}  // namespace kgrpo::evaluator
