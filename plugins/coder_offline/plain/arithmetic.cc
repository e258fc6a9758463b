// Techniques on a kernel's arithmetic: unrolled loops, and approximate intrinsics for exact functions.
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

using cuda_source::Token;

constexpr std::pair<std::string_view, std::string_view> kFastCalls[] = {
    {"expf", "__expf"}, {"logf", "__logf"}, {"log2f", "__log2f"},   {"log10f", "__log10f"}, {"sinf", "__sinf"},
    {"cosf", "__cosf"}, {"tanf", "__tanf"}, {"exp10f", "__exp10f"}, {"powf", "__powf"},     {"fdividef", "__fdividef"},
};

bool IsFloatLiteral(const PlainSource& source, size_t i) {
  if (i >= source.size() || source.At(i).kind != Token::Kind::kNumber) return false;
  const char last = source.At(i).text.back();
  const bool hexadecimal = source.At(i).text.size() > 1 && (source.At(i).text[1] == 'x' || source.At(i).text[1] == 'X');
  return !hexadecimal && (last == 'f' || last == 'F');
}

bool IsOne(const PlainSource& source, size_t i) {
  const std::string_view text = source.At(i).text;
  return text == "1.0f" || text == "1.f" || text == "1.0F";
}

// The names declared as float in the function, without pointers and arrays.
std::set<std::string, std::less<>> Floats(const PlainSource& source, const PlainFunction& function) {
  std::set<std::string, std::less<>> floats;
  for (const PlainParameter& parameter : function.parameters) {
    if (parameter.type == "float" && !parameter.pointer) floats.insert(parameter.name);
  }
  for (size_t i = function.body.begin; i + 2 < function.body.end; ++i) {
    if (source.At(i).Is("float") && source.IsName(i + 1) && (source.At(i + 2).Is("=") || source.At(i + 2).Is(";")))
      floats.insert(std::string(source.At(i + 1).text));
  }
  return floats;
}

bool AnyDouble(const PlainSource& source, Range range) {
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = source.At(i);
    if (token.Is("double")) return true;
    if (token.kind != Token::Kind::kNumber || IsFloatLiteral(source, i)) continue;
    const bool hexadecimal = token.text.size() > 1 && (token.text[1] == 'x' || token.text[1] == 'X');
    if (!hexadecimal && token.text.find_first_of(".eE") != std::string_view::npos) return true;
  }
  return false;
}

// The end of the divisor at `i`: a float name, a group in parentheses that holds a float literal or name, or a call of
// a function whose name ends in f. 0 for anything else.
size_t DivisorEnd(const PlainSource& source, size_t i, const std::set<std::string, std::less<>>& floats) {
  size_t end = 0;
  if (source.At(i).Is("(")) {
    const size_t close = source.Close(i);
    if (close == i + 2 && source.IsName(i + 1) && floats.count(source.At(i + 1).text) == 0) return 0;  // a cast
    for (size_t k = i + 1; k < close; ++k) {
      if (IsFloatLiteral(source, k) || (source.IsName(k) && floats.count(source.At(k).text) != 0)) end = close + 1;
    }
  } else if (source.IsName(i) && source.Follows(i + 1, {"("})) {
    if (source.At(i).text.back() == 'f') end = source.Close(i + 1) + 1;
  } else if (source.IsName(i) && floats.count(source.At(i).text) != 0) {
    end = i + 1;
  }
  if (end != 0 && (source.Follows(end, {"["}) || source.Follows(end, {"."}) || source.Follows(end, {"("}))) return 0;
  return end;
}

// Replaces divisions a / b of floats by intrinsics, 1 / sqrtf(b) by rsqrtf(b). Returns their number.
int Divisions(const PlainSource& source, const PlainFunction& function, std::vector<Edit>* edits) {
  if (AnyDouble(source, function.body)) return 0;
  const auto floats = Floats(source, function);
  int count = 0;
  for (size_t i = function.body.begin + 1; i + 1 < function.body.end; ++i) {
    if (!source.At(i).Is("/") || source.At(i + 1).Is("=")) continue;
    const size_t left = i - 1;
    const Token& before = source.At(left - 1);
    const bool leading = before.Is("(") || before.Is(",") || before.Is("=") || before.Is("return") || before.Is("+") ||
                         before.Is("-") || before.Is("?") || before.Is(":") ||
                         (before.Is("*") && IsFloatLiteral(source, left));
    const bool number =
        IsFloatLiteral(source, left) || (source.IsName(left) && floats.count(source.At(left).text) != 0);
    if (!leading || !number || (left > 1 && source.At(left - 2).Is("/"))) continue;
    if (IsOne(source, left) && source.Follows(i + 1, {"sqrtf", "("})) {
      edits->push_back({source.At(left).begin, source.At(i + 1).end, "rsqrtf"});
      ++count;
      continue;
    }
    const size_t end = DivisorEnd(source, i + 1, floats);
    if (end == 0) continue;
    const bool group = source.At(i + 1).Is("(");
    edits->push_back({source.At(left).begin, source.At(left).begin, "__fdividef("});
    edits->push_back({source.At(left).end, group ? source.At(i + 1).end : source.At(i + 1).begin, ", "});
    const size_t close = source.At(end - 1).end;
    if (!group) edits->push_back({close, close, ")"});
    ++count;
  }
  return count;
}

bool Innermost(const PlainSource& source, size_t loop, size_t end) {
  size_t body = source.Close(loop + 1) + 1;
  size_t last = body;
  if (source.At(body).Is("{")) {
    last = source.Close(body);
  } else {
    while (last < end && !source.At(last).Is(";")) ++last;
  }
  for (size_t i = body; i < last; ++i) {
    if (source.At(i).Is("for") || source.At(i).Is("while")) return false;
  }
  return true;
}

}  // namespace

PlainResult UnrollLoops(const PlainSource& source, int times) {
  const std::string pragma = "#pragma unroll " + std::to_string(times > 0 ? times : 4);
  std::vector<Edit> edits;
  bool loops = false;
  for (const PlainFunction& function : source.functions()) {
    if (!function.global && !function.device) continue;
    for (size_t i = function.body.begin; i < function.body.end; ++i) {
      if (!source.At(i).Is("for") || !Innermost(source, i, function.body.end)) continue;
      loops = true;
      const Token& before = source.At(i - 1);
      if (before.kind == Token::Kind::kDirective) {
        if (before.text.find("unroll") == std::string_view::npos || before.text == pragma) continue;
        edits.push_back({before.begin, before.end, pragma});
      } else if (before.Is(";") || before.Is("{") || before.Is("}")) {
        const size_t at = source.At(i).begin;
        edits.push_back({at, at, pragma + "\n" + source.Indentation(i)});
      }
    }
  }
  if (!loops) return {"", "its kernels have no for loop"};
  if (edits.empty()) return {"", "already applied: its inner loops are unrolled"};
  return {source.Edited(edits), std::to_string(edits.size()) + (edits.size() == 1 ? " inner loop" : " inner loops") +
                                    " unrolled " + pragma.substr(15) + " times"};
}

PlainResult FastIntrinsics(const PlainSource& source) {
  std::vector<Edit> edits;
  int calls = 0, divisions = 0;
  for (const PlainFunction& function : source.functions()) {
    if (!function.global && !function.device) continue;
    for (size_t i = function.body.begin; i < function.body.end; ++i) {
      for (const auto& [exact, fast] : kFastCalls) {
        if (!source.At(i).Is(exact) || !source.Follows(i + 1, {"("}) || source.At(i - 1).Is("::")) continue;
        if (source.Find(exact) != nullptr) continue;  // the source defines a function of this name
        edits.push_back({source.At(i).begin, source.At(i).end, std::string(fast)});
        ++calls;
      }
    }
    divisions += Divisions(source, function, &edits);
  }
  if (edits.empty()) return {"", "it calls no function that has a fast intrinsic, and has no plain division of floats"};
  return {source.Edited(edits),
          std::to_string(calls) + " calls and " + std::to_string(divisions) + " divisions replaced by fast intrinsics"};
}

}  // namespace kgrpo::coder_offline
