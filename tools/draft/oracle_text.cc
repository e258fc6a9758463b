#include "draft/oracle_text.h"

#include <kgrpo/sdk/error.h>

#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "draft/float64_words.h"
#include "draft/uses.h"
#include "judge/verdict/problem_findings.h"  // kOracleToWrite
#include "process/subprocess.h"

namespace kgrpo::evaluator {
namespace {

using Kind = Token::Kind;

// Thrown where a kernel is no elementwise map.
struct NotAMap {
  size_t token;
  std::string what;
};

class Translator {
 public:
  Translator(const CudaSource& source, const Draft& draft) : source_(source), tokens_(source.tokens()), draft_(draft) {}

  // The statements of the loop over the elements; throws NotAMap.
  OracleText Run() {
    const CudaFunction& kernel = FindKernel();
    size_t begin = kernel.body + 1, end = kernel.end - 1;
    const std::string bound = ReadIndex(kernel, &begin, &end);
    OracleText oracle;
    const std::string body = Translate(begin, end, true);
    oracle.operations = std::max(operations_, 1);
    oracle.text = prelude_ + (prelude_.empty() ? "" : "\n") + "{SIGNATURE} {\n  for (int64_t " + index_ + " = 0; " +
                  index_ + " < " + bound + "; ++" + index_ + ") {\n    " + body + "\n  }\n}\n";
    oracle.translated = true;
    return oracle;
  }

 private:
  // The one kernel, and what its parameters are called in the oracle.
  const CudaFunction& FindKernel() {
    const CudaFunction& function = *draft_.function;
    if (function.kernel) {
      for (const FunctionParameter& parameter : function.parameters) AddParameter(parameter, parameter.name);
      return function;
    }
    const std::vector<KernelLaunch> launches = LaunchesOf(source_, function);
    if (launches.size() != 1) throw NotAMap{function.begin, std::to_string(launches.size()) + " launches"};
    const CudaFunction& kernel = *launches[0].kernel;
    for (size_t i = 0; i < kernel.parameters.size() && i < launches[0].arguments.size(); ++i) {
      const std::string& argument = launches[0].arguments[i];
      if (function.IndexOf(argument) < 0) throw NotAMap{function.body, "the argument " + argument};
      AddParameter(kernel.parameters[i], argument);
    }
    return kernel;
  }

  void AddParameter(const FunctionParameter& parameter, const std::string& name) {
    (parameter.pointer ? tensors_ : known_)[parameter.name] = name;
  }

  // The end of a statement that begins at i, past its ";".
  size_t StatementEnd(size_t i, size_t end) const { return tokens_.SkipToSemicolon(i, end); }

  bool IsIndexOf(size_t begin, size_t end, const char* of) const {
    for (size_t i = begin; i + 2 < end; ++i) {
      if (tokens_.At(i).Is(of)) return tokens_.At(i + 1).Is(".") && tokens_.At(i + 2).Is("x");
    }
    return false;
  }

  // `i < n`, whose first token is at `at`: the bound, in the oracle's names. `last`: the token that ends it.
  std::string ReadBound(size_t at, size_t last) {
    if (!tokens_.At(at).Is(index_)) throw NotAMap{at, "no bound of " + index_};
    std::string bound;
    for (size_t i = at; i < last; ++i) {
      const Token& token = tokens_.At(i);
      if (token.Is(index_) || token.Is("<") || token.Is(">") || token.Is("=")) continue;
      if (token.kind == Kind::kIdentifier) {
        const auto found = known_.find(std::string(token.text));
        if (found == known_.end()) throw NotAMap{i, "the bound " + std::string(token.text)};
        bound += found->second;
      } else {
        bound += token.text;
      }
    }
    return bound;
  }

  // Reads the index and its guard, and narrows [*begin, *end) to the statements for one element. Returns the number of
  // elements.
  std::string ReadIndex(const CudaFunction& kernel, size_t* begin, size_t* end) {
    // A grid-stride loop, or a declaration of the index, and perhaps of the stride.
    size_t i = *begin;
    while (i < *end && IsDeclaration(i)) {
      const size_t next = StatementEnd(i, *end);
      const bool index = IsIndexOf(i, next, "blockIdx") && IsIndexOf(i, next, "threadIdx");
      const bool stride = IsIndexOf(i, next, "gridDim");
      if (!index && !stride) break;
      const std::string name = DeclaredName(i, next);
      if (index && !index_.empty()) throw NotAMap{i, "a second index"};
      (index ? index_ : stride_) = name;
      i = next;
    }
    if (tokens_.At(i).Is("for")) return ReadStrideLoop(i, begin, end);
    if (index_.empty()) throw NotAMap{kernel.body, "no index of one dimension"};
    if (!tokens_.At(i).Is("if"))
      throw NotAMap{i, HasIf(i, *end) ? "a statement between the index and its guard" : "no guard"};
    const size_t close = tokens_.SkipGroup(i + 1, *end);
    const bool leaves = tokens_.At(i + 3).Is(">");
    const std::string bound = ReadBound(i + 2, close - 1);
    if (leaves) {
      const bool braces = tokens_.At(close).Is("{");
      if (!tokens_.At(close + (braces ? 1 : 0)).Is("return")) throw NotAMap{close, "no return"};
      *begin = braces ? tokens_.SkipGroup(close, *end) : StatementEnd(close, *end);
      return bound;
    }
    SetBody(close, begin, end);
    return bound;
  }

  std::string ReadStrideLoop(size_t i, size_t* begin, size_t* end) {
    const size_t open = i + 1, close = tokens_.SkipGroup(open, *end);
    const size_t condition = StatementEnd(open + 1, close), step = StatementEnd(condition, close);
    const std::string name = DeclaredName(open + 1, condition);
    const bool own = IsIndexOf(open + 1, condition, "blockIdx") && IsIndexOf(open + 1, condition, "threadIdx");
    const bool given = !index_.empty() && tokens_.At(condition - 2).Is(index_);
    if (!own && !given) throw NotAMap{i, "a loop within a thread"};
    const bool strides = IsIndexOf(step, close, "gridDim") || (!stride_.empty() && tokens_.At(close - 2).Is(stride_));
    if (!strides) throw NotAMap{step, "a step other than the grid's"};
    index_ = name;
    const std::string bound = ReadBound(condition, step - 1);
    SetBody(close, begin, end);
    return bound;
  }

  // The body of a guard or loop, which must be the last statement.
  void SetBody(size_t at, size_t* begin, size_t* end) const {
    const bool braces = tokens_.At(at).Is("{");
    const size_t after = braces ? tokens_.SkipGroup(at, *end) : StatementEnd(at, *end);
    if (after != *end) throw NotAMap{after, "statements after the guard"};
    *begin = braces ? at + 1 : at;
    *end = braces ? after - 1 : after;
  }

  bool HasIf(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      if (tokens_.At(i).Is("if")) return true;
    }
    return false;
  }
  bool IsDeclaration(size_t i) const { return tokens_.At(i).Is("const") || IsDeclaring(tokens_.At(i)); }
  std::string DeclaredName(size_t begin, size_t end) const {
    for (size_t i = begin + 1; i < end; ++i) {
      if (tokens_.At(i).Is("=")) return std::string(tokens_.At(i - 1).text);
    }
    throw NotAMap{begin, "a declaration without a value"};
  }

  // Translates the tokens to float64, and keeps the comments and spaces between them. `of_element`: the tokens are the
  // kernel's, which may access its tensors at the index only.
  std::string Translate(size_t begin, size_t end, bool of_element) {
    std::string text;
    for (size_t i = begin; i < end; ++i) {
      const Token& token = tokens_.At(i);
      if (i > begin) text += source_.text().substr(tokens_.At(i - 1).end, token.begin - tokens_.At(i - 1).end);
      if (token.kind == Kind::kDirective && std::string(token.text).find("pragma") == std::string::npos)
        throw NotAMap{i, "a directive"};
      if (token.kind == Kind::kDirective) continue;
      if (token.kind == Kind::kNumber) {
        text += Number(std::string(token.text));
      } else if (token.kind == Kind::kIdentifier) {
        text += Word(&i, end, of_element);
      } else if (token.kind == Kind::kPunctuation) {
        static const std::string kOperators = "+-*/";
        operations_ += token.text.size() == 1 && kOperators.find(token.text) != std::string::npos;
        if (token.Is("<<<") || (token.Is("&") && !tokens_.At(i - 1).Is("&") && !tokens_.At(i + 1).Is("&")))
          throw NotAMap{i, std::string(token.text)};
        text += token.text;
      } else {
        throw NotAMap{i, std::string(token.text)};
      }
    }
    return text;
  }

  static std::string Number(std::string text) {
    const bool hexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
    if (!hexadecimal && (text.back() == 'f' || text.back() == 'F')) text.pop_back();
    return text;
  }

  // The word at *i, and what belongs to it.
  std::string Word(size_t* i, size_t end, bool of_element) {
    const Token& token = tokens_.At(*i);
    const std::string name(token.text);
    if (IsFloatType(token)) return "double";
    if (tokens_.At(*i - 1).Is(".") || tokens_.At(*i - 1).Is("->")) throw NotAMap{*i, "the member " + name};
    if (IsDeclaring(token) && *i + 1 < end && tokens_.At(*i + 1).kind == Kind::kIdentifier)
      locals_.insert(std::string(tokens_.At(*i + 1).text));
    if (IsKnownWord(token)) return name == "return" && of_element ? throw NotAMap{*i, "a return"} : name;
    if (!of_element && locals_.contains(name) && !tokens_.At(*i + 1).Is("(")) return name;
    if (const auto tensor = tensors_.find(name); tensor != tensors_.end()) {
      const bool element =
          *i + 3 < end && tokens_.At(*i + 1).Is("[") && tokens_.At(*i + 2).Is(index_) && tokens_.At(*i + 3).Is("]");
      if (!element || !of_element) throw NotAMap{*i, name + " at another index than the element's"};
      return tensor->second;
    }
    if (*i + 1 < end && tokens_.At(*i + 1).Is("(")) return Call(i, name);
    if (name == index_ || locals_.contains(name)) return name;
    if (*i > 0 && IsFloatType(tokens_.At(*i - 1))) {
      locals_.insert(name);
      return name;
    }
    if (const auto known = known_.find(name); of_element && known != known_.end()) return known->second;
    if (AddConstant(name)) return name;
    const std::string macro = source_.ValueOf(name);  // `#define ALPHA 0.5f`
    if (const LexedSource value = Lex(macro); value.tokens.size() == 1 && value.tokens[0].kind == Kind::kNumber)
      return Number(macro);
    throw NotAMap{*i, name};
  }

  std::string Call(size_t* i, const std::string& name) {
    ++operations_;
    if (name == "__ldg" && tokens_.At(*i + 2).Is("&")) {
      *i += 2;
      operations_ -= 1;
      return "(";
    }
    if (const auto found = MathFunctions().find(name); found != MathFunctions().end()) {
      const bool qualified = *i > 0 && tokens_.At(*i - 1).Is("::");
      return (qualified ? "" : "std::") + found->second;
    }
    if (const std::string helper = HelperText(name); !helper.empty()) {
      if (defined_.insert(name).second) prelude_ += helper;
      return name;
    }
    const CudaFunction* function = source_.Find(name);
    if (function == nullptr || !function->device || function->kernel || function->is_template) throw NotAMap{*i, name};
    if (defined_.insert(name).second) AddFunction(*function);
    return name;
  }

  // A device function of numbers, before what calls it.
  void AddFunction(const CudaFunction& function) {
    const std::set<std::string> outer = locals_;
    locals_.clear();
    for (const FunctionParameter& parameter : function.parameters) {
      if (parameter.pointer) throw NotAMap{function.begin, "a device function of pointers"};
      locals_.insert(parameter.name);
    }
    size_t begin = function.begin;
    static const std::set<std::string, std::less<>> kQualifiers = {
        "__device__", "__host__", "__forceinline__", "__inline__", "inline", "static", "__noinline__", "constexpr"};
    while (kQualifiers.contains(tokens_.At(begin).text)) ++begin;
    defined_.insert(function.name);
    std::string head;
    size_t name = begin;
    while (!tokens_.At(name).Is(function.name)) ++name;
    for (size_t i = begin; i < name; ++i)
      head += (IsFloatType(tokens_.At(i)) ? "double" : std::string(tokens_.At(i).text)) + " ";
    const std::string rest = Translate(name + 1, function.end, false);
    prelude_ += "static " + head + function.name + rest + "\n";
    locals_ = outer;
  }

  // `constexpr int kHarmonics = 6;` at namespace scope.
  bool AddConstant(const std::string& name) {
    if (defined_.contains(name)) return true;
    for (size_t i = 0; i + 3 < tokens_.size(); ++i) {
      if (!tokens_.At(i).Is("constexpr")) continue;
      const size_t end = StatementEnd(i, tokens_.size());
      for (size_t t = i + 1; t + 1 < end; ++t) {
        if (!tokens_.At(t).Is(name) || !tokens_.At(t + 1).Is("=")) continue;
        defined_.insert(name);
        const std::set<std::string> outer = locals_;
        locals_.insert(name);
        const std::string text = Translate(i, end, false);
        locals_ = outer;
        prelude_ += text + "\n";
        return true;
      }
    }
    return false;
  }

  const CudaSource& source_;
  const SourceReader& tokens_;
  const Draft& draft_;
  std::map<std::string, std::string> tensors_, known_;  // the kernel's parameters by the oracle's names
  std::string index_, stride_, prelude_;
  std::set<std::string> locals_, defined_;
  int operations_ = 0;
};

std::string SignatureOf(const Draft& draft, bool checks) {
  std::string text;
  for (const DraftParameter& parameter : draft.parameters) {
    const bool floating = Info(parameter.dtype).is_floating;
    const std::string type = floating ? "double" : "int64_t";
    text += text.empty() ? "" : ", ";
    if (parameter.role == Role::kInput || (checks && parameter.source.pointer)) text += "const ";
    text += type + (parameter.source.pointer ? "* " : " ") + parameter.source.name;
  }
  return (checks ? "std::string check(" : "extern \"C\" void oracle(") + text + ")";
}

std::string Skeleton(const Draft& draft) {
  std::string text =
      std::string(kOracleToWrite) +
      ": `problems check` refuses the problem until this line is gone.\n"
      "// Write what the kernel computes, in double. Inputs hold what the kernel sees; tensors are row-major.\n";
  std::string body, unused;
  for (const DraftParameter& parameter : draft.parameters) {
    const std::string& name = parameter.source.name;
    if (parameter.role == Role::kOutput) {
      body += "  for (int64_t i = 0; i < " + Draft::Elements(parameter) + "; ++i) " + name + "[i] = 0;  // not yet\n";
    }
    unused += "  (void)" + name + ";\n";
  }
  return text + SignatureOf(draft, false) + " {\n" + unused + body + "}\n";
}

}  // namespace

std::string CheckerSkeleton(const Draft& draft) {
  std::string text = std::string(kCheckerToWrite) +
                     ": `problems check` refuses the problem until this line is gone.\n"
                     "// Return \"\" if the outputs are right, else why not. Outputs may contain any values, also NaNs "
                     "and indices out\n"
                     "// of range: check them before you use them. Tensors are row-major.\n";
  std::string body, unused;
  for (const DraftParameter& parameter : draft.parameters) {
    const std::string& name = parameter.source.name;
    const bool floating = Info(parameter.dtype).is_floating;
    unused += "  (void)" + name + ";\n";
    if (parameter.role != Role::kOutput) continue;
    body += "  for (int64_t i = 0; i < " + Draft::Elements(parameter) + "; ++i) {\n    if (" +
            (floating ? "!std::isfinite(" + name + "[i])" : name + "[i] < 0") + ") return \"" + name +
            "[\" + std::to_string(i) + \"] is " + (floating ? "not a finite number" : "negative") + "\";\n  }\n";
  }
  return text + SignatureOf(draft, true) + " {\n" + unused + body +
         "  return \"the draft of checker.cc accepts no output\";  // \"\" when the conditions are complete\n}\n";
}

std::string TraceOracle(const Problem& problem, const std::string& function, const std::string& python,
                        const std::string& script) {
  constexpr double kSeconds = 600;
  static const std::map<Role, std::string> kRoles = {
      {Role::kInput, "input"}, {Role::kOutput, "output"}, {Role::kInout, "inout"}};
  const size_t colon = function.rfind(".py:");
  const std::string file = colon == std::string::npos ? function : function.substr(0, colon + 3);
  const std::string name = colon == std::string::npos ? "" : function.substr(colon + 4);
  process::Subprocess::Spec spec;
  spec.argv = {python,
               script,
               file,
               name,
               problem.own_entry.empty() ? problem.entry : problem.own_entry,
               problem.directory + "/oracle"};
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.IsTensor())
      spec.argv.push_back(parameter.name + ":" + kRoles.at(parameter.role) + ":" + Info(parameter.dtype).name);
  }
  for (const auto& [size_name, size] : problem.SizesByName()) {
    spec.argv.push_back("@" + size_name);
    for (const auto& [symbol, value] : *size) spec.argv.push_back(symbol + "=" + std::to_string(value));
    for (const Parameter& parameter : problem.parameters) {
      std::ostringstream value;
      value.precision(17);
      if (!parameter.IsTensor() && Info(parameter.dtype).is_floating) value << std::showpoint;
      if (!parameter.IsTensor()) value << parameter.value.Evaluate(*size);
      for (const int64_t extent : parameter.ShapeAt(*size)) value << (value.tellp() > 0 ? "," : "") << extent;
      spec.argv.push_back(parameter.name + "=" + value.str());
    }
  }
  const process::Subprocess::Result result = process::Subprocess::Run(spec, kSeconds);
  std::string said = result.output;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (!result.Succeeded())
    throw Error(KGRPO_ERROR_INVALID,
                "--torch " + function + ": " + (result.timed_out ? "no answer in 10 minutes" : said));
  return said.substr(said.rfind('\n') + 1);
}

OracleText MakeOracle(const CudaSource& source, const Draft& draft) {
  const std::string heading = "// What the kernels of " + draft.name + " are compared with, in float64.\n";
  const std::string includes = "#include <algorithm>\n#include <cmath>\n#include <cstdint>\n\n";
  OracleText oracle;
  try {
    oracle = Translator(source, draft).Run();
    const std::string mark = "{SIGNATURE}";
    oracle.text.replace(oracle.text.find(mark), mark.size(), SignatureOf(draft, false));
    oracle.text = heading + "// Translated from the kernel: read it before you rely on it.\n" + includes + oracle.text;
  } catch (const NotAMap& not_a_map) {
    oracle = {};
    oracle.why_not = "line " + std::to_string(source.LineOf(not_a_map.token)) + ": " + not_a_map.what;
    oracle.text = heading + includes + Skeleton(draft);
  } catch (const NotUnderstood& not_understood) {
    oracle = {};
    oracle.why_not = not_understood.what;
    oracle.text = heading + includes + Skeleton(draft);
  }
  return oracle;
}

}  // namespace kgrpo::evaluator
