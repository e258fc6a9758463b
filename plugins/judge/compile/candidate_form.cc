#include "judge/compile/candidate_form.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>
#include <utility>

#include "cuda_source/conditionals.h"
#include "cuda_source/lexer.h"
#include "judge/problem/dtype.h"

namespace kgrpo::evaluator {
namespace {

using cuda_source::IncludedHeader, cuda_source::Lex, cuda_source::Token;

namespace fs = std::filesystem;

constexpr char kExport[] = "TVM_FFI_DLL_EXPORT_TYPED_FUNC";

std::string ActiveText(const std::string& source) {
  return cuda_source::WithoutInactive(cuda_source::RemoveSplices(source)).text;
}

// A host function that takes or returns PyTorch's tensors.
struct TensorFunction {
  std::string name;
  bool called = false;  // by the source's other functions
};

// Returns whether PyTorch's tensor type is named between two tokens.
bool NamesTensor(const std::vector<Token>& tokens, size_t begin, size_t end) {
  return std::any_of(tokens.begin() + static_cast<ptrdiff_t>(begin), tokens.begin() + static_cast<ptrdiff_t>(end),
                     [](const Token& token) { return token.Is("Tensor"); });
}

std::vector<TensorFunction> TensorFunctions(const std::vector<Token>& tokens) {
  std::vector<TensorFunction> functions;
  std::vector<std::string> calls;
  const std::vector<size_t> closes = cuda_source::Closes(tokens);
  const auto ends = [](const Token& token) {
    return token.Is(";") || token.Is("{") || token.Is("}") || token.kind == Token::Kind::kDirective;
  };
  size_t begin = 0;  // of the declaration
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (ends(tokens[i - 1])) begin = i;
    if (tokens[i].kind != Token::Kind::kIdentifier || !tokens[i + 1].Is("(")) continue;
    const size_t after = closes[i + 1] == 0 ? tokens.size() : closes[i + 1] + 1;
    const auto has = [&](std::string_view word) {
      return std::any_of(tokens.begin() + static_cast<ptrdiff_t>(begin), tokens.begin() + static_cast<ptrdiff_t>(i),
                         [&](const Token& token) { return token.Is(word); });
    };
    const bool keyword = tokens[i].Is("if") || tokens[i].Is("for") || tokens[i].Is("while") || tokens[i].Is("switch");
    const bool body = after < tokens.size() && tokens[after].Is("{");
    const Token& before = tokens[i - 1];
    if (body && !keyword && !has("=") && !has("__global__") && !has("__device__") &&
        NamesTensor(tokens, begin, after)) {
      functions.push_back({std::string(tokens[i].text)});
    } else if (before.Is("return") || (before.kind == Token::Kind::kPunctuation && !before.Is(">") && !before.Is("*") &&
                                       !before.Is("&") && !before.Is("."))) {
      calls.emplace_back(tokens[i].text);
    }
  }
  for (TensorFunction& function : functions)
    function.called = std::find(calls.begin(), calls.end(), function.name) != calls.end();
  return functions;
}

// What PYBIND11_MODULE binds: `m.def("forward", &run` gives ("forward", "run").
std::vector<std::pair<std::string, std::string>> BoundFunctions(const std::vector<Token>& tokens) {
  std::vector<std::pair<std::string, std::string>> bindings;
  for (size_t i = 0; i + 4 < tokens.size(); ++i) {
    if (!tokens[i].Is("def") || !tokens[i + 1].Is("(") || tokens[i + 2].kind != Token::Kind::kString) continue;
    const size_t at = tokens[i + 4].Is("&") ? i + 5 : i + 4;
    const std::string_view name = tokens[i + 2].text;
    if (at < tokens.size() && tokens[at].kind == Token::Kind::kIdentifier && name.size() >= 2)
      bindings.emplace_back(name.substr(1, name.size() - 2), tokens[at].text);
  }
  return bindings;
}

constexpr auto kTorchFolders = {"torch/", "ATen/", "c10/", "pybind11/"};

bool StartsWithOneOf(std::string_view text, std::initializer_list<const char*> starts) {
  return std::any_of(starts.begin(), starts.end(), [text](const char* start) { return text.starts_with(start); });
}

}  // namespace

std::vector<std::string> ExportedFunctions(const std::string& source) {
  const std::string text = ActiveText(source);
  const std::vector<Token> tokens = Lex(text).tokens;
  std::vector<std::string> names;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kIdentifier) continue;
    if (tokens[i].text == kExport && i + 2 < tokens.size()) names.emplace_back(tokens[i + 2].text);
    if (tokens[i].text.substr(0, sizeof kTvmFfiSymbol - 1) == kTvmFfiSymbol)
      names.emplace_back(tokens[i].text.substr(sizeof kTvmFfiSymbol - 1));
  }
  return names;
}

std::string TensorFunctionOf(const std::string& source, const Problem& problem) {
  const std::string text = ActiveText(source);
  const std::vector<Token> tokens = Lex(text).tokens;
  const std::vector<TensorFunction> functions = TensorFunctions(tokens);
  const auto defined = [&](const std::string& name) {
    return std::any_of(functions.begin(), functions.end(), [&](const auto& function) { return function.name == name; });
  };
  const auto bindings = BoundFunctions(tokens);
  const std::string own = problem.own_entry.empty() ? problem.entry : problem.own_entry;
  for (const std::string& name : {own, std::string("forward")}) {
    for (const auto& [bound, function] : bindings) {
      if (bound == name) return function;
    }
    if (defined(name)) return name;
  }
  if (bindings.size() == 1) return bindings[0].second;
  std::string only;
  for (const TensorFunction& function : functions) {
    if (function.called || function.name == only) continue;
    if (!only.empty()) return own;
    only = function.name;
  }
  return only.empty() ? own : only;
}

bool IsPtx(const std::string& source) {
  static constexpr std::string_view kBegin = ".version";
  size_t at = 0;
  while ((at = source.find_first_not_of(" \t\r\n", at)) != std::string::npos) {
    const bool line = source.compare(at, 2, "//") == 0;
    if (!line && source.compare(at, 2, "/*") != 0) return source.compare(at, kBegin.size(), kBegin) == 0;
    at = line ? source.find('\n', at) : source.find("*/", at + 2);
    if (at == std::string::npos) return false;
    at += line ? 1 : 2;
  }
  return false;
}

namespace {

// The line without blanks in front, if its first word is `word`, from behind that; else empty.
std::string_view After(std::string_view line, std::string_view word) {
  const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(begin);
  if (!line.starts_with(word)) return {};
  line.remove_prefix(word.size());
  return line.starts_with(' ') || line.starts_with('\t') ? line : std::string_view();
}

}  // namespace

bool IsTriton(const std::string& source) {
  std::string_view text = source;
  if (text.starts_with(cuda_source::kByteOrderMark)) text.remove_prefix(cuda_source::kByteOrderMark.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    for (const char* keyword : {"import", "from"}) {
      std::string_view rest = After(line, keyword);
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
      if (rest.starts_with("triton") && (rest.size() == 6 || std::strchr(" \t\r.,;", rest[6]) != nullptr)) return true;
    }
    at = end + 1;
  }
  return false;
}

CandidateForm FormOf(const std::string& source, const std::string& entry) {
  if (IsPtx(source)) return CandidateForm::kPtx;
  if (IsTriton(source)) return CandidateForm::kTriton;
  if (!ExportedFunctions(source).empty()) return CandidateForm::kTvmFfi;
  const std::string text = ActiveText(source);
  const std::vector<Token> tokens = Lex(text).tokens;
  const std::vector<TensorFunction> functions = TensorFunctions(tokens);
  const bool names_torch =
      std::any_of(tokens.begin(), tokens.end(), [](const Token& token) { return token.Is("torch") || token.Is("at"); });
  const bool includes = std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return StartsWithOneOf(IncludedHeader(token), kTorchFolders);
  });
  const bool takes_tensors = names_torch && !functions.empty();
  const bool entry_takes_tensors = std::any_of(functions.begin(), functions.end(),
                                               [&](const TensorFunction& function) { return function.name == entry; });
  if (cuda_source::DefinesFunction(text, entry) && !entry_takes_tensors) return CandidateForm::kLaunch;
  return takes_tensors || includes ? CandidateForm::kTorch : CandidateForm::kLaunch;
}

TvmFfi TvmFfi::Find(const std::string& configured) {
  const char* const set = std::getenv("KGRPO_TVM_FFI");
  const fs::path folder = !configured.empty() ? configured : set != nullptr ? set : "";
  std::error_code code;
  if (folder.empty() || !fs::exists(folder / "lib/libtvm_ffi.so", code)) return {};
  return {fs::weakly_canonical(folder).string()};
}

std::vector<std::string> TvmFfi::Readable() const {
  if (folder.empty()) return {};
  return {folder + "/include", folder + "/lib"};
}

std::string TvmFfi::Version() const {
  std::error_code code;
  const auto bytes = fs::file_size(folder + "/lib/libtvm_ffi.so", code);
  return folder + "; " + std::to_string(code ? 0 : bytes);
}

std::string WhyNotForm(CandidateForm form, const Problem& problem, const std::optional<TvmFfi>& tvm_ffi) {
  if (form == CandidateForm::kTvmFfi && !tvm_ffi) {
    return "A candidate in TVM-FFI's form (__tvm_ffi_NAME) is judged on a GPU, by evaluator_cuda. For this evaluator "
           "define the launch function";
  }
  if (form == CandidateForm::kTvmFfi && tvm_ffi->folder.empty()) {
    return "A candidate in TVM-FFI's form needs the package apache-tvm-ffi: name the folder that contains its include/ "
           "and lib/ (site-packages/tvm_ffi) by the evaluator's option tvm_ffi or by KGRPO_TVM_FFI";
  }
  for (const Parameter& parameter : problem.parameters) {
    if (form != CandidateForm::kLaunch && parameter.pitch) {
      return "The problem's tensor " + parameter.name +
             " has gaps between its rows, so candidates must define the launch function";
    }
  }
  return "";
}

std::vector<std::string> FormArguments(CandidateForm form, const std::string& helpers,
                                       const std::optional<TvmFfi>& tvm_ffi) {
  std::vector<std::string> arguments = {"-I" + helpers + "/form_include"};
  if (form == CandidateForm::kTorch) {
    arguments.emplace_back("--expt-relaxed-constexpr");
  } else {
    arguments.insert(arguments.end(), {"-isystem", tvm_ffi->folder + "/include", "-L" + tvm_ffi->folder + "/lib",
                                       "-Xlinker", "-rpath=" + tvm_ffi->folder + "/lib", "-ltvm_ffi"});
  }
  return arguments;
}

std::string WithoutTorchHeaders(const std::string& source) {
  std::string text = source;
  for (const Token& token : Lex(source).tokens) {
    if (!StartsWithOneOf(IncludedHeader(token), kTorchFolders)) continue;
    for (size_t i = token.begin; i < token.end; ++i) text[i] = text[i] == '\n' ? '\n' : ' ';
  }
  return text;
}

std::string MissingOfTorch(const std::string& diagnosis) {
  // In the compiler's words: `namespace "torch" has no member "matmul"`, `class "at::Tensor" has no member "mean"`,
  // `identifier "AT_DISPATCH_X" is undefined`.
  static const std::regex kMember(
      "(?:namespace|class) \"((?:torch|at|c10|caffe2|pybind11)\\b[^\"]*)\" has no member "
      "\"([^\"]+)\"");
  static const std::regex kMacro("identifier \"((?:AT|TORCH|C10)_[^\"]+)\" is undefined");
  static const std::regex kOperator(
      "no operator \"([^\"]+)\" matches these operands[ |\n]*operand types are: [^|\n]*at::Tensor");
  const size_t first = diagnosis.find("error:");
  if (first == std::string::npos) return "";
  const std::string error = diagnosis.substr(first, diagnosis.find("error:", first + 1) - first);
  std::smatch match;
  std::string name;
  if (std::regex_search(error, match, kMember)) name = match[1].str() + "::" + match[2].str();
  if (std::regex_search(error, match, kMacro)) name = match[1];
  if (std::regex_search(error, match, kOperator)) name = "operator " + match[1].str() + " of tensors";
  if (name.empty()) return "";
  return "The source uses PyTorch's " + name.substr(0, 120) +
         ", which candidates cannot use: write the kernel itself. Of PyTorch they may use tensors, their views, "
         "allocation, dispatch over dtypes, checks and the current stream.";
}

bool FormAllowsHeader(CandidateForm form, const std::string& header) {
  if (header.find("..") != std::string::npos) return false;
  if (form == CandidateForm::kTorch) return StartsWithOneOf(header, kTorchFolders);
  return form == CandidateForm::kTvmFfi && StartsWithOneOf(header, {"tvm/ffi/", "dlpack/"});
}

std::string CheckFormSymbols(const std::vector<std::string>& undefined) {
  // Access by name to TVM-FFI's functions; and device profilers.
  static const char* const kForbidden[] = {"cupti", "TVMFFIFunctionGetGlobal", "TVMFFIEnvMod"};
  for (const std::string& symbol : undefined) {
    for (const char* word : kForbidden) {
      if (symbol.find(word) != std::string::npos)
        return "The host code uses " + symbol.substr(0, 120) + ", which is not allowed";
    }
  }
  return "";
}

bool UsesFormLibraries(const CompiledKernel& kernel) {
  return std::any_of(kernel.undefined.begin(), kernel.undefined.end(),
                     [](const std::string& symbol) { return symbol.rfind("TVMFFI", 0) == 0; });
}

Trouble FormBroken(int exit_code) {
  // The codes of form_include/kgrpo/torch_types.h and tvm_ffi_form.h.
  switch (exit_code) {
    case 90: return {"wrong", "It returned a tensor of another shape than the output's."};
    case 91: return {"wrong", "It returned a tensor of another dtype than the output's."};
    case 92:
      return {"unsupported",
              "The host code makes a tensor on the CPU; candidates have tensors on the GPU only: pass x.options()."};
    case 93: return {"wrong", "It returned a tensor that is transposed or has gaps: return a contiguous one."};
    case 94: return {"crash", "The host code threw an exception, perhaps by TORCH_CHECK or data_ptr of another dtype."};
    case 95: return {"wrong", "It returned another number of tensors than the problem has outputs."};
    case 96:
      return {
          "crash",
          "The TVM-FFI function returned an error, called with all of the problem's parameters in order, and with its "
          "tensors alone."};
    case 97:
      return {
          "unsupported",
          "The host code copies or converts a tensor by PyTorch (contiguous or view of a transposed one, to another "
          "dtype or place), which candidates cannot do: write the kernel itself."};
    default: return {};
  }
}

}  // namespace kgrpo::evaluator
