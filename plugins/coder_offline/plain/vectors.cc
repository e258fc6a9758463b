// Loads and stores float4 or float2 in kernels that do the same work for each element.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "coder_offline/plain/elements.h"
#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

// The accesses of one array in the work.
struct Array {
  const PlainParameter* parameter;
  bool read = false, written = false, written_always = false, elsewhere = false;
};

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

std::optional<std::vector<Array>> ArraysOf(const PlainSource& source, const PlainFunction& kernel,
                                           const Elements& elements, std::string* why) {
  std::vector<Array> arrays;
  for (const PlainParameter& parameter : kernel.parameters) {
    if (!parameter.pointer) continue;
    Array array{&parameter};
    int depth = 0;
    for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
      if (source.At(i).Is("{")) ++depth;
      if (source.At(i).Is("}")) --depth;
      if (!source.At(i).Is(parameter.name)) continue;
      if (!source.Follows(i + 1, {"[", elements.index, "]"})) {
        array.elsewhere = true;
        continue;
      }
      const bool address = i > 0 && source.At(i - 1).Is("&") && !source.Follows(i - 3, {"__ldg", "(", "&"});
      const bool before = i > 1 && (source.Follows(i - 2, {"+", "+"}) || source.Follows(i - 2, {"-", "-"}));
      if (address || before) {
        *why = kernel.name + " takes the address of " + parameter.name + "'s element";
        return std::nullopt;
      }
      bool reads = true;
      if (Assigns(source, i + 4, &reads)) {
        array.written = true;
        const bool statement = i == elements.work.begin || source.At(i - 1).Is(";") || source.At(i - 1).Is("{") ||
                               source.At(i - 1).Is("}");
        array.written_always = array.written_always || (!reads && depth == 0 && statement);
        array.read = array.read || reads;
      } else {
        array.read = true;
      }
    }
    if (array.elsewhere && (array.written || !parameter.constant)) {
      *why = kernel.name + " touches " + parameter.name + " at other places than its own element";
      return std::nullopt;
    }
    if (array.elsewhere || (!array.read && !array.written)) continue;
    if (parameter.type != "float") {
      *why = parameter.name + " of " + kernel.name + " is not float";
      return std::nullopt;
    }
    if (array.written && !array.written_always) array.read = true;  // elements not written must keep their value
    arrays.push_back(array);
  }
  if (arrays.empty()) *why = kernel.name + kNotElements;
  return arrays.empty() ? std::nullopt : std::optional(arrays);
}

// The text of the work for component `lane` of the vectors: x[i] becomes x_4.x.
std::string LaneText(const PlainSource& source, const Elements& elements, const std::vector<Array>& arrays, int lane,
                     const std::string& suffix) {
  std::string text;
  size_t at = source.At(elements.work.begin).begin;
  const std::string all = source.Text(elements.work);
  const size_t base = at;
  const auto copy_to = [&](size_t end) {
    text += all.substr(at - base, end - at);
    at = end;
  };
  for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
    const auto array =
        std::find_if(arrays.begin(), arrays.end(), [&](const Array& a) { return source.At(i).Is(a.parameter->name); });
    if (array == arrays.end() || !source.Follows(i + 1, {"[", elements.index, "]"})) continue;
    const bool ldg = i >= 3 && source.Follows(i - 3, {"__ldg", "(", "&"}) && source.Follows(i + 4, {")"});
    copy_to(source.At(ldg ? i - 3 : i).begin);
    text += array->parameter->name + suffix + "." + "xyzw"[lane];
    at = source.At(ldg ? i + 4 : i + 3).end;
  }
  copy_to(base + all.size());
  return text;
}

bool UsesIndexOtherwise(const PlainSource& source, const Elements& elements, const std::vector<Array>& arrays) {
  for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
    if (!source.At(i).Is(elements.index)) continue;
    const bool plain = i >= 2 && source.At(i - 1).Is("[") && source.At(i + 1).Is("]") &&
                       std::any_of(arrays.begin(), arrays.end(),
                                   [&](const Array& a) { return source.At(i - 2).Is(a.parameter->name); });
    if (!plain) return true;
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

std::string VectorBody(const PlainSource& source, const Elements& elements, const std::vector<Array>& arrays,
                       int width) {
  const std::string vector = "float" + std::to_string(width), suffix = source.Fresh("_" + std::to_string(width));
  const std::string first = source.Fresh("first");
  const std::string base = "(blockIdx.x * (" + elements.type + ")blockDim.x + threadIdx.x) * " + std::to_string(width);
  const std::string pad = elements.strides ? "    " : "  ";
  std::string text = "\n";
  if (elements.strides) {
    text += "  for (" + elements.type + " " + first + " = " + base + "; " + first + " < " + elements.limit + "; " +
            first + " += (" + elements.type + ")(blockDim.x * gridDim.x) * " + std::to_string(width) + ") {\n";
  } else {
    text += "  const " + elements.type + " " + first + " = " + base + ";\n";
  }
  text += pad + "if (" + first + " + " + std::to_string(width - 1) + " < " + elements.limit + ") {\n";
  for (const Array& array : arrays) {
    const std::string& name = array.parameter->name;
    text += pad + "  " + (array.written ? "" : "const ") + vector + " " + name + suffix;
    if (array.read) text += " = *reinterpret_cast<const " + vector + "*>(" + name + " + " + first + ")";
    text += ";\n";
  }
  const bool index = UsesIndexOtherwise(source, elements, arrays);
  for (int lane = 0; lane < width; ++lane) {
    text += pad + "  {\n";
    if (index) {
      text += pad + "    const " + elements.type + " " + elements.index + " = " + first +
              (lane > 0 ? " + " + std::to_string(lane) : "") + ";\n";
    }
    text += pad + "    " + Deeper(LaneText(source, elements, arrays, lane, suffix), 1) + "\n" + pad + "  }\n";
  }
  for (const Array& array : arrays) {
    const std::string& name = array.parameter->name;
    if (array.written)
      text += pad + "  *reinterpret_cast<" + vector + "*>(" + name + " + " + first + ") = " + name + suffix + ";\n";
  }
  text += pad + "} else {\n" + pad + "  for (" + elements.type + " " + elements.index + " = " + first + "; " +
          elements.index + " < " + elements.limit + "; ++" + elements.index + ") {\n" + pad + "    " +
          Deeper(source.Text(elements.work), 1) + "\n" + pad + "  }\n" + pad + "}\n";
  return text + (elements.strides ? "  }\n" : "");
}

}  // namespace

PlainResult VectorElements(const PlainSource& source, int width) {
  width = width == 2 ? 2 : 4;
  std::vector<Edit> edits;
  std::string why;
  int kernels = 0;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global) continue;
    const auto elements = ReadElements(source, kernel);
    std::string reason = elements ? WhyNotPlain(source, kernel, *elements) : kernel.name + kNotElements;
    std::optional<std::vector<Array>> arrays;
    if (reason.empty()) arrays = ArraysOf(source, kernel, *elements, &reason);
    const auto launches = source.LaunchesOf(kernel);
    if (launches.empty() && reason.empty()) reason = kernel.name + " is not launched";
    for (const PlainLaunch* launch : launches) {
      if (!reason.empty()) break;
      if (!elements->strides) reason = WhyNotGrid(source, *launch);
      for (size_t i = 0; i < kernel.parameters.size() && i < launch->arguments.size(); ++i) {
        if (kernel.parameters[i].pointer && source.PointerName(launch->arguments[i]).empty())
          reason = kernel.name + " is launched on a part of an array, whose address may not be a multiple of 16 bytes";
      }
    }
    if (!reason.empty()) {
      why = reason;
      continue;
    }
    edits.push_back({source.At(kernel.body.begin - 1).end, source.At(kernel.body.end).begin,
                     VectorBody(source, *elements, *arrays, width)});
    for (const PlainLaunch* launch : launches) {
      if (elements->strides) continue;
      const std::string w = std::to_string(width), more = std::to_string(width - 1);
      edits.push_back({source.At(launch->grid.begin).begin, source.At(launch->grid.end - 1).end,
                       "((" + source.Text(launch->grid) + ") + " + more + ") / " + w});
    }
    ++kernels;
  }
  if (kernels == 0) return {"", why};
  return {source.Edited(edits), "float" + std::to_string(width) + " loads and stores, the tail one by one"};
}

}  // namespace kgrpo::coder_offline
