// Techniques on a kernel's memory accesses: read-only pointers and 32-bit indices.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

// The first token of the statement that holds token `i`.
size_t StatementBegin(const PlainSource& source, size_t i, size_t first) {
  while (i > first && !source.At(i - 1).Is(";") && !source.At(i - 1).Is("{") && !source.At(i - 1).Is("}")) --i;
  return i;
}

bool LoadsByLdg(const std::string& type) {
  return IsOneOf(type, {"float", "double", "int", "unsigned", "unsigned int", "long long", "unsigned char",
                        "unsigned long long", "float2", "float4", "int2", "int4", "int32_t", "uint32_t"});
}

// The uses of a pointer in a function body. read_only is false if one of them may write an element.
struct Uses {
  bool read_only = true;
  std::vector<Range> elements;  // x[...]
};

Uses UsesOf(const PlainSource& source, const PlainFunction& function, const PlainParameter& pointer) {
  Uses uses;
  for (size_t i = function.body.begin; i < function.body.end; ++i) {
    if (!source.At(i).Is(pointer.name) || (i > 0 && (source.At(i - 1).Is(".") || source.At(i - 1).Is("->")))) continue;
    if (i + 1 < function.body.end && source.At(i + 1).Is("[")) {
      const size_t end = source.Close(i + 1) + 1;
      if (source.Written(i, end)) {
        uses.read_only = uses.read_only && pointer.constant;  // a const one is not assigned: only its address is taken
      } else {
        uses.elements.push_back({i, end});
      }
      continue;
    }
    const size_t begin = StatementBegin(source, i, function.body.begin);
    const bool local = source.At(begin).Is("const") && source.Has({begin, i}, "*");
    if (!local && !pointer.constant) uses.read_only = false;
  }
  return uses;
}

struct Wide {
  size_t begin, end;
  bool is_unsigned;
};

// The tokens of the 64-bit integer type that begins at token `i`; nullopt if there is none.
std::optional<Wide> WideType(const PlainSource& source, size_t i) {
  const std::string_view word = source.At(i).text;
  if (word == "std" && source.Follows(i + 1, {"::"}) && i + 2 < source.size() && !source.At(i + 2).Is("std")) {
    auto wide = WideType(source, i + 2);
    if (wide) wide->begin = i;
    return wide;
  }
  if (word == "long" && source.Follows(i + 1, {"double"})) return std::nullopt;
  if (word == "size_t" || word == "uint64_t") return Wide{i, i + 1, true};
  if (word == "int64_t" || word == "ptrdiff_t" || word == "ssize_t") return Wide{i, i + 1, false};
  if (word != "long" && !(word == "unsigned" && source.Follows(i + 1, {"long"}))) return std::nullopt;
  size_t end = i + (word == "unsigned" ? 2 : 1);
  if (source.Follows(end, {"long"})) ++end;
  if (source.Follows(end, {"int"})) ++end;
  return Wide{i, end, word == "unsigned"};
}

// True if the kernel's parameter `index` is given an int parameter of the launching function in every launch.
bool GivenInt(const PlainSource& source, const PlainFunction& kernel, size_t index) {
  for (const PlainLaunch* launch : source.LaunchesOf(kernel)) {
    if (index >= launch->arguments.size()) return false;
    bool is_int = false;
    for (const PlainParameter& parameter : source.functions()[launch->host].parameters) {
      is_int = is_int || (parameter.type == "int" && !parameter.pointer &&
                          source.Text(launch->arguments[index]) == parameter.name);
    }
    if (!is_int) return false;
  }
  return kernel.global;
}

// The reason why the function's 64-bit integers may be more than indices; empty if they are indices only.
std::string WhyNotIndices(const PlainSource& source, const PlainFunction& function) {
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const PlainParameter& parameter = function.parameters[i];
    const bool wide = WideType(source, parameter.tokens.begin + (parameter.constant ? 1 : 0)).has_value();
    if (parameter.pointer && parameter.type != "float" && parameter.type != "double" &&
        !(parameter.constant && parameter.type == "int"))
      return "the data of " + function.name + " are whole numbers themselves";
    if (wide && !parameter.pointer && !GivenInt(source, function, i))
      return function.name + " takes " + parameter.name + " in 64 bits, so it may be beyond 2^31";
  }
  for (size_t i = function.body.begin; i < function.body.end; ++i) {
    if (source.At(i).Is("^") || source.At(i).Is("~") || source.Follows(i, {"<", "<"}))
      return function.name + " works on bits, so its 64-bit numbers may not be indices";
    if (source.At(i).kind == cuda_source::Token::Kind::kNumber &&
        source.At(i).text.find_first_of("lL") != std::string_view::npos)
      return function.name + " has a constant of 64 bits";
    if (source.Follows(i, {"+", "="})) {
      size_t k = i;
      while (k < function.body.end && !source.At(k).Is(";") && !source.At(k).Is("[")) ++k;
      const bool ints = std::any_of(function.parameters.begin(), function.parameters.end(),
                                    [](const PlainParameter& p) { return p.pointer && p.type == "int"; });
      if (ints && k < function.body.end && source.At(k).Is("["))
        return function.name + " may sum whole numbers in 64 bits";
    }
  }
  return "";
}

}  // namespace

PlainResult ReadOnlyPointers(const PlainSource& source) {
  std::vector<Edit> edits;
  std::string aliased;
  int pointers = 0;
  std::set<size_t> loads;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global) continue;
    if (source.MayAlias(kernel)) {
      aliased = kernel.name;
      continue;
    }
    for (const PlainParameter& parameter : kernel.parameters) {
      if (!parameter.pointer || parameter.type.find("volatile") != std::string::npos) continue;
      const Uses uses = UsesOf(source, kernel, parameter);
      const bool read = uses.read_only;
      if (read && !parameter.constant) {
        const size_t at = source.At(parameter.tokens.begin).begin;
        edits.push_back({at, at, "const "});
      }
      if (!parameter.restrict) {
        const size_t at = source.At(parameter.tokens.end - 1).begin;
        edits.push_back({at, at, "__restrict__ "});
        ++pointers;
      }
      if (!read || !LoadsByLdg(parameter.type)) continue;
      for (const Range& element : uses.elements) {
        if (element.begin >= 2 && source.Follows(element.begin - 2, {"(", "&"})) continue;  // __ldg(&x[i])
        edits.push_back({source.At(element.begin).begin, source.At(element.begin).begin, "__ldg(&"});
        edits.push_back({source.At(element.end - 1).end, source.At(element.end - 1).end, ")"});
        loads.insert(element.begin);
      }
    }
  }
  if (edits.empty()) {
    if (!aliased.empty()) return {"", "the pointers of " + aliased + " may name the same memory"};
    return {"", "already applied: pointers marked __restrict__, inputs read through the read-only path"};
  }
  std::string words = std::to_string(pointers) + " pointers marked __restrict__, " + std::to_string(loads.size()) +
                      " loads through the read-only path";
  if (!aliased.empty()) words += " (not in " + aliased + ", whose pointers may name the same memory)";
  return {source.Edited(edits), words};
}

PlainResult NarrowIndices(const PlainSource& source) {
  std::vector<Edit> edits;
  std::string why;
  for (const PlainFunction& function : source.functions()) {
    if (!function.global && !function.device) continue;
    std::vector<Edit> here;
    const size_t end = function.body.end;
    for (size_t i = function.name_token; i < end; ++i) {
      const auto wide = WideType(source, i);
      if (!wide) continue;
      const bool pointer = source.Follows(wide->end, {"*"}) || source.Follows(wide->end, {"&"});
      const bool size = i >= 2 && source.Follows(i - 2, {"sizeof", "("});
      if (!pointer && !size) {
        here.push_back({source.At(wide->begin).begin, source.At(wide->end - 1).end, "int"});
      }
      i = wide->end - 1;
    }
    if (here.empty()) continue;
    if (const std::string reason = WhyNotIndices(source, function); !reason.empty()) {
      why = reason;
      continue;
    }
    edits.insert(edits.end(), here.begin(), here.end());
  }
  if (edits.empty()) return {"", why.empty() ? "its kernels have no 64-bit indices" : why};
  return {source.Edited(edits),
          std::to_string(edits.size()) + " 64-bit indices in 32 bits, for arrays below 2^31 elements"};
}

}  // namespace kgrpo::coder_offline
