#include "judge/compile/source_split.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cuda_source/conditionals.h"
#include "cuda_source/reader.h"

namespace kgrpo::evaluator {
namespace {

using cuda_source::Declaration, cuda_source::Token;

class Splitter {
 public:
  explicit Splitter(const std::string& source) : reader_(source), device_(source), host_(source) {}

  SplitSource Run() {
    Directives();
    CheckHeaders();
    Declarations(0, reader_.size());
    for (const std::string& name : device_functions_) {
      if (host_functions_.count(name) > 0) Fail(0, "both sides have a function " + name);  // one may define it twice
    }
    ApplyEdits();
    SplitSource result;
    result.understood = true;
    result.device = std::move(device_);
    result.host = std::move(host_);
    result.kernel_templates = std::move(kernel_templates_);
    return result;
  }

 private:
  const Token& At(size_t i) const { return reader_.At(i); }
  [[noreturn]] void Fail(size_t token, const std::string& what) const { reader_.Fail(token, what); }

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
    for (size_t i = 0; i < reader_.size(); ++i) {
      if (At(i).kind != Token::Kind::kDirective) continue;
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

  // Names that the headers of this route offer without being asked for; with nvcc they need a header, which one of
  // these may bring.
  void CheckHeaders() {
    static constexpr std::pair<std::string_view, std::string_view> kOffered[] = {
        {" uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t ",
         " stdint.h cstdint inttypes.h cinttypes cuda.h cooperative_groups.h iostream string chrono random memory "},
        {" FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON ", " float.h cfloat cooperative_groups.h "},
        {" printf fprintf stdout stderr ", " stdio.h cstdio iostream string "},
        {" assert ", " assert.h cassert cooperative_groups.h "}};
    std::set<std::string_view> included;
    for (size_t i = 0; i < reader_.size(); ++i) included.insert(cuda_source::IncludedHeader(At(i)));
    const auto lists = [](std::string_view words, std::string_view word) {
      const size_t at = words.find(word);
      return at != std::string_view::npos && words[at - 1] == ' ' && words[at + word.size()] == ' ';
    };
    for (size_t i = 0; i < reader_.size(); ++i) {
      if (At(i).kind != Token::Kind::kIdentifier) continue;
      for (const auto& [names, headers] : kOffered) {
        const bool brought =
            std::any_of(included.begin(), included.end(),
                        [&, &headers = headers](std::string_view one) { return !one.empty() && lists(headers, one); });
        if (lists(names, At(i).text) && !brought) Fail(i, std::string(At(i).text) + " without its header");
      }
    }
  }

  void Declarations(size_t begin, size_t end) {
    for (size_t i = begin; i < end;) {
      if (At(i).kind == Token::Kind::kDirective || At(i).Is(";")) {
        ++i;
      } else if (At(i).Is("namespace") || (At(i).Is("inline") && i + 1 < end && At(i + 1).Is("namespace"))) {
        i = Namespace(i, end);
      } else if (At(i).Is("extern") && i + 2 < end && At(i + 1).kind == Token::Kind::kString && At(i + 2).Is("{")) {
        const size_t close = reader_.SkipGroup(i + 2, end);
        Declarations(i + 3, close - 1);
        i = close;
      } else {
        i = OneDeclaration(i, end);
      }
    }
  }

  size_t Namespace(size_t i, size_t end) {
    const size_t inside = reader_.SkipNamespaceHead(i, end), open = inside - 1;
    if (At(open).Is(";")) return inside;
    if (open == i + 1) Fail(i, "an unnamed namespace");  // its kernels have no linker name
    const size_t close = reader_.SkipGroup(open, end);
    Declarations(open + 1, close - 1);
    return close;
  }

  // The declaration that begins there; returns the token after it.
  size_t OneDeclaration(size_t begin, size_t end) {
    const Declaration seen = reader_.ReadDeclaration(begin, end);
    if (seen.body != 0) {
      Function(begin, seen);
    } else if (!seen.for_both) {
      Simple(begin, seen);
    }
    return seen.end;
  }

  size_t BeginOf(size_t token) const { return At(token).begin; }
  size_t EndOf(size_t token) const { return At(token).end; }

  void Function(size_t begin, const Declaration& seen) {
    const size_t body = seen.body, close = seen.end;
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
      device_functions_.insert(seen.name);
      Blank(host_, from, to);
    } else if (seen.device || seen.is_constexpr) {
      // Both sides keep it. NVRTC lacks nvcc's --expt-relaxed-constexpr: the function becomes one of both sides.
      for (size_t i = begin; !seen.device && i < body; ++i) {
        if (At(i).Is("constexpr")) device_edits_.push_back({BeginOf(i), 0, "__host__ __device__ "});
      }
    } else {
      host_functions_.insert(seen.name);
      Blank(device_, from, to);
      Launches(body, close);
    }
  }

  // A declaration without a function body: a variable, type, prototype.
  void Simple(size_t begin, const Declaration& seen) {
    const size_t end = seen.end;
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
    if (seen.type || seen.is_typedef) return;
    // A plain host variable, or an array: of constants nvcc lets device code use the values, but no array.
    if (IsArray(begin, end) || !(seen.is_constexpr || IsConstant(begin, end)))
      Blank(device_, BeginOf(begin), EndOf(end - 1));  // a plain host variable
  }

  bool IsArray(size_t begin, size_t end) const {
    for (size_t i = begin; i < end && !At(i).Is("=") && !At(i).Is("{"); ++i) {
      if (At(i).Is("[")) return true;
    }
    return false;
  }

  // Returns whether the declaration starts with const and a type, so that device code may use its value.
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
          close = reader_.SkipGroup(close, end);
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
    if (i <= begin || At(i - 1).kind != Token::Kind::kIdentifier) Fail(launch, "a launch of an expression");
    --i;
    while (i >= begin + 2 && At(i - 1).Is("::") && At(i - 2).kind == Token::Kind::kIdentifier) i -= 2;
    if (i > begin && At(i - 1).Is("::")) --i;
    return i;
  }

  struct Replacement {
    size_t offset, length;
    std::string text;
  };

  void Edit(size_t offset, size_t length, const std::string& text) { edits_.push_back({offset, length, text}); }

  void ApplyEdits() {
    for (auto [edits, text] : {std::pair(&edits_, &host_), std::pair(&device_edits_, &device_)}) {
      std::stable_sort(edits->begin(), edits->end(),
                       [](const Replacement& a, const Replacement& b) { return a.offset < b.offset; });
      for (size_t i = edits->size(); i-- > 0;) text->replace((*edits)[i].offset, (*edits)[i].length, (*edits)[i].text);
    }
  }

  const cuda_source::SourceReader reader_;
  std::string device_, host_;
  std::vector<Replacement> edits_, device_edits_;  // of the host's and the device's text
  std::vector<std::string> kernel_templates_;
  std::set<std::string> device_functions_, host_functions_;
};

}  // namespace

SplitSource Split(const std::string& source) {
  const cuda_source::ActiveSource active = cuda_source::WithoutInactive(source);
  try {
    if (active.undecided != std::string::npos)
      throw cuda_source::NotUnderstood{active.undecided, "a conditional that depends on the compiler or its headers"};
    return Splitter(active.text).Run();
  } catch (const cuda_source::NotUnderstood& failure) {
    const auto line =
        std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(failure.offset), '\n') + 1;
    SplitSource result;
    result.why_not = "line " + std::to_string(line) + ": " + failure.what;
    return result;
  }
}

}  // namespace kgrpo::evaluator
