#include "coder_offline/plain/elements.h"

#include <optional>
#include <vector>

#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

constexpr int kBlocks = 1056;  // blocks of a grid-stride loop: eight per multiprocessor of an H100 (132)

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

// `i < n`, where n consists of names, whole numbers, parentheses and + - * /.
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
                            source.At(k).Is("-") || source.At(k).Is("/") || source.At(k).Is("(") ||
                            source.At(k).Is(")");
    if (!arithmetic) return false;
  }
  elements->limit = source.Text(limit);
  return true;
}

// Reads the work: the statement at `i`, or the inside of the block there. Returns false unless it ends at `end`.
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

}  // namespace

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

std::string WhyNotPlain(const PlainSource& source, const PlainFunction& kernel, const Elements& elements) {
  for (const char* word : {"return", "break", "continue", "goto", "__syncthreads", "__syncwarp", "__shared__",
                           "threadIdx", "blockIdx", "blockDim", "gridDim", "asm"}) {
    if (source.Has(elements.work, word)) return kernel.name + "'s work on an element has " + word + " in it";
  }
  for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
    if (source.At(i).text.substr(0, 6) == "__shfl") return kernel.name + "'s work on an element has shuffles in it";
    const bool changed =
        source.At(i).Is(elements.index) && (source.Follows(i + 1, {"+", "+"}) || source.Follows(i + 1, {"+", "="}) ||
                                            (source.Follows(i + 1, {"="}) && !source.Follows(i + 1, {"=", "="})));
    if (changed) return kernel.name + " changes its index";
    if (source.At(i).kind == evaluator::Token::Kind::kDirective &&
        source.At(i).text.find("unroll") == std::string_view::npos)
      return kernel.name + "'s work has a directive in it";
  }
  return "";
}

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

}  // namespace kgrpo::coder_offline
