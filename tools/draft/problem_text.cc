#include "draft/problem_text.h"

#include <kgrpo/support/closest.h>  // JoinedText

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda_source/declarations.h"
#include "draft/draft.h"
#include "draft/sums.h"
#include "judge/compile/source_policy.h"
#include "judge/problem/expression.h"

namespace kgrpo::evaluator {
namespace {

constexpr int64_t kLeastCap = 8, kMostCap = int64_t{1} << 24;

// The constants that limit a launch's grid, as in `min(blocks, 1024)`: beyond them a kernel's loop over its work
// repeats, so a drafted problem should have a size there.
struct GridCaps {
  std::vector<int64_t> blocks;  // each limit; at most two
  int64_t threads = 1;          // of a block, if a constant says so
};

// The integer that a token stands for, or 0.
int64_t ValueOf(const CudaSource& source, const Token& token) {
  std::string text(token.text);
  if (token.kind == Token::Kind::kIdentifier) text = source.ValueOf(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() &&
                     text.find_first_not_of("uUlL", static_cast<size_t>(end - text.data())) == std::string::npos;
  return whole ? value : 0;
}

// Adds constants that are compared or are an argument of min.
void AddCaps(const CudaSource& source, const std::vector<Token>& tokens, GridCaps* caps) {
  constexpr size_t kMost = 2;
  const auto is_one_of = [](const Token& token, std::initializer_list<const char*> texts) {
    return std::any_of(texts.begin(), texts.end(), [&](const char* text) { return token.Is(text); });
  };
  std::vector<bool> of_min;  // by open bracket
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].Is("(")) of_min.push_back(i > 0 && is_one_of(tokens[i - 1], {"min", "MIN"}));
    if (tokens[i].Is(")") && !of_min.empty()) of_min.pop_back();
    const int64_t value = ValueOf(source, tokens[i]);
    if (value < kLeastCap || value > kMostCap) continue;
    const bool argument = !of_min.empty() && of_min.back() && i > 0 && i + 1 < tokens.size() &&
                          is_one_of(tokens[i - 1], {"(", ","}) && is_one_of(tokens[i + 1], {")", ","});
    const bool compared = (i > 0 && is_one_of(tokens[i - 1], {"<", ">"})) ||
                          (i > 1 && tokens[i - 1].Is("=") && is_one_of(tokens[i - 2], {"<", ">"})) ||
                          (i + 1 < tokens.size() && is_one_of(tokens[i + 1], {"<", ">"}));
    const bool known = std::find(caps->blocks.begin(), caps->blocks.end(), value) != caps->blocks.end();
    if ((argument || compared) && !known && caps->blocks.size() < kMost) caps->blocks.push_back(value);
  }
}

GridCaps FindGridCaps(const CudaSource& source, const Draft& draft) {
  GridCaps caps;
  if (draft.function->kernel) {
    AddCaps(source, Lex(draft.grid).tokens, &caps);
    const LexedSource block = Lex(draft.block);
    if (!block.tokens.empty()) caps.threads = std::max<int64_t>(1, ValueOf(source, block.tokens.front()));
    return caps;
  }
  std::vector<Token> tokens;
  for (size_t i = draft.function->body; i < draft.function->end; ++i) tokens.push_back(source.tokens().At(i));
  AddCaps(source, tokens, &caps);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].Is("<<<")) continue;
    int depth = 0;
    size_t comma = i + 1;
    while (comma < tokens.size() && !tokens[comma].Is(">>>") && (depth > 0 || !tokens[comma].Is(","))) {
      depth += tokens[comma].Is("(") ? 1 : tokens[comma].Is(")") ? -1 : 0;
      ++comma;
    }
    if (comma + 1 < tokens.size()) caps.threads = std::max<int64_t>(1, ValueOf(source, tokens[comma + 1]));
    break;
  }
  return caps;
}

// A parameter as the launch function declares it.
std::string DeclarationOf(const DraftParameter& parameter) {
  const std::string type = Info(parameter.dtype).c_type;
  if (!parameter.source.pointer) return type + " " + parameter.source.name;
  return (parameter.role == Role::kInput ? "const " : "") + type + "* " + parameter.source.name;
}

// Returns why the file's function cannot be the launch function as it stands: "is a kernel"; "" where it can.
std::string WhyWrapped(const CudaSource& source, const Draft& draft) {
  const CudaFunction& function = *draft.function;
  if (function.kernel) return "is a kernel";
  if (function.is_template) return "is a template";
  if (!function.scope.empty()) return "is in the namespace " + function.scope.substr(0, function.scope.size() - 2);
  if (!function.returns_void) return "returns a value";
  for (const DraftParameter& parameter : draft.parameters) {
    if (parameter.added) return "does not take " + parameter.source.name;
  }
  if (function.parameters.size() != draft.parameters.size()) return "takes a stream";
  if (source.tokens().At(function.begin).Is("static")) return "is static";
  for (const DraftParameter& parameter : draft.parameters) {
    const bool same_constness =
        !parameter.source.pointer || parameter.source.constant == (parameter.role == Role::kInput);
    if (!same_constness || parameter.source.type != Info(parameter.dtype).c_type)
      return "takes " + parameter.source.name + " other than as \"" + DeclarationOf(parameter) + "\"";
  }
  return "";
}

std::string ArgumentOf(const DraftParameter& parameter) {
  const std::string& name = parameter.source.name;
  const std::string& type = parameter.source.type;
  if (!parameter.source.pointer)
    return type == Info(parameter.dtype).c_type ? name : "static_cast<" + type + ">(" + name + ")";
  const bool input = parameter.role == Role::kInput;
  std::string argument = input && !parameter.source.constant
                             ? "const_cast<" + std::string(Info(parameter.dtype).c_type) + "*>(" + name + ")"
                             : name;
  if (type != Info(parameter.dtype).c_type)
    argument =
        "reinterpret_cast<" + std::string(parameter.source.constant ? "const " : "") + type + "*>(" + argument + ")";
  return argument;
}

std::string Dimensions(const std::string& text) {
  return text.find(',') == std::string::npos ? text : "dim3(" + text + ")";
}

// What the launch function of launcher.cu runs.
std::string CallText(const Draft& draft, const std::string& arguments) {
  const std::string& function = draft.function->name;
  const bool hidden = std::any_of(draft.parameters.begin(), draft.parameters.end(),
                                  [&](const DraftParameter& one) { return one.source.name == function; });
  std::string callee = (hidden ? "::" : "") + draft.function->scope + function, values;
  for (const auto& [name, none] : draft.function->template_parameters)
    values += (values.empty() ? "" : ", ") + draft.bindings.at(name);
  if (draft.function->is_template) callee += "<" + values + ">";
  if (!draft.function->kernel) return "  " + callee + "(" + arguments + ");\n";
  const std::string grid = Dimensions(draft.grid), block = Dimensions(draft.block);
  const std::string shared = draft.shared.empty() ? "0" : draft.shared;
  std::string large;
  if (!draft.shared.empty())
    large = "  cudaFuncSetAttribute(" + callee + ", cudaFuncAttributeMaxDynamicSharedMemorySize, " + shared + ");\n";
  if (!draft.cooperative)
    return large + "  " + callee + "<<<" + grid + ", " + block + (draft.shared.empty() ? "" : ", " + shared) + ">>>(" +
           arguments + ");\n";
  std::string text = large, addresses;
  for (const DraftParameter& parameter : draft.parameters) {
    if (parameter.added) continue;
    const std::string name = "argument_" + parameter.source.name;
    text += "  auto " + name + " = " + ArgumentOf(parameter) + ";\n";
    addresses += (addresses.empty() ? "&" : ", &") + name;
  }
  return text + "  void* arguments[] = {" + addresses + "};\n  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(" +
         callee + "), " + grid + ", " + block + ", arguments, " + shared + ", 0);\n";
}

// The lines of comment that the file begins with.
std::string HeadingOf(const std::string& text) {
  std::string heading;
  for (size_t at = 0; text.compare(at, 2, "//") == 0;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t begin = std::min(text.find_first_not_of("/ ", at), end);
    heading += (heading.empty() ? "" : " ") + text.substr(begin, end - begin);
    at = end + 1;
    if (at >= text.size()) break;
  }
  return heading;
}

// Each size gets a value of the list, in turn, rounded up to its multiple; never above that for timing.
Bindings SizeOf(const Draft& draft, const std::vector<int64_t>& values) {
  Bindings size;
  for (size_t i = 0; i < draft.sizes.size(); ++i) {
    const auto& [name, timing] = draft.sizes[i];
    int64_t value = std::min(values[i % values.size()], timing);
    if (const auto multiple = draft.multiples.find(name); multiple != draft.multiples.end())
      value = (value + multiple->second - 1) / multiple->second * multiple->second;
    size[name] = value;
  }
  return size;
}

// In the order of the parameters.
std::string BindingText(const Draft& draft, const Bindings& size) {
  std::string text;
  for (const auto& [name, timing] : draft.sizes)
    text += (text.empty() ? "" : ", ") + name + ": " + std::to_string(size.at(name));
  return text;
}

// Returns whether every dimension is at least 1.
bool IsPossible(const Draft& draft, const Bindings& size) {
  for (const DraftParameter& parameter : draft.parameters) {
    for (const std::string& dimension : parameter.shape) {
      try {
        if (Expression::Parse(dimension).EvaluateInteger(size) < 1) return false;
      } catch (const std::invalid_argument&) {
        return true;  // reading the problem says what is wrong with the expression
      }
    }
  }
  return true;
}

// Correctness sizes: odd ones, one, and none that is a multiple of a tile; never above the timing size. For each
// constant that limits the grid, one beyond it.
std::string SizesText(const CudaSource& source, const Draft& draft) {
  using Values = std::vector<std::vector<int64_t>>;
  const size_t count = draft.sizes.size();
  const Values visible = count == 1   ? Values{{1000}, {4099}}
                         : count == 2 ? Values{{5, 256}, {33, 100}}
                                      : Values{{17, 33, 20}, {8, 16, 64}};
  Values hidden = count == 1   ? Values{{1}, {33}, {3333}}
                  : count == 2 ? Values{{1, 1}, {3, 1027}, {65, 37}}
                               : Values{{1, 1, 1}, {5, 37, 12}, {33, 7, 65}};
  const GridCaps caps = FindGridCaps(source, draft);
  for (const int64_t blocks : caps.blocks) {
    if (count != 0 && blocks < draft.sizes[0].second) hidden.push_back({blocks + 1, 37, 5});
    // A thread an element, rather than a block.
    const int64_t elements = blocks * caps.threads + 1;
    if (count == 1 && caps.threads > 1 && elements < draft.sizes[0].second) hidden.push_back({elements});
  }
  const auto list = [&](const Values& values) {
    std::string text;
    for (const std::vector<int64_t>& one : values) {
      const Bindings size = SizeOf(draft, one);
      const std::string written = "{" + BindingText(draft, size) + "}";
      if (IsPossible(draft, size) && text.find(written) == std::string::npos)
        text += (text.empty() ? "" : ", ") + written;
    }
    if (!text.empty()) return "[" + text + "]";
    // None fits, as where a window is larger than the image: the smallest that does, all alike.
    int64_t most = 1;
    while (most < INT32_MAX && !IsPossible(draft, SizeOf(draft, {most}))) most *= 2;
    return "[{" + BindingText(draft, SizeOf(draft, {most})) + "}]";
  };
  const std::string timing = BindingText(draft, SizeOf(draft, {INT64_MAX / 2}));
  return "sizes:\n  visible: " + list(visible) + "\n  hidden: " + list(hidden) + "\n  timing: {" + timing + "}\n";
}

std::string ParameterText(const DraftParameter& parameter) {
  static const std::map<Role, std::string> kRoles = {
      {Role::kInput, "input"}, {Role::kOutput, "output"}, {Role::kInout, "inout"}, {Role::kScalar, "scalar"}};
  std::string text = "  - {name: " + parameter.source.name + ", role: " + kRoles.at(parameter.role) +
                     ", dtype: " + Info(parameter.dtype).name;
  if (!parameter.source.pointer) return text + ", value: " + parameter.value + "}\n";
  text += ", shape: [";
  for (size_t i = 0; i < parameter.shape.size(); ++i) {
    const bool quoted = parameter.shape[i].find(',') != std::string::npos;  // ceil_div(n, 4)
    text += (i == 0 ? "" : ", ") + (quoted ? "\"" + parameter.shape[i] + "\"" : parameter.shape[i]);
  }
  text += "]";
  if (parameter.role == Role::kInput || parameter.role == Role::kInout) {
    text += parameter.offsets       ? ", distribution: offsets, high: " + parameter.high
            : parameter.low.empty() ? ", distribution: normal"
                                    : ", distribution: integers, low: " + parameter.low + ", high: " + parameter.high;
  }
  return text + "}\n";
}

// Every tensor once, an inout twice: "12*n + 4*n*m".
std::string BytesText(const Draft& draft) {
  std::map<std::string, size_t> bytes;
  std::vector<std::string> order;
  for (const DraftParameter& parameter : draft.parameters) {
    if (!parameter.source.pointer) continue;
    const std::string elements = Draft::Elements(parameter);
    if (!bytes.contains(elements)) order.push_back(elements);
    bytes[elements] += Info(parameter.dtype).size * (parameter.role == Role::kInout ? 2 : 1);
  }
  std::string text;
  for (const std::string& elements : order)
    text += (text.empty() ? "" : " + ") + std::to_string(bytes[elements]) + "*" + elements;
  return text;
}

// Of a translated map each result is computed of one element.
std::string AccumulationsText(const CudaSource& source, const Draft& draft, const OracleText& oracle) {
  return oracle.translated ? "1" : TermsOf(draft, ReferenceText(source, draft));
}

// "float16" if the kernel computes in it; else "".
std::string PrecisionText(const CudaSource& source, const Draft& draft) {
  const std::optional<DType> low = LowPrecisionOf(draft, ReferenceText(source, draft));
  return low ? Info(*low).name : "";
}

// Those of the kernel where its oracle is translated from it; "0" where they were not counted.
std::string OperationsText(const Draft& draft, const OracleText& oracle) {
  std::string operations = "0";
  for (const DraftParameter& parameter : draft.parameters) {
    if (oracle.translated && (parameter.role == Role::kOutput || parameter.role == Role::kInout))
      operations = std::to_string(oracle.operations) + "*" + Draft::Elements(parameter);
  }
  return operations;
}

}  // namespace

std::vector<std::string> ValueGuesses(const CudaSource& source, const Draft& draft, const OracleText& oracle) {
  const std::string operations = OperationsText(draft, oracle);
  std::vector<std::string> guesses = {
      "accumulations: \"" + AccumulationsText(source, draft, oracle) +
          "\", the terms that one result sums: more widen the tolerance",
      "needs.bytes: \"" + BytesText(draft) +
          "\", each tensor once: a kernel that seems to move less is judged implausible",
      "needs.flops: \"" + operations + "\", " +
          (operations == "0" ? "not counted: write the fewest that any kernel needs"
                             : "as this kernel: lower it if fewer suffice")};
  if (const std::string precision = PrecisionText(source, draft); !precision.empty())
    guesses.push_back("tolerance: {accumulation: " + precision +
                      "}, since this kernel computes in it: leave it out if kernels must sum in float32");
  for (const DraftParameter& parameter : draft.parameters) {
    if (parameter.source.pointer && parameter.role != Role::kOutput && parameter.low.empty() && !parameter.offsets)
      guesses.push_back(parameter.source.name + " holds normally distributed numbers (parameters, distribution)");
  }
  return guesses;
}

std::string LauncherText(const CudaSource& source, const Draft& draft) {
  const std::string why = WhyWrapped(source, draft);
  if (why.empty()) return "";
  std::string declarations, arguments;
  for (const DraftParameter& parameter : draft.parameters)
    declarations += (declarations.empty() ? "" : ", ") + DeclarationOf(parameter);
  for (const FunctionParameter& parameter : draft.function->parameters) {
    const auto drafted = std::find_if(draft.parameters.begin(), draft.parameters.end(),
                                      [&](const DraftParameter& one) { return one.source.name == parameter.name; });
    arguments += (arguments.empty() ? "" : ", ") + (drafted == draft.parameters.end() ? "0" : ArgumentOf(*drafted));
  }
  return "// Calls " + draft.function->name + ", which " + why +
         ". Appended to sources that define it.\nextern \"C\" void " +
         (source.Find("launch") == nullptr ? "launch" : "launch_problem") + "(" + declarations + ") {\n" +
         CallText(draft, arguments) + "}\n";
}

std::string EntryText(const CudaSource& source, const Draft& draft) {
  const std::string why = WhyWrapped(source, draft), &name = draft.function->name;
  if (why.empty()) return name + ": candidates define it";
  return name + ": candidates define it, or what launcher.cu defines (" + name + " " + why + ")";
}

std::string ReferenceText(const CudaSource& source, const Draft& draft) {
  std::string text = source.NeededBy(
      *draft.function,
      [&draft](const std::string& include) { return CheckIncludes(include + "\n", draft.libraries).why.empty(); },
      false);
  if (!text.empty() && text.back() != '\n') text += '\n';
  for (size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

std::string ProblemText(const CudaSource& source, const Draft& draft, const OracleText& oracle) {
  std::string title = draft.name;
  std::replace(title.begin(), title.end(), '_', ' ');
  const std::string heading = HeadingOf(source.text());
  std::string text = "# Guessed from the kernel, to be checked:\n";
  for (const std::string& guess : draft.guesses) text += "#   " + guess + "\n";
  for (const std::string& guess : ValueGuesses(source, draft, oracle)) text += "#   " + guess + "\n";
  text += "name: \"" + draft.name + "\"\ntitle: \"" + title +
          "\"\nfamily: " + (oracle.translated ? "elementwise" : "unsorted") + "\nsplit: train\ntraits: [" +
          (oracle.translated ? "elementwise" : "drafted") + "]\ndescription: >\n  " +
          (heading.empty() ? "What the function " + draft.function->name + " computes." : heading) + "\n";
  text += oracle.yaml;
  if (draft.function->name != "launch") text += "entry: " + draft.function->name + "\n";
  text += "parameters:\n";
  for (const DraftParameter& parameter : draft.parameters) text += ParameterText(parameter);
  text += SizesText(source, draft);
  text += "accumulations: \"" + AccumulationsText(source, draft, oracle) + "\"  # the terms that one result sums\n";
  if (const std::string precision = PrecisionText(source, draft); !precision.empty())
    text += "tolerance: {accumulation: " + precision + "}  # as this kernel sums\n";
  std::string allowed;
  if (!draft.libraries.empty()) allowed = "libraries: [" + JoinedText(draft.libraries) + "]";
  if (ReferenceText(source, draft).find("cudaMalloc") != std::string::npos)
    allowed += std::string(allowed.empty() ? "" : ", ") + "device_malloc: true";
  if (!allowed.empty()) text += "allow: {" + allowed + "}\n";
  text +=
      "# Every tensor once; the operations of this kernel, 0 if they were not counted: lower them if fewer "
      "suffice.\n";
  return text + "needs: {bytes: \"" + BytesText(draft) + "\", flops: \"" + OperationsText(draft, oracle) + "\"}\n";
}

}  // namespace kgrpo::evaluator
