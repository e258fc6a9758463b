// The expressions of a kernel: its accesses, what they depend on, and how far they move with a variable.
#include <algorithm>

#include "coder_offline/form/form.h"

namespace kgrpo::coder_offline {
namespace {

bool IsTypeWord(std::string_view word) {
  return IsOneOf(
      word, {"int",  "unsigned", "uint",     "long",    "short",    "size_t", "float",  "double", "bool",   "char",
             "auto", "int64_t",  "uint64_t", "int32_t", "uint32_t", "const",  "signed", "half",   "float4", "float2"});
}

bool Member(const PlainSource& source, size_t i) {
  return i > 0 && (source.At(i - 1).Is(".") || source.At(i - 1).Is("->"));
}

}  // namespace

bool Form::IsType(std::string_view word) const { return IsTypeWord(word) || types_.contains(word); }

std::string Replaced(const PlainSource& source, Range range, const std::map<std::string, std::string>& names) {
  std::string text;
  size_t at = range.begin;
  for (size_t i = range.begin; i < range.end; ++i) {
    const auto found =
        source.IsName(i) && !Member(source, i) ? names.find(std::string(source.At(i).text)) : names.end();
    if (found == names.end()) continue;
    const std::string before = source.Text({at, i + 1});
    text += before.substr(0, before.size() - source.At(i).text.size()) + found->second;
    if (i + 1 < range.end) {  // the blanks before the next token
      const std::string pair = source.Text({i, i + 2});
      text +=
          pair.substr(source.At(i).text.size(), pair.size() - source.At(i).text.size() - source.At(i + 1).text.size());
    }
    at = i + 1;
  }
  return text + source.Text({at, range.end});
}

bool Form::Declared(std::string_view name, Range range) const {
  for (size_t i = std::max<size_t>(range.begin, 1); i < range.end; ++i) {
    if (!source_.At(i).Is(name) || Member(source_, i)) continue;
    if (IsType(source_.At(i - 1).text) || (source_.At(i - 1).Is("*") && i > 1 && IsType(source_.At(i - 2).text)))
      return true;
    if (source_.IsName(i - 1) && !IsOneOf(source_.At(i - 1).text, {"return", "else", "case", "goto"})) return true;
    if (!source_.At(i - 1).Is(",")) continue;
    size_t begin = i;  // int a = 0, b = 0;
    while (begin > range.begin && !IsOneOf(source_.At(begin - 1).text, {";", "{", "}", "("})) --begin;
    if (IsType(source_.At(begin).text)) return true;
  }
  return false;
}

std::optional<Range> Form::InitialOf(std::string_view name) const {
  std::optional<Range> value;
  for (size_t i = kernel_.body.begin + 1; i + 2 < kernel_.body.end; ++i) {
    if (!source_.At(i).Is(name) || Member(source_, i)) continue;
    const bool declared = Declared(name, {i - 1, i + 1}) ||
                          (source_.At(i - 1).Is(",") && Declared(name, kernel_.body) && source_.Follows(i + 1, {"="}));
    if (declared && source_.Follows(i, {name, "="}) && !value) {
      size_t end = i + 2;
      while (end < kernel_.body.end && !source_.At(end).Is(";") && !source_.At(end).Is(",")) {
        const bool open = source_.At(end).Is("(") || source_.At(end).Is("[");
        end = open ? source_.Close(end) + 1 : end + 1;
      }
      value = Range{i + 2, end};
    } else if (source_.Written(i, i + 1)) {
      return std::nullopt;
    }
  }
  return value;
}

std::string Form::TypeOf(std::string_view name) const {
  for (size_t i = kernel_.body.begin + 1; i < kernel_.body.end; ++i) {
    if (!source_.At(i).Is(name) || !Declared(name, {i - 1, i + 1})) continue;
    size_t begin = i;
    while (begin > kernel_.body.begin && !IsOneOf(source_.At(begin - 1).text, {";", "{", "}", "("})) --begin;
    std::string type;
    for (size_t k = begin; k < i && IsType(source_.At(k).text); ++k) {
      if (!source_.At(k).Is("const")) type += (type.empty() ? "" : " ") + std::string(source_.At(k).text);
    }
    return type;
  }
  for (size_t i = kernel_.body.begin + 1; i < kernel_.body.end; ++i) {  // int a = 0, b = 0;
    if (!source_.At(i).Is(name) || !source_.At(i - 1).Is(",")) continue;
    size_t begin = i;
    while (begin > kernel_.body.begin && !IsOneOf(source_.At(begin - 1).text, {";", "{", "}", "("})) --begin;
    if (IsType(source_.At(begin).text)) return std::string(source_.At(begin).text);
  }
  return "float";
}

bool Form::IsGlobalArray(std::string_view name) const {
  for (const PlainParameter& parameter : kernel_.parameters) {
    if (parameter.pointer && parameter.name == name) return true;
  }
  for (size_t i = kernel_.body.begin + 1; i < kernel_.body.end; ++i) {
    if (source_.At(i).Is(name) && source_.At(i - 1).Is("*") && IsType(source_.At(i - 2).text)) return true;
  }
  return false;
}

std::vector<Access> Form::Accesses(Range range) const {
  std::vector<Access> accesses;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!source_.IsName(i) || !source_.Follows(i + 1, {"["}) || Member(source_, i)) continue;
    if (!IsGlobalArray(source_.At(i).text)) continue;
    const size_t close = source_.Close(i + 1);
    accesses.push_back(
        {std::string(source_.At(i).text), {i, close + 1}, {i + 2, close}, source_.Written(i, close + 1)});
  }
  return accesses;
}

bool Form::Depends(Range range, const std::set<std::string>& names, int depth) const {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!source_.IsName(i) || Member(source_, i)) continue;
    const std::string name(source_.At(i).text);
    if (names.contains(name)) return true;
    if (depth > 6 || !Declared(name, kernel_.body)) continue;
    for (size_t k = kernel_.body.begin; k < kernel_.body.end; ++k) {  // whatever it is set to
      if (!source_.At(k).Is(name) || Member(source_, k) || !source_.Written(k, k + 1)) continue;
      size_t end = k;
      while (end < kernel_.body.end && !source_.At(end).Is(";") && !source_.At(end).Is(")")) {
        const bool open = source_.At(end).Is("(") || source_.At(end).Is("[");
        end = open ? source_.Close(end) + 1 : end + 1;
      }
      if (k + 1 < end && !range.Holds(k) && Depends({k + 1, end}, names, depth + 1)) return true;
    }
  }
  return false;
}

std::string Form::Inlined(Range range, const std::set<std::string>& kept, int depth) const {
  std::map<std::string, std::string> names;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!source_.IsName(i) || Member(source_, i) || depth > 6) continue;
    const std::string name(source_.At(i).text);
    if (kept.contains(name) || names.contains(name)) continue;
    if (const auto value = InitialOf(name); value && !value->Holds(i))
      names[name] = "(" + Inlined(*value, kept, depth + 1) + ")";
  }
  return Replaced(source_, range, names);
}

Stride Form::StrideOf(Range index, std::string_view variable, int depth) const {
  if (depth > 12 || index.begin >= index.end) return Stride::kUnknown;
  if (!Depends(index, {std::string(variable)})) return Stride::kNone;
  while (index.end > index.begin && source_.At(index.begin).Is("(") && source_.Close(index.begin) + 1 == index.end) {
    ++index.begin;
    --index.end;
  }
  // Sums first, then products: the last operator outside of brackets divides the expression.
  const auto divide = [&](std::initializer_list<std::string_view> marks) {
    size_t found = 0;
    for (size_t i = index.begin; i < index.end; ++i) {
      if (source_.At(i).Is("(") || source_.At(i).Is("[")) {
        i = source_.Close(i);
      } else if (i > index.begin && IsOneOf(source_.At(i).text, marks) &&
                 !IsOneOf(source_.At(i - 1).text, {"*", "/", "+", "-", "%", "("})) {
        found = i;
      }
    }
    return found;
  };
  if (const size_t sum = divide({"+", "-"}); sum != 0) {
    const Stride a = StrideOf({index.begin, sum}, variable, depth + 1),
                 b = StrideOf({sum + 1, index.end}, variable, depth + 1);
    if (a == Stride::kNone) return b;
    if (b == Stride::kNone) return a;
    return a == Stride::kUnknown || b == Stride::kUnknown ? Stride::kUnknown : Stride::kFar;
  }
  if (const size_t product = divide({"*", "/", "%"}); product != 0) {
    const Stride a = StrideOf({index.begin, product}, variable, depth + 1),
                 b = StrideOf({product + 1, index.end}, variable, depth + 1);
    if (source_.At(product).Is("*")) {
      if (a == Stride::kUnknown || b == Stride::kUnknown) return Stride::kUnknown;
      return Stride::kFar;
    }
    if (source_.At(product).Is("%") && b == Stride::kNone) return a;  // but where it wraps
    return Stride::kUnknown;
  }
  if (index.end == index.begin + 1) {
    const std::string_view name = source_.At(index.begin).text;
    if (name == variable) return Stride::kUnit;
    if (const auto value = InitialOf(name)) return StrideOf(*value, variable, depth + 1);
    return Stride::kUnknown;
  }
  if (source_.At(index.begin).Is("(")) {  // a cast
    const size_t close = source_.Close(index.begin);
    if (close + 1 < index.end && IsType(source_.At(index.begin + 1).text))
      return StrideOf({close + 1, index.end}, variable, depth + 1);
  }
  return Stride::kUnknown;
}

std::set<std::string> Form::Assigned(Range range) const {
  std::set<std::string> names;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (source_.IsName(i) && !Member(source_, i) && !IsType(source_.At(i).text) && source_.Written(i, i + 1))
      names.emplace(source_.At(i).text);
  }
  return names;
}

}  // namespace kgrpo::coder_offline
