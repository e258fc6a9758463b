#include "draft/call_site.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "draft/thread_index.h"  // ElementTypeOf
#include "judge/problem/expression.h"

namespace kgrpo::evaluator {
namespace {

using Kind = Token::Kind;
using Range = std::pair<size_t, size_t>;  // tokens

constexpr int kDeepestDefinition = 12;  // definitions that are followed

class CallReader {
 public:
  CallReader(const CudaSource& source, const CudaFunction& function)
      : source_(source), tokens_(source.tokens()), function_(function) {}

  CallSite Run() {
    CallSite best;
    size_t most = 0;
    for (size_t i = 1; i + 1 < tokens_.size(); ++i) {
      if (!tokens_.At(i).Is(function_.name) || !FindCaller(i)) continue;
      size_t open = i + 1;
      if (tokens_.At(open).Is("<")) open = tokens_.EndOfAngles(open, tokens_.size());
      if (open == 0 || !tokens_.At(open).Is(function_.kernel ? "<<<" : "(")) continue;
      std::vector<Range> launch;
      call_ = i;
      if (function_.kernel) {
        const size_t close = ClosingOf(open);
        if (close == 0 || !tokens_.At(close + 1).Is("(")) continue;
        launch = Split(open + 1, close, ",");
        open = close + 1;
      }
      arguments_ = Split(open + 1, tokens_.SkipGroup(open, tokens_.size()) - 1, ",");
      site_ = {};
      site_.line = source_.LineOf(i);
      Read(launch);
      const size_t told = 1 + site_.shapes.size() + site_.values.size() + 2 * (site_.grid.empty() ? 0 : 1);
      if (told > most) best = site_;
      most = std::max(most, told);
    }
    return best;
  }

 private:
  bool FindCaller(size_t at) {
    for (const CudaFunction& one : source_.functions()) {
      if (at <= one.body || at >= one.end || &one == &function_) continue;
      caller_ = &one;
      return true;
    }
    return false;
  }

  size_t ClosingOf(size_t launch) const {
    for (size_t i = launch + 1; i < tokens_.size() && !tokens_.At(i).Is(";"); ++i) {
      if (tokens_.At(i).Is(">>>")) return i;
    }
    return 0;
  }

  // The parts of a range between separators outside of brackets.
  std::vector<Range> Split(size_t begin, size_t end, std::string_view separator) const {
    std::vector<Range> parts;
    size_t from = begin;
    for (size_t i = begin; i < end;) {
      if (tokens_.At(i).Is("(") || tokens_.At(i).Is("[") || tokens_.At(i).Is("{")) {
        i = tokens_.SkipGroup(i, end);
        continue;
      }
      if (tokens_.At(i).Is(separator)) {
        parts.emplace_back(from, i);
        from = i + 1;
      }
      ++i;
    }
    if (from < end) parts.emplace_back(from, end);
    return parts;
  }

  void Read(const std::vector<Range>& launch) {
    for (size_t p = 0; p < std::min(arguments_.size(), function_.parameters.size()); ++p) {
      const FunctionParameter& parameter = function_.parameters[p];
      if (parameter.pointer) continue;
      if (const std::string value = Constant(arguments_[p]); !value.empty()) site_.values[parameter.name] = value;
    }
    for (size_t p = 0; p < std::min(arguments_.size(), function_.parameters.size()); ++p) {
      const FunctionParameter& parameter = function_.parameters[p];
      const auto [begin, end] = arguments_[p];
      if (parameter.pointer && end == begin + 1) ReadMemory(parameter, std::string(tokens_.At(begin).text));
    }
    if (launch.size() < 2) return;
    site_.grid = Extents(launch[0]);
    site_.block = Extents(launch[1]);
    if (launch.size() > 2) site_.shared = InNames(launch[2], 0).value_or("");
    if (site_.shared == "0") site_.shared.clear();
  }

  // `cudaMalloc(&x, n * sizeof(float))`, as the caller or the file writes it.
  void ReadMemory(const FunctionParameter& parameter, const std::string& argument) {
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (!tokens_.At(i).text.starts_with("cudaMalloc") || !tokens_.At(i + 1).Is("(")) continue;
      const std::vector<Range> words = Split(i + 2, tokens_.SkipGroup(i + 1, tokens_.size()) - 1, ",");
      if (words.size() < 2 || !tokens_.At(words[0].second - 1).Is(argument)) continue;
      element_ = parameter.type;
      allow_sizes_ = true;
      const std::optional<std::string> bytes = InNames(words[1], 0);
      allow_sizes_ = false;
      if (bytes) AddShape(parameter, *bytes);
      return;
    }
  }

  // The factors of `bytes` without the element's size, in brackets where they are sums.
  void AddShape(const FunctionParameter& parameter, const std::string& bytes) {
    std::string type = parameter.type;
    for (int i = 0; i < 4 && !source_.ValueOf(type).empty(); ++i) type = source_.ValueOf(type);
    const std::optional<ElementType> element = ElementTypeOf(type);
    if (!element) return;
    int64_t size = static_cast<int64_t>(Info(element->dtype).size) * element->lanes;
    std::vector<std::string> factors = {""};
    int depth = 0;
    for (const char c : WithoutBrackets(bytes)) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (depth == 0 && (c == '+' || c == '-' || c == '/' || c == '%')) return;
      if (depth == 0 && c == '*')
        factors.emplace_back();
      else
        factors.back() += c;
    }
    std::vector<std::string> shape;
    for (std::string& factor : factors) {
      factor = WithoutBrackets(factor);
      const bool number = factor.find_first_not_of("0123456789") == std::string::npos;
      const int64_t value = number && factor.size() < 18 ? std::atoll(factor.c_str()) : 0;
      if (value > 0 && size > 1 && value % size == 0) {
        if (value > size) shape.push_back(std::to_string(value / size));
        size = 1;
      } else if (value != 1) {
        shape.push_back(factor);
      }
    }
    if (size == 1 && !shape.empty()) site_.shapes[parameter.name] = shape;
    if (size == 1 && shape.empty()) site_.shapes[parameter.name] = {"1"};
  }

  // Without those around all of it.
  static std::string WithoutBrackets(const std::string& text) {
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (depth == 0 && (i == 0 || i + 1 < text.size())) return text;
    }
    return text.size() < 3 ? text : WithoutBrackets(text.substr(1, text.size() - 2));
  }

  // "ceil_div(n, 16),ceil_div(m, 16)": of a number, dim3(...), {...}, or a variable of dim3.
  std::string Extents(Range range) {
    if (range.second == range.first + 1 && tokens_.At(range.first).kind == Kind::kIdentifier) {
      if (const Range made = DefinitionOf(tokens_.At(range.first).text); made.first != 0 && IsDim3(made.first))
        return Extents(made);
    }
    std::string extents;
    for (const Range& part : Parts(range)) {
      const std::optional<std::string> extent = InNames(part, 0);
      if (!extent) return "";
      extents += (extents.empty() ? "" : ",") + *extent;
    }
    return extents;
  }
  std::vector<Range> Parts(Range range) const {
    if (tokens_.At(range.first).Is("dim3")) ++range.first;
    const bool list = tokens_.At(range.first).Is("(") || tokens_.At(range.first).Is("{");
    const bool whole = list && tokens_.SkipGroup(range.first, range.second) == range.second;
    return whole ? Split(range.first + 1, range.second - 1, ",") : std::vector<Range>{range};
  }
  // Whether the definition whose value begins there is of a dim3.
  bool IsDim3(size_t value) const {
    for (size_t i = value; i-- > caller_->body && !tokens_.At(i).Is(";") && !tokens_.At(i).Is("{");) {
      if (tokens_.At(i).Is("dim3")) return true;
    }
    return tokens_.At(value).Is("{") || tokens_.At(value).Is("dim3");
  }

  // The value that the caller, or else the file, gives a variable before the call; {0, 0} where there is none.
  Range DefinitionOf(std::string_view name) const {
    for (const bool local : {true, false}) {
      for (size_t i = local ? call_ : tokens_.size(); i-- > (local ? caller_->body : 1);) {
        if (!tokens_.At(i).Is(name) || tokens_.At(i - 1).Is(".") || tokens_.At(i - 1).Is("->")) continue;
        if (!local && Within(i)) continue;
        const Token &before = tokens_.At(i - 1), &next = tokens_.At(i + 1);
        const bool declares = before.kind == Kind::kIdentifier && !before.Is("return");
        if (next.Is("=") && !tokens_.At(i + 2).Is("=")) {
          size_t end = i + 2;
          while (!tokens_.At(end).Is(";") && !tokens_.At(end).Is(",") && end < tokens_.size()) {
            const bool group = tokens_.At(end).Is("(") || tokens_.At(end).Is("{") || tokens_.At(end).Is("[");
            end = group ? tokens_.SkipGroup(end, tokens_.size()) : end + 1;
          }
          return {i + 2, end};
        }
        if (declares && (next.Is("(") || next.Is("{"))) return {i + 1, tokens_.SkipGroup(i + 1, tokens_.size())};
      }
    }
    return {0, 0};
  }
  bool Within(size_t at) const {
    return std::any_of(source_.functions().begin(), source_.functions().end(),
                       [at](const CudaFunction& one) { return at > one.begin && at < one.end; });
  }

  // The parameter that gets this variable of the caller; "" if none does.
  std::string ParameterOf(std::string_view variable) const {
    for (size_t p = 0; p < std::min(arguments_.size(), function_.parameters.size()); ++p) {
      const auto [begin, end] = arguments_[p];
      if (!function_.parameters[p].pointer && end == begin + 1 && tokens_.At(begin).text == variable)
        return function_.parameters[p].name;
    }
    return "";
  }

  // A number as text, "2.5" or "1048576"; "" if the value is not known before the program runs.
  std::string Constant(const Range& range) {
    const size_t minus = tokens_.At(range.first).Is("-") ? 1 : 0;
    if (range.second == range.first + minus + 1) {
      const Token& token = tokens_.At(range.first + minus);
      const std::string text(token.text);
      if (token.kind == Kind::kNumber && text.find('.') != std::string::npos && !text.starts_with("0x"))
        return (minus != 0 ? "-" : "") + text.substr(0, text.find_first_of("fFlL"));
      if (const Range made = DefinitionOf(text); minus == 0 && made.first != 0 && depth_ < kDeepestDefinition) {
        ++depth_;
        std::string value = Constant(made);
        --depth_;
        return value;
      }
      if (minus == 0 && caller_->IndexOf(text) >= 0) return PassedToCaller(text);
    }
    for (size_t i = range.second; i-- > range.first;) {  // `argc > 1 ? atoi(argv[1]) : 1 << 20`
      if (tokens_.At(i).Is(":")) return Constant({i + 1, range.second});
    }
    const bool outer = std::exchange(constants_only_, true);
    const std::optional<std::string> value = InNames(range, 0);
    constants_only_ = outer;
    return value && value->find_first_not_of("0123456789") == std::string::npos ? *value : "";
  }

  // The constant that the caller gets as its own parameter, where the file calls it.
  std::string PassedToCaller(const std::string& parameter) {
    const CudaFunction* const caller = caller_;
    const size_t call = call_, position = static_cast<size_t>(caller->IndexOf(parameter));
    std::string value;
    for (size_t i = 1; i + 1 < tokens_.size() && value.empty() && depth_ < kDeepestDefinition; ++i) {
      if (!tokens_.At(i).Is(caller->name) || !tokens_.At(i + 1).Is("(") || !FindCaller(i) || caller_ == caller)
        continue;
      const std::vector<Range> arguments = Split(i + 2, tokens_.SkipGroup(i + 1, tokens_.size()) - 1, ",");
      call_ = i;
      ++depth_;
      if (position < arguments.size()) value = Constant(arguments[position]);
      --depth_;
      caller_ = caller;
      call_ = call;
    }
    caller_ = caller;
    return value;
  }

  // An expression in names of the function's parameters and of sizes; nothing if it has other names.
  std::optional<std::string> InNames(const Range& range, int depth) {
    if (depth > kDeepestDefinition || range.second <= range.first) return std::nullopt;
    std::string text;
    for (size_t i = range.first; i < range.second; ++i) {
      const Token& token = tokens_.At(i);
      const bool type_in_brackets = token.Is("(") && tokens_.At(i + 2).Is(")") && IsType(tokens_.At(i + 1).text);
      if (type_in_brackets && i + 3 < range.second) {
        i += 2;  // a cast
      } else if (token.kind == Kind::kNumber) {
        std::string number(token.text.substr(0, token.text.find_first_of("uUlLfF")));
        if (number.find('.') != std::string::npos) number = number.substr(0, number.find('.'));  // `n / 256.0`
        if (number.starts_with("0x") || number.empty()) return std::nullopt;
        text += number;
      } else if (token.kind == Kind::kIdentifier) {
        const std::optional<std::string> word = Word(&i, range.second, depth);
        if (!word) return std::nullopt;
        text += *word;
      } else if (token.Is("<") && tokens_.At(i + 1).Is("<") && i + 2 < range.second && !text.empty()) {
        const std::optional<std::string> shift = InNames({i + 2, range.second}, depth + 1);
        const bool digits = shift && shift->size() < 3 && shift->find_first_not_of("0123456789") == std::string::npos;
        if (!digits || std::atoi(shift->c_str()) > 40) return std::nullopt;
        return Simple("(" + text + ")*" + std::to_string(int64_t{1} << std::atoi(shift->c_str())));
      } else if (token.kind == Kind::kPunctuation &&
                 std::string_view("+-*/%()").find(token.text) != std::string::npos) {
        text += token.text;
      } else {
        return std::nullopt;
      }
    }
    return Simple(text);
  }

  // As a number if it is one.
  static std::string Simple(const std::string& text) {
    try {
      return std::to_string(Expression::Parse(text).EvaluateInteger({}));
    } catch (const std::invalid_argument&) {
      return text;
    }
  }

  bool IsType(std::string_view name) const {
    return ElementTypeOf(std::string(name)).has_value() ||
           ElementTypeOf(source_.ValueOf(std::string(name))).has_value();
  }

  // The word at *i, and what belongs to it.
  std::optional<std::string> Word(size_t* i, size_t end, int depth) {
    const std::string name(tokens_.At(*i).text);
    const size_t open = *i + 1;
    if (tokens_.At(open).Is("::")) return *i = open, std::string();  // std::min
    if (name.ends_with("_cast") && tokens_.At(open).Is("<")) {
      *i = tokens_.EndOfAngles(open, end) - 1;
      return *i + 1 == 0 ? std::nullopt : std::optional(std::string());
    }
    if (tokens_.At(open).Is(".")) {  // block.x
      const size_t axis = std::string_view("xyz").find(tokens_.At(open + 1).text);
      const Range made = DefinitionOf(name);
      if (axis == std::string_view::npos || made.first == 0 || !IsDim3(made.first)) return std::nullopt;
      const std::vector<Range> extents = Parts(made);
      *i = open + 1;
      return axis < extents.size() ? Bracketed(InNames(extents[axis], depth + 1)) : std::optional<std::string>("1");
    }
    if (tokens_.At(open).Is("->")) return std::nullopt;
    if (tokens_.At(open).Is("(")) {
      const size_t close = tokens_.SkipGroup(open, end) - 1;
      *i = close;
      if (name == "sizeof") {
        std::string type = source_.TextOf(open + 1, close);
        if (!source_.ValueOf(type).empty()) type = source_.ValueOf(type);
        const bool of_element = type.starts_with("*") || type.ends_with("[0]");  // sizeof(*x)
        const std::optional<ElementType> element = ElementTypeOf(of_element ? element_ : type);
        if (!element) return std::nullopt;
        return std::to_string(Info(element->dtype).size * static_cast<size_t>(element->lanes));
      }
      return Call(name, Split(open + 1, close, ","), depth);
    }
    if (!constants_only_) {
      if (std::string parameter = ParameterOf(name); !parameter.empty()) return parameter;
      if (site_.sizes.contains(name)) return name;
      if (function_.IndexOf(name) >= 0 && caller_ == &function_) return name;
    }
    const Range made = DefinitionOf(name);
    const std::string value = source_.ValueOf(name);
    std::optional<std::string> text;
    if (made.first != 0) text = InNames(made, depth + 1);
    if (made.first == 0 && constants_only_ && caller_->IndexOf(name) >= 0) {
      if (std::string passed = PassedToCaller(name); !passed.empty()) return passed;
    }
    if (!text && !value.empty()) {
      const bool number = value.find_first_not_of("0123456789") == std::string::npos;
      if (!number && made.first == 0) return std::nullopt;
      text = value;
    }
    if (!text) return std::nullopt;
    const bool number = text->find_first_not_of("0123456789") == std::string::npos;
    // A constant of the caller that the memory's size has is a size, unless the function has it, too.
    if (allow_sizes_ && number && made.first != 0 && !Mentions(name) && text->size() < 18 && std::stoll(*text) > 1) {
      site_.sizes[name] = std::stoll(*text);
      return name;
    }
    return Bracketed(text);
  }

  static std::optional<std::string> Bracketed(const std::optional<std::string>& text) {
    const bool word =
        !text || std::all_of(text->begin(), text->end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    return word ? text : "(" + *text + ")";
  }

  bool Mentions(const std::string& name) const {
    for (size_t i = function_.begin; i < function_.end; ++i) {
      if (tokens_.At(i).Is(name)) return true;
    }
    return false;
  }

  // `cdiv(n, 256)` of whatever name, `ceil(n / 256.0)`, min and max.
  std::optional<std::string> Call(std::string name, const std::vector<Range>& arguments, int depth) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    std::erase(name, '_');
    if ((name == "ceil" || name == "ceilf") && arguments.size() == 1) {
      std::vector<Range> parts = Split(arguments[0].first, arguments[0].second, "/");
      if (parts.size() != 2) return std::nullopt;
      const auto over = InNames(parts[0], depth + 1), by = InNames(parts[1], depth + 1);
      return over && by ? std::optional("ceil_div(" + *over + "," + *by + ")") : std::nullopt;
    }
    const bool divides =
        name.find("div") != std::string::npos &&
        (name.find("up") != std::string::npos || name.find("ceil") != std::string::npos || name == "cdiv");
    if (arguments.size() != 2 || !(divides || name == "min" || name == "max")) return std::nullopt;
    const auto a = InNames(arguments[0], depth + 1), b = InNames(arguments[1], depth + 1);
    if (!a || !b) return std::nullopt;
    return (divides ? "ceil_div" : name) + "(" + *a + "," + *b + ")";
  }

  const CudaSource& source_;
  const SourceReader& tokens_;
  const CudaFunction& function_;
  const CudaFunction* caller_ = nullptr;
  size_t call_ = 0;
  std::vector<Range> arguments_;
  std::string element_;  // the type of the elements whose memory is read
  bool allow_sizes_ = false, constants_only_ = false;
  int depth_ = 0;
  CallSite site_;
};

}  // namespace

CallSite CallSiteOf(const CudaSource& source, const CudaFunction& function) {
  return CallReader(source, function).Run();
}

}  // namespace kgrpo::evaluator
