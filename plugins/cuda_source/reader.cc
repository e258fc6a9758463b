#include "cuda_source/reader.h"

#include <algorithm>

namespace kgrpo::cuda_source {

void SourceReader::Fail(size_t token, const std::string& what) const {
  throw NotUnderstood{token < size() ? At(token).begin : source_.size(), what};
}

size_t SourceReader::SkipGroup(size_t open, size_t end) const {
  const std::string_view opening = At(open).text;
  const std::string_view closing = opening == "(" ? ")" : opening == "{" ? "}" : "]";
  constexpr int kDeepest = 256;  // who reads what is inside calls itself for each level
  int depth = 0;
  for (size_t i = open; i < end; ++i) {
    if (At(i).Is(opening) && ++depth > kDeepest) Fail(i, "brackets nested deeper than 256 levels");
    if (At(i).Is(closing) && --depth == 0) return i + 1;
  }
  Fail(open, "a bracket that does not close");
}

size_t SourceReader::SkipAngles(size_t open, size_t end) const {
  const size_t after = EndOfAngles(open, end);
  if (after == 0) Fail(open, "template brackets");
  return after;
}

size_t SourceReader::EndOfAngles(size_t open, size_t end) const {
  int depth = 0;
  for (size_t i = open; i < end;) {
    if (At(i).Is("(") || At(i).Is("[") || At(i).Is("{")) {
      i = SkipGroup(i, end);
      continue;
    }
    if (At(i).Is("<")) ++depth;
    if (At(i).Is("<<<")) depth += 3;
    if (At(i).Is(">")) --depth;
    if (At(i).Is(">>>")) depth -= 3;
    if (At(i).Is(";")) break;
    ++i;
    if (depth == 0) return i;
    if (depth < 0) break;
  }
  return 0;
}

size_t SourceReader::SkipToSemicolon(size_t i, size_t end) const {
  while (i < end && !At(i).Is(";")) {
    if (At(i).Is("(") || At(i).Is("{") || At(i).Is("[")) {
      i = SkipGroup(i, end);
    } else {
      ++i;
    }
  }
  return std::min(i + 1, end);
}

size_t SourceReader::SkipNamespaceHead(size_t i, size_t end) const {
  while (i < end && !At(i).Is("{") && !At(i).Is(";")) ++i;
  if (i >= end) Fail(end - 1, "a namespace without a body");
  return i + 1;
}

Declaration SourceReader::ReadDeclaration(const size_t begin, size_t end) const {
  Declaration seen;
  size_t i = begin, named = 0;  // the token before template arguments
  while (i < end) {
    const Token& token = At(i);
    if (token.kind == Token::Kind::kDirective) {
      if (i != begin) Fail(i, "a directive inside a declaration");
    } else if (token.Is("template")) {
      seen.is_template = true;
      if (i + 1 < end && At(i + 1).Is("<")) {
        i = SkipAngles(i + 1, end);
        continue;
      }
    } else if (token.Is("__global__")) {
      seen.global = true;
    } else if (token.Is("__device__")) {
      seen.device = true;
    } else if (token.Is("__host__")) {
      seen.host = true;
    } else if (token.Is("__constant__") || token.Is("__managed__")) {
      seen.constant = true;
      if (token.Is("__managed__")) Fail(i, "managed memory");
    } else if (token.Is("constexpr") || token.Is("consteval")) {
      seen.is_constexpr = true;
    } else if (token.Is("static")) {
      seen.statics.push_back(i);
    } else if (token.Is("typedef")) {
      seen.is_typedef = true;
    } else if (token.Is("asm") || token.Is("__asm__")) {
      Fail(i, "assembly at namespace scope");
    } else if (token.Is("struct") || token.Is("class") || token.Is("enum") || token.Is("union")) {
      if (seen.parameters == 0 && !seen.assigned) seen.type = true;
    } else if (token.Is("using") || token.Is("static_assert")) {
      seen.for_both = true;
      seen.end = SkipToSemicolon(i, end);
      return seen;
    } else if (token.Is("__launch_bounds__") || token.Is("__attribute__") || token.Is("alignas") ||
               token.Is("__align__") || token.Is("decltype") || token.Is("noexcept")) {
      if (i + 1 < end && At(i + 1).Is("(")) {
        i = SkipGroup(i + 1, end);
        continue;
      }
    } else if (token.Is("operator") && seen.parameters == 0 && !seen.assigned) {
      size_t open = i + 1;
      if (open + 1 < end && At(open).Is("(") && At(open + 1).Is(")")) open += 2;
      while (open < end && !At(open).Is("(") && !At(open).Is(";")) seen.name += At(open++).text;
      if (open >= end || !At(open).Is("(")) Fail(i, "an operator");
      seen.name = "operator" + seen.name;
      seen.parameters = open;
      i = SkipGroup(open, end);
      continue;
    } else if (token.Is("=")) {
      seen.assigned = true;
    } else if (token.Is("(")) {
      if (seen.parameters == 0 && !seen.assigned && i > begin) {
        seen.parameters = i;
        seen.name = std::string(At(named != 0 && At(i - 1).Is(">") ? named : i - 1).text);
      }
      i = SkipGroup(i, end);
      const bool macro = seen.parameters == begin + 1 && i < end && !At(i).Is("{") && !At(i).Is(";");
      if (macro) {
        seen.for_both = true;
        seen.end = i;
        return seen;
      }
      continue;
    } else if (token.Is("[")) {
      i = SkipGroup(i, end);
      continue;
    } else if (token.Is("<") && !seen.assigned) {
      named = i - 1;
      i = SkipAngles(i, end);
      continue;
    } else if (token.Is("{")) {
      const size_t close = SkipGroup(i, end);
      if (seen.parameters != 0 && !seen.assigned) {
        seen.body = i;
        seen.end = close;
        return seen;
      }
      i = close;  // a type's body or an initialiser: the declaration ends with ";"
      continue;
    } else if (token.Is(";")) {
      seen.end = i + 1;
      return seen;
    }
    ++i;
  }
  Fail(begin, "a declaration that does not end");
}

}  // namespace kgrpo::cuda_source
