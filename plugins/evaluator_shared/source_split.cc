#include "evaluator_shared/source_split.h"

#include <algorithm>
#include <optional>
#include <set>

#include "evaluator_shared/source_lexer.h"

namespace kgrpo::evaluator {
namespace {

using Kind = Token::Kind;

// Thrown inside, turned into `why_not`.
struct NotUnderstood {
  size_t offset;
  std::string what;
};

class Splitter {
 public:
  explicit Splitter(const std::string& source) : source_(source), lexed_(Lex(source)), device_(source), host_(source) {}

  SplitSource Run() {
    SplitSource result;
    try {
      if (!lexed_.understood) throw NotUnderstood{0, "a literal or comment that does not end, or a continued line"};
      Directives();
      Declarations(0, lexed_.tokens.size());
      ApplyEdits();
      result.understood = true;
      result.device = std::move(device_);
      result.host = std::move(host_);
      result.kernel_templates = std::move(kernel_templates_);
    } catch (const NotUnderstood& failure) {
      const auto line =
          std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(failure.offset), '\n') + 1;
      result.why_not = "line " + std::to_string(line) + ": " + failure.what;
    }
    return result;
  }

 private:
  const Token& At(size_t i) const { return lexed_.tokens[i]; }

  [[noreturn]] void Fail(size_t token, const std::string& what) const {
    throw NotUnderstood{token < lexed_.tokens.size() ? At(token).begin : source_.size(), what};
  }

  // Overwrites a range with spaces, keeping line ends.
  static void Blank(std::string& text, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
  }

  // Conditional code that differs between the two compilers, or macros that hide what the splitter looks for, make a
  // split by text unsafe.
  void Directives() {
    static const std::set<std::string, std::less<>> kHidden = {"__global__", "__device__", "__host__", "__constant__",
                                                               "__shared__"};
    for (size_t i = 0; i < lexed_.tokens.size(); ++i) {
      if (At(i).kind != Kind::kDirective) continue;
      const std::string_view text = At(i).text;
      const bool defines = text.find("define") != std::string_view::npos && text.find("define") < 8;
      for (std::string_view word : {"__CUDA_ARCH__", "__CUDACC__", "__NVCC__", "__CUDACC_RTC__", "__GNUC__"}) {
        if (text.find(word) != std::string_view::npos) Fail(i, "a directive that depends on the compiler");
      }
      if (!defines) continue;
      for (const std::string& word : kHidden) {
        if (text.find(word) != std::string_view::npos) Fail(i, "a macro that holds " + word);
      }
      if (text.find("<<<") != std::string_view::npos) Fail(i, "a macro that launches");
      int depth = 0;
      for (char c : text) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (depth != 0) Fail(i, "a macro with an unbalanced brace");
    }
  }

  // The token after the one that closes what opens at `open`.
  size_t SkipGroup(size_t open, size_t end) const {
    const std::string_view opening = At(open).text;
    const std::string_view closing = opening == "(" ? ")" : opening == "{" ? "}" : "]";
    int depth = 0;
    for (size_t i = open; i < end; ++i) {
      if (At(i).Is(opening)) ++depth;
      if (At(i).Is(closing) && --depth == 0) return i + 1;
    }
    Fail(open, "a bracket that does not close");
  }

  // Past `<...>` of a template's parameters or arguments.
  size_t SkipAngles(size_t open, size_t end) const {
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
    Fail(open, "template brackets");
  }

  void Declarations(size_t begin, size_t end) {
    for (size_t i = begin; i < end;) {
      if (At(i).kind == Kind::kDirective || At(i).Is(";")) {
        ++i;
      } else if (At(i).Is("namespace") || (At(i).Is("inline") && i + 1 < end && At(i + 1).Is("namespace"))) {
        i = Namespace(i, end);
      } else if (At(i).Is("extern") && i + 2 < end && At(i + 1).kind == Kind::kString && At(i + 2).Is("{")) {
        const size_t close = SkipGroup(i + 2, end);
        Declarations(i + 3, close - 1);
        i = close;
      } else {
        i = Declaration(i, end);
      }
    }
  }

  size_t Namespace(size_t i, size_t end) {
    size_t open = i;
    while (open < end && !At(open).Is("{") && !At(open).Is(";") && !At(open).Is("=")) ++open;
    if (open < end && At(open).Is("=")) {
      while (open < end && !At(open).Is(";")) ++open;
      return std::min(open + 1, end);
    }
    if (open >= end || !At(open).Is("{")) Fail(i, "a namespace without a body");
    if (open == i + 1) Fail(i, "an unnamed namespace");  // its kernels have no linker name
    const size_t close = SkipGroup(open, end);
    Declarations(open + 1, close - 1);
    return close;
  }

  struct Seen {
    bool global = false, device = false, host = false, constant = false, is_constexpr = false, type = false,
         is_typedef = false;
    bool is_template = false, assigned = false;
    size_t parameters = 0;  // token of the function's "(", 0 for none
    std::string name;       // identifier before it
    std::vector<size_t> statics;
  };

  // One declaration at namespace scope, from its first token; returns the token after it.
  size_t Declaration(const size_t begin, size_t end) {
    Seen seen;
    size_t i = begin;
    while (i < end) {
      const Token& token = At(i);
      if (token.kind == Kind::kDirective) {
        if (i != begin) Fail(i, "a directive inside a declaration");
      } else if (token.Is("template")) {
        seen.is_template = true;
        if (i + 1 < end && At(i + 1).Is("<")) {
          i = SkipAngles(i + 1, end);
          continue;
        }
        Fail(i, "an explicit instantiation");
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
        return SkipToSemicolon(i, end);
      } else if (token.Is("__launch_bounds__") || token.Is("__attribute__") || token.Is("alignas") ||
                 token.Is("__align__") || token.Is("decltype") || token.Is("noexcept")) {
        if (i + 1 < end && At(i + 1).Is("(")) {
          i = SkipGroup(i + 1, end);
          continue;
        }
      } else if (token.Is("operator")) {
        Fail(i, "an operator");
      } else if (token.Is("=")) {
        seen.assigned = true;
      } else if (token.Is("(")) {
        if (seen.parameters == 0 && !seen.assigned && i > begin) {
          seen.parameters = i;
          seen.name = std::string(At(i - 1).text);
        }
        i = SkipGroup(i, end);
        continue;
      } else if (token.Is("[")) {
        i = SkipGroup(i, end);
        continue;
      } else if (token.Is("<") && !seen.assigned) {
        i = SkipAngles(i, end);
        continue;
      } else if (token.Is("{")) {
        const size_t close = SkipGroup(i, end);
        const bool function = seen.parameters != 0 && !seen.assigned;
        if (function) {
          Function(begin, i, close, seen);
          return close;
        }
        i = close;  // a type's body or an initialiser: the declaration ends with ";"
        continue;
      } else if (token.Is(";")) {
        Simple(begin, i + 1, seen);
        return i + 1;
      }
      ++i;
    }
    Fail(begin, "a declaration that does not end");
  }

  size_t SkipToSemicolon(size_t i, size_t end) const {
    while (i < end && !At(i).Is(";")) {
      if (At(i).Is("(") || At(i).Is("{") || At(i).Is("[")) {
        i = SkipGroup(i, end);
      } else {
        ++i;
      }
    }
    return std::min(i + 1, end);
  }

  size_t BeginOf(size_t token) const { return At(token).begin; }
  size_t EndOf(size_t token) const { return At(token).end; }

  // A function with a body: tokens [begin, close), the body from `body`.
  void Function(size_t begin, size_t body, size_t close, const Seen& seen) {
    const size_t from = BeginOf(begin), to = EndOf(close - 1);
    if (seen.global) {
      if (seen.host || seen.device) Fail(begin, "a kernel with more than one execution space");
      if (seen.is_template) kernel_templates_.push_back(seen.name);
      // An empty function on the host; visible, so that its linker name can be asked for at run time.
      Blank(host_, EndOf(body), BeginOf(close - 1));
      for (size_t i : seen.statics) {
        Blank(host_, BeginOf(i), EndOf(i));
        Blank(device_, BeginOf(i), EndOf(i));
      }
    } else if (seen.device && !seen.host) {
      Blank(host_, from, to);
    } else if (seen.device || seen.is_constexpr) {
      // Both sides keep it.
    } else {
      Blank(device_, from, to);
      Launches(body, close);
    }
  }

  // A declaration without a function body: a variable, type, prototype.
  void Simple(size_t begin, size_t end, const Seen& seen) {
    const bool prototype = seen.parameters != 0 && !seen.type && !seen.is_typedef && !seen.assigned;
    if (prototype) {
      if (seen.global) {
        if (!seen.statics.empty()) Fail(begin, "a prototype of a static kernel");
        return;
      }
      if (seen.device && !seen.host) {
        Blank(host_, BeginOf(begin), EndOf(end - 1));
      } else if (!seen.device) {
        Blank(device_, BeginOf(begin), EndOf(end - 1));
      }
      return;
    }
    if (seen.device || seen.constant) {
      for (size_t i : seen.statics) {
        Blank(host_, BeginOf(i), EndOf(i));
        Blank(device_, BeginOf(i), EndOf(i));
      }
      return;  // the host's copy is never read: only its address matters
    }
    if (seen.type || seen.is_typedef || seen.is_constexpr) return;
    if (!IsConstant(begin, end)) Blank(device_, BeginOf(begin), EndOf(end - 1));  // a plain host variable
  }

  // Whether the declaration starts with const and a type, so that device code may use its value.
  bool IsConstant(size_t begin, size_t end) const {
    for (size_t i = begin; i < end && !At(i).Is("=") && !At(i).Is("*"); ++i) {
      if (At(i).Is("const")) return true;
    }
    return false;
  }

  // Rewrites `name<...><<<g, b, s, t>>>(` in host code.
  void Launches(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (!At(i).Is("<<<")) continue;
      size_t close = i + 1;
      int depth = 0;
      while (close < end && !(depth == 0 && At(close).Is(">>>"))) {
        if (At(close).Is("(") || At(close).Is("{") || At(close).Is("[")) {
          close = SkipGroup(close, end);
          continue;
        }
        if (At(close).Is("<<<") || At(close).Is(";")) Fail(i, "a launch");
        ++close;
      }
      if (close + 1 >= end || !At(close + 1).Is("(")) Fail(i, "a launch");
      const size_t name = LaunchedName(i, begin);
      Edit(At(name).begin, 0, "::kgrpo_cuda::Launch(");
      Edit(At(i).begin, 3, ", ::kgrpo_cuda::Configuration(");
      Edit(At(close).begin, 3, "))");
    }
  }

  // First token of the expression that names the kernel before the `<<<` at `launch`.
  size_t LaunchedName(size_t launch, size_t begin) const {
    size_t i = launch;  // one past the expression
    if (i > begin && (At(i - 1).Is(">") || At(i - 1).Is(">>>"))) {
      int depth = 0;
      do {
        if (i <= begin + 1) Fail(launch, "a launch of a template");
        --i;
        if (At(i).Is(")")) {  // back over a group
          int round = 0;
          do {
            round += At(i).Is(")") ? 1 : At(i).Is("(") ? -1 : 0;
            if (round > 0 && i-- <= begin) Fail(launch, "a launch of a template");
          } while (round > 0);
          continue;
        }
        depth += At(i).Is(">") ? 1 : At(i).Is(">>>") ? 3 : At(i).Is("<") ? -1 : 0;
      } while (depth > 0);
    }
    if (i <= begin || At(i - 1).kind != Kind::kIdentifier) Fail(launch, "a launch of an expression");
    --i;
    while (i >= begin + 2 && At(i - 1).Is("::") && At(i - 2).kind == Kind::kIdentifier) i -= 2;
    if (i > begin && At(i - 1).Is("::")) --i;
    return i;
  }

  struct Replacement {
    size_t offset, length;
    std::string text;
  };

  void Edit(size_t offset, size_t length, const std::string& text) { edits_.push_back({offset, length, text}); }

  void ApplyEdits() {
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Replacement& a, const Replacement& b) { return a.offset < b.offset; });
    for (size_t i = edits_.size(); i-- > 0;) host_.replace(edits_[i].offset, edits_[i].length, edits_[i].text);
  }

  const std::string& source_;
  const LexedSource lexed_;
  std::string device_, host_;
  std::vector<Replacement> edits_;
  std::vector<std::string> kernel_templates_;
};

}  // namespace

SplitSource Split(const std::string& source) {
  return Splitter(source).Run();
}

}  // namespace kgrpo::evaluator
