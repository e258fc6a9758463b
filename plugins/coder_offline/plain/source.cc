#include "coder_offline/plain/source.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

namespace kgrpo::coder_offline {
namespace {

using cuda_source::Token;

bool IsOpen(const Token& token) { return token.Is("(") || token.Is("[") || token.Is("{"); }

bool IsClose(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }

bool IsNumberType(std::string_view word) {
  return IsOneOf(word, {"int", "unsigned", "long", "short", "size_t", "int64_t", "uint64_t", "int32_t", "uint32_t",
                        "float", "double"});
}

}  // namespace

PlainSource::PlainSource(std::string text, std::string* why) {
  std::set<std::string, std::less<>> hidden;
  text_ = ExpandMacros(std::move(text), &hidden);
  why->clear();
  cuda_source::LexedSource lexed = cuda_source::Lex(text_);
  tokens_ = std::move(lexed.tokens);
  std::vector<std::string> open;
  for (const Token& token : tokens_) {
    if (token.kind == Token::Kind::kIdentifier) names_.insert(std::string(token.text));
    if (IsOpen(token)) open.push_back(token.text == "(" ? ")" : token.text == "[" ? "]" : "}");
    if (!IsClose(token)) continue;
    if (open.empty() || open.back() != token.text) lexed.understood = false;
    if (!open.empty()) open.pop_back();
  }
  if (!lexed.understood || !open.empty())
    *why = "a string, a comment or a bracket does not end, or a line is continued";
  if (why->empty()) ReadFunctions(why);
  if (why->empty()) ReadLaunches(why);
  if (why->empty()) *why = WhyNotBodies(hidden);
}

// The reason why the tokens of a kernel, or of what launches it, are not what is compiled; empty if they are.
std::string PlainSource::WhyNotBodies(const std::set<std::string, std::less<>>& hidden) const {
  for (size_t f = 0; f < functions_.size(); ++f) {
    const PlainFunction& function = functions_[f];
    const bool device = function.global || function.device;
    const bool launches =
        std::any_of(launches_.begin(), launches_.end(), [f](const PlainLaunch& launch) { return launch.host == f; });
    for (size_t i = function.body.begin; i < function.body.end && (device || launches); ++i) {
      if (device && IsName(i) && hidden.contains(At(i).text))
        return "a macro of its own hides what " + function.name + " does (" + std::string(At(i).text) + ")";
      if (At(i).kind != Token::Kind::kDirective) continue;
      std::istringstream words{std::string(At(i).text.substr(1))};
      std::string word;
      words >> word;
      if (word != "pragma") return function.name + " is compiled under conditions (#" + word + ")";
    }
  }
  return "";
}

bool PlainSource::Follows(size_t i, std::initializer_list<std::string_view> words) const {
  for (const std::string_view word : words) {
    if (i >= size() || At(i).text != word) return false;
    ++i;
  }
  return true;
}

bool PlainSource::Has(Range range, std::string_view word) const {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (At(i).Is(word)) return true;
  }
  return false;
}

std::vector<std::string> PlainSource::TemplateParameters(const PlainFunction& function) const {
  std::vector<std::string> names;
  size_t i = function.first;
  while (i < function.name_token && !At(i).Is("template")) ++i;
  bool value = false;  // behind a parameter's =
  for (i += 2; i < function.name_token && !At(i).Is(">"); ++i) {
    if (At(i).Is(",")) value = false;
    if (At(i).Is("=")) value = true;
    const bool last = Follows(i + 1, {","}) || Follows(i + 1, {"="}) || Follows(i + 1, {">"});
    if (!value && last && IsName(i)) names.emplace_back(At(i).text);
  }
  return names;
}

bool PlainSource::Written(size_t begin, size_t end) const {
  while (begin > 0 && At(begin - 1).Is("(") && Follows(end, {")"}) && (begin < 2 || !IsName(begin - 2))) {
    --begin;  // (x[i])
    ++end;
  }
  const auto two = [&](size_t i, const char* mark) { return Follows(i, {mark, mark}); };
  if (two(end, "+") || two(end, "-")) return true;
  if (begin >= 2 && (two(begin - 2, "+") || two(begin - 2, "-"))) return true;
  if (Follows(end, {"="}) && !Follows(end, {"=", "="})) return true;
  for (const char* mark : {"+", "-", "*", "/", "%", "&", "|", "^"}) {
    if (Follows(end, {mark, "="})) return true;
  }
  if (Follows(end, {"<", "<", "="}) || Follows(end, {">", ">", "="})) return true;
  if (Follows(end, {"."}) || Follows(end, {"->"})) return Written(end + 1, end + 2);
  if (begin == 0 || !At(begin - 1).Is("&")) return false;
  if (begin >= 2 && At(begin - 2).Is("&")) return false;  // a && x[i]
  const bool operand =
      begin >= 2 && (IsName(begin - 2) || Value(begin - 2) || At(begin - 2).Is(")") || At(begin - 2).Is("]"));
  return !operand;
}

size_t PlainSource::Close(size_t open) const {
  int depth = 0;
  for (size_t i = open; i < size(); ++i) {
    if (IsOpen(At(i))) ++depth;
    if (IsClose(At(i)) && --depth == 0) return i;
  }
  return size() - 1;  // not reached: brackets are known to close
}

std::string PlainSource::Text(Range range) const {
  if (range.begin >= range.end) return "";
  return text_.substr(At(range.begin).begin, At(range.end - 1).end - At(range.begin).begin);
}

std::string PlainSource::Plain(Range range) const {
  std::string text;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (At(i).Is("(") && IsName(i + 1) && IsNumberType(At(i + 1).text)) {
      const size_t close = Close(i);
      bool cast = true;
      for (size_t k = i + 1; k < close; ++k) cast = cast && IsNumberType(At(k).text);
      if (cast) {
        i = close;
        continue;
      }
    }
    text += At(i).text;
  }
  return text;
}

std::optional<ForHead> PlainSource::ForAt(size_t i) const {
  const size_t close = Close(i + 1);
  std::vector<size_t> marks;
  for (size_t k = i + 2; k < close; ++k) {
    if (At(k).Is(";")) marks.push_back(k);
  }
  if (marks.size() != 2) return std::nullopt;
  return ForHead{{i + 2, marks[0]}, {marks[0] + 1, marks[1]}, {marks[1] + 1, close}, close};
}

std::string PlainSource::Indentation(size_t token) const {
  const size_t begin = At(token).begin;
  const size_t line = begin == 0 ? 0 : text_.rfind('\n', begin - 1) + 1;
  const size_t end = text_.find_first_not_of(" \t", line);
  return text_.substr(line, end - line);
}

std::vector<Range> PlainSource::Split(Range range) const {
  std::vector<Range> parts;
  if (range.begin >= range.end) return parts;
  size_t begin = range.begin;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (IsOpen(At(i))) i = Close(i);
    if (!At(i).Is(",")) continue;
    parts.push_back({begin, i});
    begin = i + 1;
  }
  parts.push_back({begin, range.end});
  return parts;
}

std::optional<int> PlainSource::Value(size_t token) const {
  if (token >= size() || At(token).kind != Token::Kind::kNumber) return std::nullopt;
  const std::string_view text = At(token).text;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  if (!suffix.empty() && suffix != "u" && suffix != "U") return std::nullopt;
  return value;
}

std::optional<PlainNumber> PlainSource::Number(Range range) const {
  if (range.end == range.begin + 1) {
    if (const auto value = Value(range.begin)) return PlainNumber{*value, At(range.begin).begin, At(range.begin).end};
  }
  if (Follows(range.begin, {"dim3", "("}) && Close(range.begin + 1) + 1 == range.end) {
    return Number({range.begin + 2, range.end - 1});
  }
  if (range.end != range.begin + 1 || !IsName(range.begin)) return std::nullopt;
  const std::string name(At(range.begin).text);
  std::optional<PlainNumber> found;
  const auto take = [&](const PlainNumber& number) {
    if (found) found->value = -1;  // defined twice
    if (!found) found = number;
  };
  for (size_t i = 0; i + 3 < size(); ++i) {
    if (At(i).kind == Token::Kind::kDirective) {
      std::istringstream words{std::string(At(i).text)};
      std::string define, defined, number, more;
      int value = 0;
      if (!(words >> define >> defined >> number) || define != "#define" || defined != name || words >> more) continue;
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
      if (error != std::errc() || end != number.data() + number.size()) continue;
      const size_t at = At(i).begin + At(i).text.rfind(number);
      take({value, at, at + number.size()});
      continue;
    }
    const bool of_int = Follows(i, {name, "="}) && Value(i + 2) && At(i + 3).Is(";") && i > 0 && At(i - 1).Is("int");
    const bool of_dim3 =
        Follows(i, {name, "("}) && Close(i + 1) == i + 3 && Value(i + 2) && i > 0 && At(i - 1).Is("dim3");
    if (of_int || of_dim3) {
      take({*Value(i + 2), At(i + 2).begin, At(i + 2).end});
    } else if (Follows(i, {name, "="}) && !Follows(i, {name, "=", "="})) {
      found = PlainNumber{-1, 0, 0};  // a run-time value
    }
  }
  return found && found->value > 0 ? found : std::nullopt;
}

std::optional<Range> PlainSource::Initializer(Range body, std::string_view name) const {
  for (size_t i = body.begin + 1; i + 2 < body.end; ++i) {
    const bool declared = IsName(i - 1) || At(i - 1).Is(",");  // int lane = t % 32, warp = t / 32;
    if (!Follows(i, {name, "="}) || Follows(i, {name, "=", "="}) || !declared) continue;
    size_t end = i + 2;
    while (end < body.end && !At(end).Is(";") && !At(end).Is(",")) end = IsOpen(At(end)) ? Close(end) + 1 : end + 1;
    return Range{i + 2, end};
  }
  return std::nullopt;
}

std::string PlainSource::PointerName(Range argument) const {
  if (At(argument.begin).Is("(") && Follows(Close(argument.begin) - 1, {"*", ")"}))
    argument.begin = Close(argument.begin) + 1;
  const bool name = argument.end == argument.begin + 1 && IsName(argument.begin);
  return name ? std::string(At(argument.begin).text) : "";
}

std::optional<int> PlainSource::Threads(const PlainLaunch& launch) const {
  if (const auto number = Number(launch.block)) return number->value;
  size_t open = 0;  // the parenthesis of dim3(16, 16), or of `dim3 threads(16, 16);`
  if (Follows(launch.block.begin, {"dim3", "("})) {
    open = launch.block.begin + 1;
  } else if (launch.block.end == launch.block.begin + 1) {
    const Range host = functions_[launch.host].body;
    for (size_t i = host.begin; i < host.end; ++i) {
      if (Follows(i, {"dim3", At(launch.block.begin).text, "("})) open = open == 0 ? i + 2 : size();
    }
  }
  if (open == 0 || open >= size()) return std::nullopt;
  int threads = 1;
  for (const Range& part : Split({open + 1, Close(open)})) {
    const auto extent = Number(part);
    if (!extent || extent->value > 1024) return std::nullopt;
    threads *= extent->value;
  }
  return threads;
}

std::string PlainSource::Fresh(std::string name) const {
  while (names_.count(name) != 0) name += "_";
  return name;
}

std::string PlainSource::Edited(std::vector<Edit> edits) const {
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string result;
  size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.begin < at) continue;  // two edits of the same place
    result += text_.substr(at, edit.begin - at) + edit.text;
    at = edit.end;
  }
  return result + text_.substr(at);
}

const PlainFunction* PlainSource::Find(std::string_view name) const {
  for (const PlainFunction& function : functions_) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

std::vector<const PlainLaunch*> PlainSource::LaunchesOf(const PlainFunction& kernel) const {
  std::vector<const PlainLaunch*> found;
  for (const PlainLaunch& launch : launches_) {
    if (launch.kernel == kernel.name) found.push_back(&launch);
  }
  return found;
}

bool PlainSource::MayAlias(const PlainFunction& kernel) const {
  for (const PlainLaunch* launch : LaunchesOf(kernel)) {
    if (launch->arguments.size() != kernel.parameters.size()) return true;
    const Range host = functions_[launch->host].body;
    for (size_t i = host.begin; i + 2 < host.end; ++i) {  // float* other = x;
      if (At(i).Is("*") && IsName(i + 1) && At(i + 2).Is("=") && !Follows(i + 3, {"nullptr"})) return true;
    }
    std::set<std::string> given;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      if (!kernel.parameters[i].pointer) continue;
      const std::string name = PointerName(launch->arguments[i]);
      if (name.empty() || !given.insert(name).second) return true;
    }
  }
  return false;
}

PlainParameter PlainSource::ReadParameter(Range range) const {
  PlainParameter parameter;
  parameter.tokens = range;
  for (size_t i = range.begin; i < range.end; ++i) {
    const std::string_view word = At(i).text;
    if (word == "const") {
      parameter.constant = parameter.constant || !parameter.pointer;
    } else if (word == "*") {
      parameter.pointer = true;
    } else if (word == "__restrict__" || word == "__restrict") {
      parameter.restrict = true;
    } else if (i + 1 == range.end && IsName(i)) {
      parameter.name = word;
    } else {
      parameter.type += (parameter.type.empty() ? "" : " ") + std::string(word);
    }
  }
  return parameter;
}

void PlainSource::ReadFunctions(std::string* why) {
  size_t first = 0;
  for (size_t i = 0; i < size(); ++i) {
    const Token& token = At(i);
    if (token.Is(";") || token.Is("}") || token.kind == Token::Kind::kDirective) first = i + 1;
    const bool scope =
        token.Is("{") && i > 0 &&
        (At(i - 1).kind == Token::Kind::kString || At(i - 1).Is("namespace") || (i > 1 && At(i - 2).Is("namespace")));
    if (scope) {
      first = i + 1;
    } else if (token.Is("{")) {
      i = Close(i);  // a type or an initializer
    } else if (token.Is("(")) {
      const size_t close = Close(i);
      if (i > 0 && IsName(i - 1) && close + 1 < size() && At(close + 1).Is("{")) {
        PlainFunction function;
        function.name = At(i - 1).text;
        function.first = first;
        function.name_token = i - 1;
        function.global = Has({first, i}, "__global__");
        function.device = Has({first, i}, "__device__");
        for (const Range& range : Split({i + 1, close})) function.parameters.push_back(ReadParameter(range));
        const size_t end = Close(close + 1);
        function.body = {close + 2, end};
        functions_.push_back(function);
        i = end;
        first = i + 1;
      } else {
        i = close;
      }
    }
  }
  if (std::none_of(functions_.begin(), functions_.end(), [](const PlainFunction& f) { return f.global; })) {
    *why = "it has no __global__ function";
  }
}

void PlainSource::ReadLaunches(std::string* why) {
  for (size_t i = 1; i < size(); ++i) {
    if (!At(i).Is("<<<")) continue;
    size_t close = i;
    while (close < size() && !At(close).Is(">>>")) ++close;
    const auto host = std::find_if(functions_.begin(), functions_.end(),
                                   [&](const PlainFunction& function) { return function.body.Holds(i); });
    size_t name = i - 1;
    int depth = 0;  // of the < and > of template arguments
    if (At(name).Is(">") || At(name).Is(">>>")) {
      for (; name > 0; --name) {
        depth += At(name).Is(">") ? 1 : At(name).Is(">>>") ? 3 : At(name).Is("<") ? -1 : 0;
        if (depth == 0) break;
      }
    }
    PlainLaunch launch;
    if (name + 1 < i && name > 0) launch.template_arguments = {name-- + 1, i - 1};
    if (!IsName(name) || close + 1 >= size() || !At(close + 1).Is("(") || host == functions_.end()) {
      *why = "it has a launch of another form than kernel<<<grid, block>>>(arguments)";
      return;
    }
    launch.kernel = At(name).text;
    launch.host = static_cast<size_t>(host - functions_.begin());
    const std::vector<Range> configuration = Split({i + 1, close});
    if (configuration.size() < 2) {
      *why = "it has a launch without a grid and a block";
      return;
    }
    launch.grid = configuration[0];
    launch.block = configuration[1];
    if (configuration.size() > 2) launch.shared = configuration[2];
    launch.arguments = Split({close + 2, Close(close + 1)});
    launches_.push_back(launch);
  }
}

}  // namespace kgrpo::coder_offline
