// Loads and stores float4 or float2 in kernels, and in loops of kernels, that do the same work for each element.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coder_offline/plain/elements.h"
#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

using cuda_source::Token;

// The accesses of one array in the work, at base[index].
struct Array {
  std::string name, base;  // base: "x", or "x + row * cols" for x[row * cols + i]
  std::string lanes;       // the variable of the vector
  bool read = false, written = false, written_always = false, elsewhere = false;
};

// A pointer of a kernel: a parameter, a local variable or a shared array.
struct Pointer {
  std::string type;  // of the elements; "" for a shared array
  bool constant = false;
  std::set<std::string> roots;  // the parameters and arrays that it may point into
};
using Pointers = std::map<std::string, Pointer, std::less<>>;

bool Assigns(const PlainSource& source, size_t i, bool* reads) {
  if (source.Follows(i, {"="}) && !source.Follows(i, {"=", "="})) {
    *reads = false;
    return true;
  }
  *reads = true;
  for (const char* sign : {"+", "-", "*", "/"}) {
    if (source.Follows(i, {sign, "="}) || ((*sign == '+' || *sign == '-') && source.Follows(i, {sign, sign})))
      return true;
  }
  return false;
}

// The offset of the access x[...] at token `i` from its element at `index`: "" for x[i], "row * cols" for
// x[row * cols + i]. nullopt for any other access.
std::optional<std::string> OffsetOf(const PlainSource& source, size_t i, const std::string& index) {
  if (!source.Follows(i + 1, {"["})) return std::nullopt;
  Range inside{i + 2, source.Close(i + 1)};
  const size_t first = source.Follows(inside.begin, {"(", index, ")"}) ? 3 : 1;
  const size_t last = source.Follows(inside.end - 3, {"(", index, ")"}) ? 3 : 1;
  const bool begins = first == 3 || source.At(inside.begin).Is(index);
  const bool ends = last == 3 || source.At(inside.end - 1).Is(index);
  if (begins && inside.begin + first == inside.end) return "";
  if (ends && source.At(inside.end - last - 1).Is("+")) {
    inside.end -= last + 1;
  } else if (begins && source.At(inside.begin + first).Is("+")) {
    inside.begin += first + 1;
  } else {
    return std::nullopt;
  }
  for (size_t k = inside.begin; k < inside.end; ++k) {
    const Token& token = source.At(k);
    const bool sum = token.Is("+") || token.Is("*") || token.Is("-") || token.Is("(") || token.Is(")") || token.Is(".");
    if (token.Is(index) || !(sum || source.IsName(k) || source.Value(k))) return std::nullopt;
  }
  return source.Text(inside);
}

Pointers PointersOf(const PlainSource& source, const PlainFunction& kernel) {
  Pointers pointers;
  for (const PlainParameter& parameter : kernel.parameters) {
    if (parameter.pointer) pointers[parameter.name] = {parameter.type, parameter.constant, {parameter.name}};
  }
  const Range body = kernel.body;
  for (size_t i = body.begin + 1; i < body.end; ++i) {
    const std::string name(source.At(i).text);
    if (source.At(i).Is("__shared__")) {
      size_t k = i;
      while (k + 1 < body.end && !source.Follows(k + 1, {"["}) && !source.At(k).Is(";")) ++k;
      pointers[std::string(source.At(k).text)].roots = {std::string(source.At(k).text)};
    } else if (source.IsName(i) && source.Follows(i + 1, {"="}) && !source.Follows(i + 1, {"=", "="})) {
      size_t star = i - 1;
      while (source.At(star).Is("__restrict__") || source.At(star).Is("const")) --star;
      const bool declared = source.At(star).Is("*") && source.IsName(star - 1);
      if (declared && !pointers.contains(name)) pointers[name].type = source.At(star - 1).text;
      if (!pointers.contains(name) || source.At(i - 1).Is("]")) continue;
      Pointer& pointer = pointers[name];
      pointer.constant = declared && star >= 2 && source.At(star - 2).Is("const");
      for (size_t k = i + 2; k < body.end && !source.At(k).Is(";"); ++k) {
        const auto from = pointers.find(source.At(k).text);
        if (from != pointers.end()) pointer.roots.insert(from->second.roots.begin(), from->second.roots.end());
      }
    }
  }
  return pointers;
}

// The pointer that the token at `i` names; end() for other names, and for members such as blockIdx.x.
Pointers::const_iterator PointerAt(const PlainSource& source, const Pointers& pointers, size_t i) {
  return source.At(i - 1).Is(".") || source.At(i - 1).Is("->") ? pointers.end() : pointers.find(source.At(i).text);
}

// True if the token at `i` is where a local pointer is set: there other pointers are only named.
bool SetsPointer(const PlainSource& source, const Pointers& pointers, size_t i, size_t begin) {
  while (i > begin && !source.At(i - 1).Is(";") && !source.At(i - 1).Is("{") && !source.At(i - 1).Is("}")) --i;
  while (source.IsName(i) || source.At(i).Is("*")) {
    const bool set = source.Follows(i + 1, {"="}) && pointers.contains(source.At(i).text);
    if (set) return true;
    ++i;
  }
  return false;
}

// The reason why the loop's threads may not take other elements than they do: what one of them writes in the loop is
// used outside of it, or the other way round, and nothing says that barriers are between. Empty if they may.
std::string WhyNotOthers(const PlainSource& source, const PlainFunction& kernel, const SharedLoop& loop,
                         const Pointers& pointers) {
  const auto shares = [](const Pointer& a, const Pointer& b) {
    return std::any_of(a.roots.begin(), a.roots.end(), [&](const std::string& root) { return b.roots.contains(root); });
  };
  const auto writes = [&](size_t i, const Pointer& pointer) {
    if (!source.Follows(i + 1, {"["})) return !pointer.constant;
    return source.Written(i, source.Close(i + 1) + 1);
  };
  const Range work = loop.elements.work;
  for (size_t i = work.begin; i < work.end; ++i) {
    const auto inside = PointerAt(source, pointers, i);
    if (inside == pointers.end() && source.IsName(i) && source.Follows(i + 1, {"["}) &&
        source.Has({i + 2, source.Close(i + 1)}, loop.elements.index))
      return kernel.name + " uses " + std::string(source.At(i).text) + ", which may be memory that threads share";
    if (inside == pointers.end()) continue;
    const std::string& name = inside->first;
    if (!source.Follows(i + 1, {"["})) return kernel.name + " uses " + name + " as a whole in its loop";
    if (!source.Has({i + 2, source.Close(i + 1)}, loop.elements.index) && !writes(i, inside->second)) continue;
    for (size_t k = kernel.body.begin; k < kernel.body.end; ++k) {
      if (loop.tokens.Holds(k)) continue;
      const auto outside = PointerAt(source, pointers, k);
      if (outside == pointers.end() || !shares(inside->second, outside->second)) continue;
      if (SetsPointer(source, pointers, k, kernel.body.begin)) continue;
      const bool declares = source.Follows(k + 1, {"["}) && source.IsName(k - 1);  // __shared__ float s[32]
      if (!declares && (writes(i, inside->second) || writes(k, outside->second)))
        return kernel.name + " uses " + name + " outside of the loop too";
    }
  }
  for (size_t i = work.begin; i < work.end; ++i) {  // the loop's bounds and offsets must stay
    const bool bound =
        source.IsName(i) && source.Written(i, i + 1) && !source.IsName(i - 1) && !source.At(i - 1).Is(".");
    if (!bound) continue;
    const std::string name(source.At(i).text);
    for (size_t k = loop.tokens.begin; k < loop.tokens.end; ++k) {
      const bool in_index = source.At(k).Is("[") && source.Has({k + 1, source.Close(k)}, name);
      if ((k < work.begin && source.At(k).Is(name)) || in_index)
        return kernel.name + " changes " + name + " in its loop";
    }
  }
  return "";
}

// `offsets`: x[offset + i] is an element of its own, too; where it begins is then checked at run time.
std::optional<std::vector<Array>> ArraysOf(const PlainSource& source, const PlainFunction& kernel,
                                           const Elements& elements, const Pointers& pointers, bool offsets,
                                           std::string* why) {
  std::vector<Array> arrays;
  for (const auto& [name, pointer] : pointers) {
    if (pointer.type.empty()) continue;  // of shared memory
    Array array;
    array.name = name;
    std::optional<std::string> offset;
    int depth = 0;
    for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
      if (source.At(i).Is("{")) ++depth;
      if (source.At(i).Is("}")) --depth;
      if (!source.At(i).Is(name) || source.At(i - 1).Is(".")) continue;
      const auto here = OffsetOf(source, i, elements.index);
      if (!here || (offset && *offset != *here) || (!offsets && !here->empty())) {
        array.elsewhere = true;
        continue;
      }
      offset = here;
      const bool address = i > 0 && source.At(i - 1).Is("&") && !source.Follows(i - 3, {"__ldg", "(", "&"});
      const bool before = i > 1 && (source.Follows(i - 2, {"+", "+"}) || source.Follows(i - 2, {"-", "-"}));
      if (address || before || (source.Written(i, source.Close(i + 1) + 1) && source.At(i - 1).Is("("))) {
        *why = kernel.name + " takes the address of " + name + "'s element";
        return std::nullopt;
      }
      bool reads = true;
      if (Assigns(source, source.Close(i + 1) + 1, &reads)) {
        array.written = true;
        const bool statement = i == elements.work.begin || source.At(i - 1).Is(";") || source.At(i - 1).Is("{") ||
                               source.At(i - 1).Is("}");
        array.written_always = array.written_always || (!reads && depth == 0 && statement);
        array.read = array.read || reads;
      } else {
        array.read = true;
      }
    }
    if (array.elsewhere && (array.written || !pointer.constant)) {
      *why = kernel.name + " touches " + name + " at other places than its own element";
      return std::nullopt;
    }
    if (array.elsewhere || (!array.read && !array.written)) continue;
    if (pointer.type != "float") {
      *why = name + " of " + kernel.name + " is not float";
      return std::nullopt;
    }
    if (array.written && !array.written_always) array.read = true;  // elements not written must keep their value
    array.base = offset->empty() ? name : name + " + " + *offset;
    arrays.push_back(array);
  }
  if (arrays.empty()) *why = kernel.name + kNotElements;
  return arrays.empty() ? std::nullopt : std::optional(arrays);
}

// The array whose own element is accessed at token `i`; null if there is none.
const Array* ArrayAt(const PlainSource& source, const Elements& elements, const std::vector<Array>& arrays, size_t i) {
  for (const Array& array : arrays) {
    if (source.At(i).Is(array.name) && !source.At(i - 1).Is(".") && OffsetOf(source, i, elements.index)) return &array;
  }
  return nullptr;
}

// The text of the work for component `lane` of the vectors: x[i] becomes x_4.x.
std::string LaneText(const PlainSource& source, const Elements& elements, const std::vector<Array>& arrays, int lane) {
  std::string text;
  size_t at = source.At(elements.work.begin).begin;
  const std::string all = source.Text(elements.work);
  const size_t base = at;
  const auto copy_to = [&](size_t end) {
    text += all.substr(at - base, end - at);
    at = end;
  };
  for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
    const Array* array = ArrayAt(source, elements, arrays, i);
    if (array == nullptr) continue;
    const size_t close = source.Close(i + 1);
    const bool ldg = i >= 3 && source.Follows(i - 3, {"__ldg", "(", "&"}) && source.Follows(close + 1, {")"});
    copy_to(source.At(ldg ? i - 3 : i).begin);
    text += array->lanes + "." + "xyzw"[lane];
    at = source.At(ldg ? close + 1 : close).end;
    i = close;
  }
  copy_to(base + all.size());
  return text;
}

bool UsesIndexOtherwise(const PlainSource& source, const Elements& elements, const std::vector<Array>& arrays) {
  for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
    if (ArrayAt(source, elements, arrays, i) != nullptr) {
      i = source.Close(i + 1);
    } else if (source.At(i).Is(elements.index)) {
      return true;
    }
  }
  return false;
}

// `text` with every line after the first indented by two more blanks per level.
std::string Deeper(const std::string& text, int levels) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result.append(2 * static_cast<size_t>(levels), ' ');
  }
  return result;
}

// The work on the vectors that begin at element `first`.
std::string VectorWork(const PlainSource& source, const Elements& elements, std::vector<Array> arrays, int width,
                       const std::string& first, const std::string& pad) {
  const std::string vector = "float" + std::to_string(width), suffix = source.Fresh("_" + std::to_string(width));
  std::string text;
  for (Array& array : arrays) {
    array.lanes = array.name + suffix;
    text += pad + (array.written ? "" : "const ") + vector + " " + array.lanes;
    if (array.read) text += " = *reinterpret_cast<const " + vector + "*>(" + array.base + " + " + first + ")";
    text += ";\n";
  }
  const bool index = UsesIndexOtherwise(source, elements, arrays);
  for (int lane = 0; lane < width; ++lane) {
    text += pad + "{\n";
    if (index) {
      text += pad + "  const " + elements.type + " " + elements.index + " = " + first +
              (lane > 0 ? " + " + std::to_string(lane) : "") + ";\n";
    }
    text += pad + "  " + Deeper(LaneText(source, elements, arrays, lane), 1) + "\n" + pad + "}\n";
  }
  for (const Array& array : arrays) {
    if (array.written)
      text += pad + "*reinterpret_cast<" + vector + "*>(" + array.base + " + " + first + ") = " + array.lanes + ";\n";
  }
  return text;
}

// The body of a kernel with one thread an element: a thread a vector, the tail one by one.
std::string VectorBody(const PlainSource& source, const Elements& elements, const std::vector<Array>& arrays,
                       int width) {
  const std::string first = source.Fresh("first");
  std::string text = "\n  const " + elements.type + " " + first + " = (blockIdx.x * (" + elements.type +
                     ")blockDim.x + threadIdx.x) * " + std::to_string(width) + ";\n";
  text += "  if (" + first + " + " + std::to_string(width - 1) + " < " + elements.limit + ") {\n" +
          VectorWork(source, elements, arrays, width, first, "    ") + "  } else {\n    for (" + elements.type + " " +
          elements.index + " = " + first + "; " + elements.index + " < " + elements.limit + "; ++" + elements.index +
          ") {\n      " + Deeper(source.Text(elements.work), 1) + "\n    }\n  }\n";
  return text;
}

// The loop over vectors where the arrays begin at multiples of their size, and the rest one by one. Each thread must
// get a vector: a thread without any element may leave its partial result as no kernel expects it.
std::string VectorLoop(const PlainSource& source, const SharedLoop& loop, const std::vector<Array>& arrays, int width) {
  const Elements& elements = loop.elements;
  const std::string first = source.Fresh("first"), done = source.Fresh("done"), w = std::to_string(width);
  const std::string pad = source.Indentation(loop.tokens.begin), &type = elements.type;
  std::string addresses;
  for (const Array& array : arrays) addresses += (addresses.empty() ? "(size_t)(" : " | (size_t)(") + array.base + ")";
  std::string text = "{\n" + pad + "  " + type + " " + done + " = 0;\n" + pad + "  if ((" + addresses + ") % " +
                     std::to_string(4 * width) + " == 0 && " + elements.limit + " >= (" + type + ")(" + loop.step +
                     ") * " + w + ") {\n";
  text += pad + "    " + done + " = (" + elements.limit + ") / " + w + " * " + w + ";\n";
  text += pad + "    for (" + type + " " + first + " = (" + loop.start + ") * " + w + "; " + first + " < " + done +
          "; " + first + " += (" + loop.step + ") * " + w + ") {\n" +
          VectorWork(source, elements, arrays, width, first, pad + "      ") + pad + "    }\n" + pad + "  }\n";
  text += pad + "  for (" + type + " " + elements.index + " = " + done + " + " + loop.start + "; " + elements.index +
          " < " + elements.limit + "; " + elements.index + " += " + loop.step + ") {\n" + pad + "    " +
          Deeper(source.Text(elements.work), 1) + "\n" + pad + "  }\n" + pad + "}";
  return text;
}

}  // namespace

PlainResult VectorElements(const PlainSource& source, int width) {
  width = width == 2 ? 2 : 4;
  std::vector<Edit> edits;
  std::string why;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global) continue;
    const auto elements = ReadElements(source, kernel);
    const auto launches = source.LaunchesOf(kernel);
    Pointers pointers = PointersOf(source, kernel);
    if (elements && !elements->strides) {
      std::string reason = WhyNotPlain(source, kernel, *elements);
      std::erase_if(pointers, [&](const auto& pointer) { return pointer.second.roots != std::set{pointer.first}; });
      std::optional<std::vector<Array>> arrays;
      if (reason.empty()) arrays = ArraysOf(source, kernel, *elements, pointers, false, &reason);
      for (const PlainLaunch* launch : launches) {
        if (!reason.empty()) break;
        reason = WhyNotGrid(source, *launch);
        for (size_t i = 0; i < kernel.parameters.size() && i < launch->arguments.size(); ++i) {
          if (kernel.parameters[i].pointer && source.PointerName(launch->arguments[i]).empty())
            reason =
                kernel.name + " is launched on a part of an array, whose address may not be a multiple of 16 bytes";
        }
      }
      if (!reason.empty()) {
        why = reason;
        continue;
      }
      edits.push_back({source.At(kernel.body.begin - 1).end, source.At(kernel.body.end).begin,
                       VectorBody(source, *elements, *arrays, width)});
      for (const PlainLaunch* launch : launches) {
        edits.push_back(
            {source.At(launch->grid.begin).begin, source.At(launch->grid.end - 1).end,
             "((" + source.Text(launch->grid) + ") + " + std::to_string(width - 1) + ") / " + std::to_string(width)});
      }
      continue;
    }
    std::string reason = kernel.name + kNotElements;
    for (const SharedLoop& loop : ReadSharedLoops(source, kernel, &reason)) {
      std::string why_not = source.MayAlias(kernel) ? "the pointers of " + kernel.name + " may name the same memory"
                                                    : WhyNotPlain(source, kernel, loop.elements, true);
      if (why_not.empty()) why_not = WhyNotOthers(source, kernel, loop, pointers);
      std::optional<std::vector<Array>> arrays;
      if (why_not.empty()) arrays = ArraysOf(source, kernel, loop.elements, pointers, true, &why_not);
      if (!arrays) {
        reason = why_not;
        continue;
      }
      size_t begin = loop.tokens.begin;
      if (source.At(begin - 1).kind == Token::Kind::kDirective) --begin;  // its #pragma unroll
      edits.push_back(
          {source.At(begin).begin, source.At(loop.tokens.end - 1).end, VectorLoop(source, loop, *arrays, width)});
    }
    why = reason;
  }
  if (edits.empty()) return {"", why};
  return {source.Edited(edits), "float" + std::to_string(width) + " loads and stores, the tail one by one"};
}

}  // namespace kgrpo::coder_offline
