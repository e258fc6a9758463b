#include "coder_offline/plain/elements.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

using cuda_source::Token;

constexpr int kBlocks = 1056;  // blocks of a grid-stride loop: eight per multiprocessor of an H100 (132)

bool IsGlobalIndex(const std::string& text) {
  return IsOneOf(text, {"blockIdx.x*blockDim.x+threadIdx.x", "blockDim.x*blockIdx.x+threadIdx.x",
                        "threadIdx.x+blockIdx.x*blockDim.x", "threadIdx.x+blockDim.x*blockIdx.x"});
}

bool IsStride(const std::string& text) { return text == "blockDim.x*gridDim.x" || text == "gridDim.x*blockDim.x"; }

bool IsIndexType(const std::string& type) {
  return IsOneOf(type, {"int", "unsigned", "unsigned int", "size_t", "long long", "int64_t", "uint", "long"});
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
  return IsIndexType(elements->type) && IsGlobalIndex(source.Plain({i + 1, statement.end}));
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
    const bool arithmetic =
        source.IsName(k) || source.Value(k) || IsOneOf(source.At(k).text, {"*", "+", "-", "/", "(", ")"});
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

// The expression without blanks and casts, with local constants replaced by what they are set to: tid by threadIdx.x.
std::string Resolved(const PlainSource& source, const PlainFunction& kernel, Range range, int depth = 0) {
  if (depth > 4) return "";
  std::string text;
  for (size_t i = range.begin; i < range.end; ++i) {
    std::optional<Range> value;
    const bool member = i > 0 && (source.At(i - 1).Is(".") || source.At(i - 1).Is("->"));
    if (source.IsName(i) && !member) value = source.Initializer(kernel.body, source.At(i).text);
    if (!value || value->Holds(i)) {
      text += source.Plain({i, i + 1});
      continue;
    }
    for (size_t k = kernel.body.begin; k < kernel.body.end; ++k) {  // set again later
      if (k + 2 != value->begin && source.At(k).Is(source.At(i).text) && source.Written(k, k + 1)) return "";
    }
    const std::string inner = Resolved(source, kernel, *value, depth + 1);
    const bool alone = range.end == range.begin + 1 || inner.find_first_of("+-*/%&|?<>") == std::string::npos;
    text += alone ? inner : "(" + inner + ")";
  }
  const size_t cast = text.find("(int)");
  return cast == std::string::npos ? text : text.erase(cast, 5);
}

// Reads the loop at token `i`, if together its threads run through all elements.
bool ReadSharedLoop(const PlainSource& source, const PlainFunction& kernel, size_t i, SharedLoop* loop, bool* of_warp) {
  const auto head = source.ForAt(i);
  if (!head) return false;
  const auto [begin, first_mark] = head->start;
  const size_t close = head->close, second_mark = head->condition.end;
  size_t equals = begin;
  while (equals < first_mark && !source.At(equals).Is("=")) ++equals;
  if (equals >= first_mark || equals < begin + 2 || source.Has({equals, first_mark}, ",")) return false;
  Elements& elements = loop->elements;
  elements.type = source.Text({begin, equals - 1});
  elements.index = source.At(equals - 1).text;
  if (!IsIndexType(elements.type) || !ReadLimit(source, head->condition, "<", &elements)) return false;
  const Range start{equals + 1, first_mark};
  Range step{second_mark + 4, close};
  if (!source.Follows(second_mark + 1, {elements.index, "+", "="})) {  // i = i + blockDim.x
    if (!source.Follows(second_mark + 1, {elements.index, "=", elements.index, "+"})) return false;
    ++step.begin;
  }
  loop->start = source.Text(start);
  loop->step = source.Text(step);
  const std::string first = Resolved(source, kernel, start), by = Resolved(source, kernel, step);
  const auto warp = [&] {
    const auto number = source.Number(step);
    return number && number->value == 32;
  };
  const auto block = [&] {  // a number, or an argument of the template, that is the size of every block
    const auto number = source.Number(step);
    const std::vector<std::string> names = source.TemplateParameters(kernel);
    const auto name = static_cast<size_t>(std::find(names.begin(), names.end(), loop->step) - names.begin());
    const auto launches = source.LaunchesOf(kernel);
    return !launches.empty() && std::all_of(launches.begin(), launches.end(), [&](const PlainLaunch* one) {
      const std::vector<Range> arguments = source.Split(one->template_arguments);
      if (name < arguments.size() && source.Text(arguments[name]) == source.Text(one->block)) return true;
      const auto by_number = name < arguments.size() ? source.Number(arguments[name]) : number;
      const auto threads = source.Number(one->block);
      return by_number && threads && threads->value == by_number->value;
    });
  };
  const size_t rank = first.find(".thread_rank()");  // of a cooperative group
  const std::string group = first.substr(0, std::min(rank, first.size()));
  const bool ranked = rank != std::string::npos && (by == group + ".size()" || by == group + ".num_threads()");
  *of_warp = first == "threadIdx.x%32" || first == "threadIdx.x&31" || first == "threadIdx.x%WARP_SIZE";
  const bool whole = (first == "threadIdx.x" && (by == "blockDim.x" || block())) ||
                     (IsGlobalIndex(first) && IsStride(by)) || ranked || (*of_warp && warp());
  if (!whole) return false;
  size_t end = close + 1;
  if (source.At(end).Is("{")) {
    end = source.Close(end) + 1;
  } else {
    if (source.Follows(end, {"for"}) || source.Follows(end, {"if"}) || source.Follows(end, {"while"})) return false;
    while (end < kernel.body.end && !source.At(end).Is(";")) ++end;
    ++end;
  }
  loop->tokens = {i, end};
  return ReadWork(source, close + 1, end, &elements);
}

// True if the expression may differ among the threads that share a loop: those of a block, or with `of_warp` of a warp.
// `dependent`: variables that do.
bool Differs(const PlainSource& source, Range range, const std::set<std::string, std::less<>>& dependent,
             bool of_warp) {
  for (size_t i = range.begin; i < range.end; ++i) {
    const std::string_view word = source.At(i).text;
    if (word == "[" || word == "thread_rank" || word.starts_with("__shfl")) return true;
    if (word != "threadIdx" && (!dependent.contains(word) || source.At(i - 1).Is("."))) continue;
    const size_t next = word == "threadIdx" ? i + 3 : i + 1;
    const bool warp = source.Follows(next, {"/", "32"}) || source.Follows(next, {"/", "WARP_SIZE"}) ||
                      source.Follows(next, {">", ">", "5"});
    if (!of_warp || !warp) return true;
  }
  return false;
}

// The variables of the kernel that are set to what differs among those threads.
std::set<std::string, std::less<>> Dependent(const PlainSource& source, const PlainFunction& kernel, bool of_warp) {
  std::set<std::string, std::less<>> names;
  for (bool more = true; more;) {
    more = false;
    for (size_t i = kernel.body.begin; i + 2 < kernel.body.end; ++i) {
      size_t equals = i + 1;  // of = or +=
      if (std::string_view("+-*/%&|^").find(source.At(equals).text) != std::string_view::npos) ++equals;
      const bool sets = source.IsName(i) && source.At(equals).Is("=") && !source.Follows(equals + 1, {"="});
      if (!sets || names.contains(source.At(i).text)) continue;
      size_t end = equals;
      for (; end < kernel.body.end && !source.At(end).Is(";") && !source.At(end).Is(")"); ++end) {
        if (source.At(end).Is("(")) end = source.Close(end);
      }
      if (!Differs(source, {equals + 1, end}, names, of_warp)) continue;
      names.emplace(source.At(i).text);
      more = true;
    }
  }
  return names;
}

// The reason why some threads may not come to token `i`, or not together; empty if all come. Each condition on the way
// there must be the same for all threads that share the loop.
std::string WhyNotTogether(const PlainSource& source, const PlainFunction& kernel, size_t i, bool of_warp) {
  const std::set<std::string, std::less<>> dependent = Dependent(source, kernel, of_warp);
  const std::string reason = kernel.name + " has a loop that some of its threads may not come to";
  for (size_t k = kernel.body.begin; k < i; ++k) {
    const bool leaves = source.At(k).Is("return") || source.At(k).Is("continue") || source.At(k).Is("break");
    const bool around = source.At(k).Is("{") && source.Close(k) > i;
    const bool last = k + 1 == i && !source.At(k).Is(";") && !source.At(k).Is("{") && !source.At(k).Is("}") &&
                      source.At(k).kind != Token::Kind::kDirective;
    if (!leaves && !around && !last) continue;
    size_t close = leaves || around ? k - 1 : k;  // of the condition
    if (leaves && source.At(close).Is("{")) --close;
    if (around && (source.At(close).Is(";") || source.At(close).Is("{") || source.At(close).Is("}"))) continue;
    if (!source.At(close).Is(")")) return reason;
    size_t open = close;
    while (open > kernel.body.begin && source.Close(open) != close) --open;
    if (Differs(source, {open + 1, close}, dependent, of_warp)) return reason;
  }
  return "";
}

}  // namespace

std::optional<Elements> ReadElements(const PlainSource& source, const PlainFunction& kernel) {
  Elements elements;
  const size_t begin = kernel.body.begin, end = kernel.body.end;
  if (begin >= end) return std::nullopt;
  if (source.Follows(begin, {"for", "("})) {
    const auto head = source.ForAt(begin);
    if (!head || !ReadIndex(source, head->start, &elements)) return std::nullopt;
    if (!ReadLimit(source, head->condition, "<", &elements)) return std::nullopt;
    const size_t step = head->step.begin;
    elements.strides = true;
    const bool strides =
        source.Follows(step, {elements.index, "+", "="}) && IsStride(source.Plain({step + 3, head->close}));
    if (!strides || !ReadWork(source, head->close + 1, end, &elements)) return std::nullopt;
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

std::vector<SharedLoop> ReadSharedLoops(const PlainSource& source, const PlainFunction& kernel, std::string* why) {
  std::vector<SharedLoop> loops;
  for (size_t i = kernel.body.begin; i < kernel.body.end; ++i) {
    if (!source.Follows(i, {"for", "("})) continue;
    SharedLoop loop;
    bool of_warp = false;
    if (!ReadSharedLoop(source, kernel, i, &loop, &of_warp)) continue;
    const std::string reason = WhyNotTogether(source, kernel, i, of_warp);
    if (reason.empty()) {
      loops.push_back(loop);
    } else {
      *why = reason;
    }
    i = loop.tokens.end - 1;
  }
  return loops;
}

std::string WhyNotPlain(const PlainSource& source, const PlainFunction& kernel, const Elements& elements,
                        bool in_loop) {
  for (const char* word : {"return", "break", "continue", "goto", "__syncthreads", "__syncwarp", "__shared__", "asm",
                           "threadIdx", "blockIdx", "blockDim", "gridDim"}) {
    if (in_loop && std::string_view(word) == "threadIdx") break;
    if (source.Has(elements.work, word)) return kernel.name + "'s work on an element has " + word + " in it";
  }
  for (size_t i = elements.work.begin; i < elements.work.end; ++i) {
    if (source.At(i).text.substr(0, 6) == "__shfl") return kernel.name + "'s work on an element has shuffles in it";
    const bool changed =
        source.At(i).Is(elements.index) && (source.Follows(i + 1, {"+", "+"}) || source.Follows(i + 1, {"+", "="}) ||
                                            (source.Follows(i + 1, {"="}) && !source.Follows(i + 1, {"=", "="})));
    if (changed) return kernel.name + " changes its index";
    if (source.At(i).kind == Token::Kind::kDirective && source.At(i).text.find("unroll") == std::string_view::npos)
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
    } else if (source.LaunchesOf(kernel).empty()) {
      reason = "the launch of " + kernel.name + ", which sets its grid, is not in this source";
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
