// Kernels that do the same for each element: a grid-stride loop, and float4 or float2 at once.
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

constexpr int kBlocks = 1056;  // of a grid that strides: eight for each of an H100's 132 multiprocessors

// A kernel of one of the forms that people write:
//   int i = blockIdx.x * blockDim.x + threadIdx.x;  if (i < n) { work }      or   if (i >= n) return;  work
//   for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) { work }
struct Elements {
  std::string type, index, limit;
  bool strides = false;
  Range work;  // without its braces
};

bool IsGlobalIndex(const std::string& text) {
  for (const char* form : {"blockIdx.x*blockDim.x+threadIdx.x", "blockDim.x*blockIdx.x+threadIdx.x",
                           "threadIdx.x+blockIdx.x*blockDim.x", "threadIdx.x+blockDim.x*blockIdx.x"}) {
    if (text == form) return true;
  }
  return false;
}

bool IsStride(const std::string& text) {
  return text == "blockDim.x*gridDim.x" || text == "gridDim.x*blockDim.x";
}

// `[const] int i = <global index>` in the tokens of a statement.
bool ReadIndex(const PlainSource& source, Range statement, Elements* elements) {
  size_t i = statement.begin;
  if (source.At(i).Is("const")) ++i;
  const size_t type = i;
  while (i < statement.end && !source.At(i).Is("=")) ++i;
  if (i >= statement.end || i < type + 2) return false;
  elements->type = source.Text({type, i - 1});
  elements->index = source.At(i - 1).text;
  for (const char* known : {"int", "unsigned", "unsigned int", "size_t", "long long", "int64_t"}) {
    if (elements->type == known) return IsGlobalIndex(source.Plain({i + 1, statement.end}));
  }
  return false;
}

// `i < n`, with n of names, whole numbers and + - * /.
bool ReadLimit(const PlainSource& source, Range condition, const char* sign, Elements* elements) {
  size_t i = condition.begin;
  if (!source.At(i++).Is(elements->index)) return false;
  for (const char* c = sign; *c != '\0'; ++c, ++i) {
    if (source.At(i).text != std::string(1, *c)) return false;
  }
  const Range limit{i, condition.end};
  if (limit.begin >= limit.end || source.Has(limit, elements->index)) return false;
  for (size_t k = limit.begin; k < limit.end; ++k) {
    const bool arithmetic = source.IsName(k) || source.Value(k) || source.At(k).Is("*") || source.At(k).Is("+") ||
                            source.At(k).Is("-") || source.At(k).Is("/") || source.At(k).Is("(") || source.At(k).Is(")");
    if (!arithmetic) return false;
  }
  elements->limit = source.Text(limit);
  return true;
}

// The statement at `i` as a whole, and its inside where it is a block.
bool ReadWork(const PlainSource& source, size_t i, size_t end, Elements* elements) {
  if (i >= end) return false;
  if (source.At(i).Is("{")) {
    elements->work = {i + 1, source.Close(i)};
    return source.Close(i) + 1 == end;
  }
  size_t last = i;
  while (last < end && !source.At(last).Is(";")) ++last;
  elements->work = {i, last + 1};
  return last + 1 == end;
}

std::optional<Elements> ReadElements(const PlainSource& source, const PlainFunction& kernel) {
  Elements elements;
  const size_t begin = kernel.body.begin, end = kernel.body.end;
  if (begin >= end) return std::nullopt;
  if (source.Follows(begin, {"for", "("})) {
    const size_t close = source.Close(begin + 1);
    std::vector<size_t> marks;
    for (size_t i = begin + 2; i < close; ++i) {
      if (source.At(i).Is(";")) marks.push_back(i);
    }
    if (marks.size() != 2 || !ReadIndex(source, {begin + 2, marks[0]}, &elements)) return std::nullopt;
    if (!ReadLimit(source, {marks[0] + 1, marks[1]}, "<", &elements)) return std::nullopt;
    const size_t step = marks[1] + 1;
    if (!source.At(step).Is(elements.index) || !source.Follows(step + 1, {"+", "="}) ||
        !IsStride(source.Plain({step + 3, close})))
      return std::nullopt;
    elements.strides = true;
    if (!ReadWork(source, close + 1, end, &elements)) return std::nullopt;
    return elements;
  }
  size_t mark = begin;
  while (mark < end && !source.At(mark).Is(";")) ++mark;
  if (mark + 2 >= end || !ReadIndex(source, {begin, mark}, &elements)) return std::nullopt;
  if (!source.Follows(mark + 1, {"if", "("})) return std::nullopt;
  const size_t close = source.Close(mark + 2);
  const Range condition{mark + 3, close};
  if (ReadLimit(source, condition, "<", &elements)) {
    if (!ReadWork(source, close + 1, end, &elements)) return std::nullopt;
    return elements;
  }
  if (!ReadLimit(source, condition, ">=", &elements)) return std::nullopt;
  size_t work = close + 1;
  if (source.Follows(work, {"return", ";"})) {
    work += 2;
  } else if (source.Follows(work, {"{", "return", ";", "}"})) {
    work += 4;
  } else {
    return std::nullopt;
  }
  elements.work = {work, end};
  return elements;
}

// Why the work can't be repeated or moved into a loop; empty when it can.
std::string WhyNotPlain(const PlainSource& source, const PlainFunction& kernel, const Elements& elements) {
  for (const char* word : {"return", "break", "continue", "goto", "__syncthreads", "__syncwarp", "__shared__", "threadIdx",
                           "blockIdx", "blockDim", "gridDim", "asm"}) {
    if (source.Has(elements.work, word)) return kernel.name + "'s work on an element has " + word + " in it";
  }
  for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
    if (source.At(i).text.substr(0, 6) == "__shfl") return kernel.name + "'s work on an element has shuffles in it";
    const bool changed = source.At(i).Is(elements.index) &&
                         (source.Follows(i + 1, {"+", "+"}) || source.Follows(i + 1, {"+", "="}) ||
                          (source.Follows(i + 1, {"="}) && !source.Follows(i + 1, {"=", "="})));
    if (changed) return kernel.name + " changes its index";
    if (source.At(i).kind == evaluator::Token::Kind::kDirective && source.At(i).text.find("unroll") == std::string_view::npos)
      return kernel.name + "'s work has a directive in it";
  }
  return "";
}

// "an element by a plain index": what the other kernels lack.
constexpr const char* kNotElements =
    " is not of the form: index = blockIdx.x * blockDim.x + threadIdx.x, then if (index < n) and the work on one element";

// Why a launch's grid can't be an expression of another; empty when it can.
std::string WhyNotGrid(const PlainSource& source, const PlainLaunch& launch) {
  const Range host = source.functions()[launch.host].body;
  bool dim3 = source.Has(launch.grid, "dim3");
  for (size_t i = launch.grid.begin; i < launch.grid.end; ++i) {
    for (size_t k = host.begin; k + 1 < host.end; ++k) {
      dim3 = dim3 || (source.At(k).Is("dim3") && source.At(k + 1).text == source.At(i).text);
    }
  }
  return dim3 ? "the grid of " + launch.kernel + " is a dim3" : "";
}

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
    if (source.Follows(i, {sign, "="}) || ((*sign == '+' || *sign == '-') && source.Follows(i, {sign, sign}))) return true;
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
    if (array.written && !array.written_always) array.read = true;  // what is not written keeps its value
    arrays.push_back(array);
  }
  if (arrays.empty()) *why = kernel.name + kNotElements;
  return arrays.empty() ? std::nullopt : std::optional(arrays);
}

// The work on lane `lane`: x[i] is x_4.x.
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
    const auto array = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const Array& a) { return source.At(i).Is(a.parameter->name); });
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

// Every line of `text` after its first one indented by two more.
std::string Deeper(const std::string& text, int levels) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result.append(static_cast<size_t>(2 * levels), ' ');
  }
  return result;
}

std::string VectorBody(const PlainSource& source, const Elements& elements, const std::vector<Array>& arrays, int width) {
  const std::string vector = "float" + std::to_string(width), suffix = source.Fresh("_" + std::to_string(width));
  const std::string first = source.Fresh("first");
  const std::string base = "(blockIdx.x * (" + elements.type + ")blockDim.x + threadIdx.x) * " + std::to_string(width);
  const std::string pad = elements.strides ? "    " : "  ";
  std::string text = "\n";
  if (elements.strides) {
    text += "  for (" + elements.type + " " + first + " = " + base + "; " + first + " < " + elements.limit + "; " + first +
            " += (" + elements.type + ")(blockDim.x * gridDim.x) * " + std::to_string(width) + ") {\n";
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
    if (array.written) text += pad + "  *reinterpret_cast<" + vector + "*>(" + name + " + " + first + ") = " + name + suffix + ";\n";
  }
  text += pad + "} else {\n" + pad + "  for (" + elements.type + " " + elements.index + " = " + first + "; " +
          elements.index + " < " + elements.limit + "; ++" + elements.index + ") {\n" + pad + "    " +
          Deeper(source.Text(elements.work), 1) + "\n" + pad + "  }\n" + pad + "}\n";
  return text + (elements.strides ? "  }\n" : "");
}

}  // namespace

PlainResult GridStride(const PlainSource& source) {
  std::vector<Edit> edits;
  std::string why;
  int kernels = 0;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global) continue;
    const auto elements = ReadElements(source, kernel);
    std::string reason;
    if (!elements) {
      reason = kernel.name + kNotElements;
    } else if (elements->strides) {
      reason = "already applied: " + kernel.name + " strides over its grid";
    } else {
      reason = WhyNotPlain(source, kernel, *elements);
    }
    for (const PlainLaunch* launch : source.LaunchesOf(kernel)) {
      if (reason.empty()) reason = WhyNotGrid(source, *launch);
    }
    if (!reason.empty()) {
      why = reason;
      continue;
    }
    const std::string& i = elements->index;
    edits.push_back({source.At(kernel.body.begin - 1).end, source.At(kernel.body.end).begin,
                     "\n  for (" + elements->type + " " + i + " = blockIdx.x * (" + elements->type +
                         ")blockDim.x + threadIdx.x; " + i + " < " + elements->limit + "; " + i +
                         " += blockDim.x * gridDim.x) {\n    " + source.Text(elements->work) + "\n  }\n"});
    for (const PlainLaunch* launch : source.LaunchesOf(kernel)) {
      const std::string grid = source.Text(launch->grid), most = std::to_string(kBlocks);
      edits.push_back({source.At(launch->grid.begin).begin, source.At(launch->grid.end - 1).end,
                       "(" + grid + ") < " + most + " ? (" + grid + ") : " + most});
    }
    ++kernels;
  }
  if (kernels == 0) return {"", why};
  return {source.Edited(edits), "a grid-stride loop of at most " + std::to_string(kBlocks) + " blocks"};
}

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
