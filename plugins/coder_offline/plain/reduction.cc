// Replaces a tree reduction over shared memory by warp shuffles: three barriers for any block size, and no idle halves.
#include <algorithm>
#include <optional>
#include <vector>

#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {
namespace {

// A tree reduction of the form
// for (int s = blockDim.x / 2; s > 0; s >>= 1) { if (t < s) a[t] += a[t + s]; __syncthreads(); }
struct Tree {
  size_t begin = 0, end = 0;           // tokens of the loop
  std::string array, thread;           // a, and threadIdx.x or the variable that holds it
  std::string type;                    // of the array's elements
  std::string before, between, after;  // a[t] joined with a[t + s]: before a[t] between a[t + s] after
  std::string warps;                   // an expression of their number
  bool known = true;                   // the loop gives the thread count as a number; false: as blockDim.x
};

// The element type of a one-dimensional __shared__ array; empty if there is none of this name.
std::string SharedType(const PlainSource& source, Range body, std::string_view name) {
  for (size_t i = body.begin; i < body.end; ++i) {
    if (!source.At(i).Is("__shared__")) continue;
    size_t k = i + 1;
    std::string type;
    while (source.IsName(k) && source.IsName(k + 1))
      type += (type.empty() ? "" : " ") + std::string(source.At(k++).text);
    if (source.At(k).Is(name) && source.At(k + 1).Is("[") && !source.At(source.Close(k + 1) + 1).Is("[")) return type;
  }
  return "";
}

std::optional<Tree> ReadTree(const PlainSource& source, const PlainFunction& function, size_t loop) {
  Tree tree;
  tree.begin = loop;
  const auto head = source.ForAt(loop);
  if (!head) return std::nullopt;
  // The loop's head: s starts at half the threads and is halved while it is positive.
  const size_t close = head->close, mark = head->start.end;
  size_t equals = loop + 2;
  while (equals < mark && !source.At(equals).Is("=")) ++equals;
  if (equals >= mark) return std::nullopt;
  const std::string s(source.At(equals - 1).text);
  const std::string start = source.Plain({equals + 1, mark});
  const std::string condition = source.Plain(head->condition), step = source.Plain(head->step);
  if (!IsOneOf(condition, {s + ">0", s + ">=1", s})) return std::nullopt;
  if (!IsOneOf(step, {s + ">>=1", s + "/=2", s + "=" + s + "/2", s + "=" + s + ">>1"})) return std::nullopt;
  if (start == "blockDim.x/2" || start == "blockDim.x>>1") {
    tree.warps = "(int)(blockDim.x / 32)";
    tree.known = false;
  } else {
    const size_t value = equals + 1;
    const auto number = source.Number({value, value + 1});
    const bool halved = source.Follows(value + 1, {"/", "2"}) && mark == value + 3;
    if (!number || (!halved && mark != value + 1)) return std::nullopt;
    const int threads = halved ? number->value : 2 * number->value;
    if (threads < 64 || threads > 1024 || (threads & (threads - 1)) != 0) return std::nullopt;
    tree.warps =
        halved && source.IsName(value) ? std::string(source.At(value).text) + " / 32" : std::to_string(threads / 32);
  }
  // The loop's body: the lower half adds the upper half, then a barrier.
  size_t i = close + 1;
  if (!source.At(i).Is("{")) return std::nullopt;
  tree.end = source.Close(i) + 1;
  if (!source.Follows(i + 1, {"if", "("})) return std::nullopt;
  const size_t if_close = source.Close(i + 2);
  const std::string guard = source.Plain({i + 3, if_close});
  if (guard.size() <= s.size() + 1 || guard.substr(guard.size() - s.size() - 1) != "<" + s) return std::nullopt;
  tree.thread = guard.substr(0, guard.size() - s.size() - 1);
  size_t begin = if_close + 1, end = tree.end - 1;
  const bool barrier = end >= 4 && source.Follows(end - 4, {"__syncthreads", "(", ")", ";"});
  if (!barrier) return std::nullopt;
  end -= 4;
  if (source.At(begin).Is("{")) {
    if (source.Close(begin) + 1 != end) return std::nullopt;
    ++begin;
    --end;
  }
  if (!source.IsName(begin) || !source.At(end - 1).Is(";")) return std::nullopt;
  tree.array = source.At(begin).text;
  tree.type = SharedType(source, function.body, tree.array);
  const std::string statement = source.Plain({begin, end - 1});
  const std::string low = tree.array + "[" + tree.thread + "]";
  std::string high = tree.array + "[" + tree.thread + "+" + s + "]";
  if (statement.find(high) == std::string::npos) high = tree.array + "[" + s + "+" + tree.thread + "]";
  if (statement == low + "+=" + high) {
    tree.between = " + ";
  } else if (statement == low + "*=" + high) {
    tree.between = " * ";
  } else {
    const std::string prefix = low + "=";
    if (statement.substr(0, prefix.size()) != prefix) return std::nullopt;
    const std::string right = statement.substr(prefix.size());
    if (right == low + "+" + high) tree.between = " + ";
    for (const char* join : {"fmaxf", "fminf", "max", "min"}) {
      if (right != std::string(join) + "(" + low + "," + high + ")") continue;
      tree.before = std::string(join) + "(";
      tree.between = ", ";
      tree.after = ")";
    }
  }
  return tree.between.empty() ? std::nullopt : std::optional(tree);
}

// The reason why the tree can't be replaced: more than its result is used later, or the block size is not known to be
// a power of two from 32 on. Empty if it can be replaced.
std::string WhyNot(const PlainSource& source, const PlainFunction& function, const Tree& tree) {
  if (!IsOneOf(tree.type, {"float", "int", "double", "unsigned int", "unsigned"}))
    return tree.array + " is not a shared array of numbers in " + function.name;
  if (tree.thread != "threadIdx.x") {
    const auto value = source.Initializer(function.body, tree.thread);
    if (!value || source.Plain(*value) != "threadIdx.x") return tree.thread + " is not threadIdx.x in " + function.name;
  }
  for (size_t i = tree.end; i < function.body.end; ++i) {
    if (!source.At(i).Is(tree.array)) continue;
    if (!source.At(i + 1).Is("[")) return tree.array + " is used as a whole after the tree";
    const std::string index = source.Plain({i + 2, source.Close(i + 1)});
    if (index == "0" || index == tree.thread) continue;
    size_t loop = i;  // the next tree over the same array
    while (loop > tree.end && !source.At(loop).Is("for")) --loop;
    if (loop == tree.end || !ReadTree(source, function, loop))
      return "more than " + tree.array + "[0] is used after the tree";
  }
  if (tree.known) return "";
  if (source.launches().empty()) return "the block size of " + function.name + " is not in this source";
  for (const PlainLaunch& launch : source.launches()) {
    const auto number = source.Number(launch.block);
    if (!number || number->value < 32 || number->value > 1024 || (number->value & (number->value - 1)) != 0)
      return "the block size of " + launch.kernel + " is not known to be a power of two from 32 on";
  }
  return "";
}

std::string Shuffles(const PlainSource& source, const Tree& tree, const std::string& pad) {
  const std::string value = source.Fresh("joined"), offset = source.Fresh("offset"), warps = source.Fresh("warps");
  const std::string& t = tree.thread;
  const auto join = [&](const std::string& indent, const std::string& from) {
    return indent + "for (int " + offset + " = " + from + "; " + offset + " > 0; " + offset + " >>= 1) {\n" + indent +
           "  " + value + " = " + tree.before + value + tree.between + "__shfl_down_sync(0xffffffffu, " + value + ", " +
           offset + ")" + tree.after + ";\n" + indent + "}\n";
  };
  const std::string in = pad + "  ";
  std::string text = "{\n";
  text += in + "const int " + warps + " = " + tree.warps + ";\n";
  text += in + tree.type + " " + value + " = " + tree.array + "[" + t + "];\n" + join(in, "16");
  text += in + "__syncthreads();\n";
  text += in + "if (" + t + " % 32 == 0) " + tree.array + "[" + t + " / 32] = " + value + ";\n";
  text += in + "__syncthreads();\n";
  text += in + "if (" + t + " < 32) {\n";
  text += in + "  if (" + t + " < " + warps + ") " + value + " = " + tree.array + "[" + t + "];\n";
  text += join(in + "  ", warps + " / 2");
  text += in + "  if (" + t + " == 0) " + tree.array + "[0] = " + value + ";\n" + in + "}\n";
  return text + in + "__syncthreads();\n" + pad + "}";
}

}  // namespace

PlainResult ShuffleReduction(const PlainSource& source) {
  std::vector<Edit> edits;
  std::string why =
      "it has no tree over shared memory of the form: for (s = blockDim.x / 2; s > 0; s >>= 1) { if (t < s) "
      "a[t] += a[t + s]; __syncthreads(); }";
  for (const PlainFunction& function : source.functions()) {
    if (!function.global && !function.device) continue;
    for (size_t i = function.body.begin; i < function.body.end; ++i) {
      if (!source.Follows(i, {"for", "("})) continue;
      const auto tree = ReadTree(source, function, i);
      if (!tree) continue;
      if (const std::string reason = WhyNot(source, function, *tree); !reason.empty()) {
        why = reason;
        continue;
      }
      size_t begin = i;
      if (source.At(i - 1).kind == cuda_source::Token::Kind::kDirective) begin = i - 1;  // its #pragma unroll
      edits.push_back(
          {source.At(begin).begin, source.At(tree->end - 1).end, Shuffles(source, *tree, source.Indentation(i))});
      i = tree->end - 1;
    }
  }
  if (edits.empty()) return {"", why};
  return {source.Edited(edits), std::to_string(edits.size()) + (edits.size() == 1 ? " tree" : " trees") +
                                    " over shared memory replaced by warp shuffles"};
}

}  // namespace kgrpo::coder_offline
