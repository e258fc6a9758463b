#include "evaluator_shared/candidate_form.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "evaluator_shared/dtype.h"
#include "evaluator_shared/source_lexer.h"

namespace kgrpo::evaluator {
namespace {

namespace fs = std::filesystem;

constexpr char kExport[] = "TVM_FFI_DLL_EXPORT_TYPED_FUNC", kSymbol[] = "__tvm_ffi_";

// The operators of PyTorch that a candidate may call: they allocate memory or make views of it. Any other one would
// compute in the candidate's place.
const std::set<std::string>& AllowedOperators() {
  static const std::set<std::string> kAllowed = {"empty_memory_format",
                                                 "empty_like",
                                                 "empty_strided",
                                                 "new_empty",
                                                 "new_empty_strided",
                                                 "new_zeros",
                                                 "zeros",
                                                 "zeros_like",
                                                 "zero_",
                                                 "view",
                                                 "view_as",
                                                 "reshape",
                                                 "contiguous",
                                                 "is_contiguous",
                                                 "as_strided",
                                                 "transpose_int",
                                                 "permute",
                                                 "t",
                                                 "squeeze",
                                                 "squeeze_dim",
                                                 "unsqueeze",
                                                 "expand",
                                                 "flatten_using_ints",
                                                 "narrow",
                                                 "select_int",
                                                 "slice_Tensor",
                                                 "size_int",
                                                 "stride_int",
                                                 "detach",
                                                 "to_dtype",
                                                 "to_dtype_layout"};
  return kAllowed;
}

// The names of the functions that a source exports to TVM-FFI, in order.
std::vector<std::string> ExportedFunctions(const std::string& source) {
  const std::string text = RemoveSplices(source);
  const std::vector<Token> tokens = Lex(text).tokens;
  std::vector<std::string> names;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kIdentifier) continue;
    if (tokens[i].text == kExport && i + 2 < tokens.size()) names.emplace_back(tokens[i + 2].text);
    if (tokens[i].text.substr(0, sizeof kSymbol - 1) == kSymbol)
      names.emplace_back(tokens[i].text.substr(sizeof kSymbol - 1));
  }
  return names;
}

bool Holds(const std::string& folder, const std::string& file) {
  std::error_code code;
  return !folder.empty() && fs::exists(fs::path(folder) / file, code);
}

std::string FirstThatHolds(const std::vector<std::string>& folders, const std::string& file) {
  for (const std::string& folder : folders) {
    if (Holds(folder, file)) return fs::weakly_canonical(folder).string();
  }
  return "";
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Undefines every word of the text before it, so that no macro of the source can change the text.
std::string AfterUndefining(const std::string& text) {
  std::set<std::string> words;
  for (const Token& token : Lex(text).tokens) {
    if (token.kind == Token::Kind::kIdentifier) words.insert(std::string(token.text));
  }
  std::string undefined = "\n";
  for (const std::string& word : words) undefined += "#undef " + word + "\n";
  return undefined + text;
}

std::string Text(bool value) {
  return value ? "true" : "false";
}

std::string TorchEpilogue(const Problem& problem) {
  static const std::map<DType, std::string> kTypes = {
      {DType::kFloat32, "Float"},     {DType::kFloat64, "Double"}, {DType::kFloat16, "Half"},
      {DType::kBfloat16, "BFloat16"}, {DType::kInt32, "Int"},      {DType::kInt64, "Long"},
      {DType::kUint8, "Byte"},        {DType::kUint32, "UInt32"},  {DType::kInt8, "Char"},
      {DType::kBool, "Bool"},         {DType::kInt16, "Short"},    {DType::kUint16, "UInt16"}};
  std::string parameters, tensors, scalars;
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const int rank = parameter.IsTensor() ? static_cast<int>(parameter.shape.size()) : -1;
    const auto add = [](std::string* list, const std::string& item) { *list += (list->empty() ? "" : ", ") + item; };
    add(&parameters, "{" + Text(parameter.role == Role::kOutput) + ", at::ScalarType::" + kTypes.at(parameter.dtype) +
                         ", " + std::to_string(rank) + "}");
    if (parameter.role == Role::kScalar) {
      add(&scalars, std::string("call.Scalar<") + Info(parameter.dtype).c_type + ">(" + std::to_string(i) + ")");
    } else if (parameter.role != Role::kOutput) {
      add(&tensors, "call.Tensor(" + std::to_string(i) + ")");
    }
  }
  return AfterUndefining(
      "#line 1 \"call of forward\"\nextern \"C\" __attribute__((visibility(\"default\"))) void kgrpo_call(void** "
      "arguments) {\n  kgrpo_torch_form::Call call(arguments, {" +
      parameters +
      "});\n  kgrpo_torch_form::Run(call, [](auto&... each) -> decltype(forward(each...)) { return forward(each...); "
      "},\n    std::make_tuple(" +
      tensors + "), std::make_tuple(" + scalars + "));\n}\n");
}

std::string TvmFfiEpilogue(const Problem& problem, const std::string& source) {
  const std::vector<std::string> names = ExportedFunctions(source);
  // Of several functions, calls the one with the problem's name for the launch function, else the first.
  const bool has_entry = std::find(names.begin(), names.end(), problem.entry) != names.end();
  const std::string function = kSymbol + (has_entry ? problem.entry : names.front());
  std::string parameters;
  for (const Parameter& parameter : problem.parameters) {
    const DTypeInfo& info = Info(parameter.dtype);
    const char* const code =
        parameter.dtype == DType::kBool       ? "kDLBool"
        : parameter.dtype == DType::kBfloat16 ? "kDLBfloat"
        : info.is_floating                    ? "kDLFloat"
        : parameter.dtype == DType::kUint8 || parameter.dtype == DType::kUint16 || parameter.dtype == DType::kUint32
            ? "kDLUInt"
            : "kDLInt";
    parameters += std::string(parameters.empty() ? "" : ", ") + "{" + code + ", " + std::to_string(8 * info.size) +
                  ", " + std::to_string(parameter.IsTensor() ? static_cast<int>(parameter.shape.size()) : -1) + "}";
  }
  return AfterUndefining("#line 1 \"call of " + function + "\"\nextern \"C\" int " + function +
                         "(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);\nextern \"C\" "
                         "__attribute__((visibility(\"default\"))) void kgrpo_call(void** arguments) {\n  "
                         "kgrpo_tvm_ffi_form::Run(&" +
                         function + ", arguments, {" + parameters + "});\n}\n");
}

bool StartsWithOneOf(const std::string& text, std::initializer_list<const char*> starts) {
  return std::any_of(starts.begin(), starts.end(), [&text](const char* start) { return text.rfind(start, 0) == 0; });
}

}  // namespace

CandidateForm FormOf(const std::string& source) {
  if (!ExportedFunctions(source).empty()) return CandidateForm::kTvmFfi;
  const std::string text = RemoveSplices(source);
  const std::vector<Token> tokens = Lex(text).tokens;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].Is("forward") || !tokens[i + 1].Is("(")) continue;
    // `torch::Tensor forward(`, `std::vector<at::Tensor> forward(`: PyTorch is named in its type.
    for (size_t back = 1; back <= 16 && back <= i; ++back) {
      const Token& token = tokens[i - back];
      if (token.Is(";") || token.Is("}") || token.Is("{") || token.kind == Token::Kind::kDirective) break;
      if (token.Is("torch") || token.Is("at")) return CandidateForm::kTorch;
    }
  }
  return CandidateForm::kLaunch;
}

FormLibraries FormLibraries::Find(const std::string& torch, const std::string& tvm_ffi, const std::string& helpers) {
  FormLibraries found;
  found.helpers = helpers;
  const std::string set = Variable("KGRPO_LIBTORCH");
  found.torch =
      FirstThatHolds(!torch.empty() ? std::vector<std::string>{torch}
                     : !set.empty() ? std::vector<std::string>{set}
                                    : std::vector<std::string>{helpers + "/../libtorch", KGRPO_LIBTORCH_OF_BUILD},
                     "lib/libc10_cuda.so");
  if (!Holds(helpers, "libkgrpo_torch_form.so")) found.torch.clear();
  found.tvm_ffi = FirstThatHolds({!tvm_ffi.empty() ? tvm_ffi : Variable("KGRPO_TVM_FFI")}, "lib/libtvm_ffi.so");
  return found;
}

std::vector<std::string> FormLibraries::Readable() const {
  std::vector<std::string> folders;
  const auto add = [&folders](const fs::path& folder) {
    std::error_code code;
    if (fs::is_directory(folder, code)) folders.push_back(fs::weakly_canonical(folder).string());
  };
  if (!torch.empty()) {
    add(fs::path(torch) / "include");
    add(fs::path(torch) / "lib");
    add(fs::path(torch) / "../nvidia");  // what a wheel's libraries need beside them
  }
  if (!tvm_ffi.empty()) {
    add(fs::path(tvm_ffi) / "include");
    add(fs::path(tvm_ffi) / "lib");
  }
  return folders;
}

std::vector<std::string> FormLibraries::CompilerArguments(CandidateForm form) const {
  const auto linked = [](const std::string& folder) {
    return std::vector<std::string>{"-L" + folder, "-Xlinker", "-rpath=" + folder};
  };
  std::vector<std::string> arguments = {"-I" + helpers + "/form_include"};
  const auto add = [&arguments](const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  if (form == CandidateForm::kTorch) {
    add({"-isystem", torch + "/include", "-isystem", torch + "/include/torch/csrc/api/include",
         "--expt-relaxed-constexpr", "-Xlinker", "--no-as-needed"});
    add(linked(torch + "/lib"));
    add(linked(helpers));
    add({"-lkgrpo_torch_form", "-ltorch_cpu", "-lc10", "-lc10_cuda"});
  } else if (form == CandidateForm::kTvmFfi) {
    add({"-isystem", tvm_ffi + "/include"});
    add(linked(tvm_ffi + "/lib"));
    add({"-ltvm_ffi"});
  }
  return arguments;
}

std::string FormLibraries::Version(CandidateForm form) const {
  const std::string& folder = form == CandidateForm::kTorch ? torch : tvm_ffi;
  std::error_code code;
  const auto bytes =
      fs::file_size(folder + (form == CandidateForm::kTorch ? "/lib/libtorch_cpu.so" : "/lib/libtvm_ffi.so"), code);
  return folder + "; " + std::to_string(code ? 0 : bytes);
}

std::string FormLibraries::WhyNot(CandidateForm form, const Problem& problem) const {
  if (form == CandidateForm::kTorch && torch.empty()) {
    return "A candidate in PyTorch's form needs libtorch with libc10_cuda.so: name its folder, the one that holds "
           "include/ "
           "and lib/, by the evaluator's option libtorch or by KGRPO_LIBTORCH";
  }
  if (form == CandidateForm::kTvmFfi && tvm_ffi.empty()) {
    return "A candidate in TVM-FFI's form needs the package apache-tvm-ffi: name the folder that holds its include/ "
           "and lib/ "
           "(site-packages/tvm_ffi) by the evaluator's option tvm_ffi or by KGRPO_TVM_FFI";
  }
  for (const Parameter& parameter : problem.parameters) {
    if (form != CandidateForm::kLaunch && parameter.pitch) {
      return "The problem's tensor " + parameter.name +
             " has gaps between its rows, which only candidates that define launch can be given";
    }
  }
  return "";
}

std::string NeedsGpu(CandidateForm form) {
  return std::string("A candidate in ") +
         (form == CandidateForm::kTorch ? "PyTorch's form (torch::Tensor forward)"
                                        : "TVM-FFI's form (__tvm_ffi_NAME)") +
         " is judged on a GPU alone, by evaluator_cuda. For this evaluator define the launch function";
}

std::string FormPrologue(CandidateForm form) {
  return std::string("#include <kgrpo/") + (form == CandidateForm::kTorch ? "torch" : "tvm_ffi") +
         "_form.h>\n#line 1 \"kernel.cu\"\n";
}

std::string FormEpilogue(CandidateForm form, const Problem& problem, const std::string& source) {
  return form == CandidateForm::kTorch ? TorchEpilogue(problem) : TvmFfiEpilogue(problem, source);
}

bool FormAllowsHeader(CandidateForm form, const std::string& header) {
  if (header.find("..") != std::string::npos) return false;
  if (form == CandidateForm::kTorch) return StartsWithOneOf(header, {"torch/", "ATen/", "c10/"});
  return form == CandidateForm::kTvmFfi && StartsWithOneOf(header, {"tvm/ffi/", "dlpack/"});
}

std::string CheckFormSymbols(const std::vector<std::string>& undefined) {
  constexpr char kOperators[] = "_ZN2at4_ops";
  // Access by name to libraries, their functions, PyTorch's operators and TVM-FFI's functions; and device profilers.
  static const char* const kForbidden[] = {
      "DynamicLibrary", "10Dispatcher", "14OperatorHandle",        "5torch3jit",  "5torch9inductor",
      "aoti_torch",     "cupti",        "TVMFFIFunctionGetGlobal", "TVMFFIEnvMod"};
  for (const std::string& symbol : undefined) {
    for (const char* word : kForbidden) {
      if (symbol.find(word) != std::string::npos)
        return "The host code uses " + symbol.substr(0, 120) + ", which is not allowed";
    }
    if (symbol.rfind(kOperators, 0) != 0) continue;
    const char* at = symbol.c_str() + sizeof kOperators - 1;
    char* name = nullptr;
    const unsigned long length = std::strtoul(at, &name, 10);
    const std::string word(name, std::min<size_t>(length, symbol.c_str() + symbol.size() - name));
    if (AllowedOperators().count(word) == 0) {
      return "The host code calls PyTorch's operator " + word.substr(0, 80) +
             ", which is not allowed: write the kernel itself. Of PyTorch's operators a candidate may use those that "
             "allocate (empty, zeros) and that make views";
    }
  }
  return "";
}

bool UsesFormLibraries(const CompiledKernel& kernel) {
  return std::any_of(kernel.undefined.begin(), kernel.undefined.end(), [](const std::string& symbol) {
    return symbol.find("kgrpo_torch_form") != std::string::npos || symbol.rfind("TVMFFI", 0) == 0;
  });
}

Trouble FormBroken(int exit_code) {
  // The codes of form_include/kgrpo/torch_form.h and tvm_ffi_form.h.
  switch (exit_code) {
    case 90:
      return {"wrong", "forward returned a tensor of another shape than the output's."};
    case 91:
      return {"wrong", "forward returned a tensor of another dtype than the output's."};
    case 92:
      return {"wrong", "forward returned a tensor that is not on the GPU."};
    case 93:
      return {"wrong", "forward returned a tensor that is transposed or has gaps: return a contiguous one."};
    case 94:
      return {"crash",
              "forward threw an exception. Only PyTorch's operators that allocate memory or make views are available."};
    case 95:
      return {"wrong", "forward returned another number of tensors than the problem has outputs."};
    case 96:
      return {
          "crash",
          "The TVM-FFI function returned an error, called with all of the problem's parameters in order, and with its "
          "tensors alone."};
    default:
      return {};
  }
}

}  // namespace kgrpo::evaluator
