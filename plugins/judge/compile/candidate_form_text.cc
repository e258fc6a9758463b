// The text that the compiler puts around a candidate that has another form than our launch function.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cuda_source/lexer.h"
#include "judge/compile/candidate_form.h"
#include "judge/problem/dtype.h"

namespace kgrpo::evaluator {
namespace {

using cuda_source::Lex, cuda_source::Token;

// Includes of the standard headers that PyTorch's bring and the source uses, by names of theirs. All of them would add
// 1.6 s to the 2.9 s of a small source; kgrpo/torch_types.h has the cheap ones.
std::string StandardIncludes(const std::string& source) {
  static constexpr std::pair<const char*, std::string_view> kHeaders[] = {
      {"bitset", " bitset "},
      {"chrono", " chrono "},
      {"complex", " complex "},
      {"deque", " deque "},
      {"functional", " function greater hash less multiplies plus ref "},
      {"iomanip", " setfill setprecision setw "},
      {"iostream", " cerr clog cout endl "},
      {"list", " list "},
      {"map", " map multimap "},
      {"mutex", " call_once lock_guard mutex once_flag unique_lock "},
      {"queue", " priority_queue queue "},
      {"random", " default_random_engine mt19937 mt19937_64 random_device "},
      {"set", " multiset set "},
      {"sstream", " istringstream ostringstream stringstream "},
      {"stack", " stack "},
      {"unordered_map", " unordered_map "},
      {"unordered_set", " unordered_set "},
      {"variant", " variant visit "}};
  std::string text = cuda_source::RemoveSplices(source);
  std::replace(text.begin(), text.end(), '#', ' ');  // macros' words count, too
  const std::vector<Token> tokens = Lex(text).tokens;
  std::set<std::string> names;
  bool opened = false;  // `using namespace std`
  for (size_t i = 2; i < tokens.size(); ++i) {
    opened = opened || (tokens[i - 2].Is("using") && tokens[i - 1].Is("namespace") && tokens[i].Is("std"));
    if (opened || (tokens[i - 2].Is("std") && tokens[i - 1].Is("::")))
      names.insert(" " + std::string(tokens[i].text) + " ");
  }
  std::string includes;
  for (const auto& [header, words] : kHeaders) {
    if (std::any_of(names.begin(), names.end(),
                    [&words = words](const std::string& name) { return words.find(name) != std::string_view::npos; }))
      includes += std::string("#include <") + header + ">\n";
  }
  return includes;
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

std::string Text(bool value) { return value ? "true" : "false"; }

std::string TorchEpilogue(const Problem& problem, const std::string& source) {
  static const std::map<DType, std::string> kTypes = {
      {DType::kFloat32, "Float"},     {DType::kFloat64, "Double"}, {DType::kFloat16, "Half"},
      {DType::kBfloat16, "BFloat16"}, {DType::kInt32, "Int"},      {DType::kInt64, "Long"},
      {DType::kUint8, "Byte"},        {DType::kUint32, "UInt32"},  {DType::kInt8, "Char"},
      {DType::kBool, "Bool"},         {DType::kInt16, "Short"},    {DType::kUint16, "UInt16"}};
  const std::string function = TensorFunctionOf(source, problem);
  std::string parameters;
  // Arguments by what they contain: the outputs or not; scalars in the problem's order, after the tensors, only the
  // floating ones, none. The function gets the first that it takes.
  std::string calls;
  const auto add = [](std::string* list, const std::string& item) { *list += (list->empty() ? "" : ", ") + item; };
  for (const bool outputs : {false, true}) {
    std::string in_order, tensors, scalars, reals;
    for (size_t i = 0; i < problem.parameters.size(); ++i) {
      const Parameter& parameter = problem.parameters[i];
      const bool scalar = parameter.role == Role::kScalar;
      if (parameter.role == Role::kOutput && !outputs) continue;
      const std::string value =
          (scalar ? std::string("call.Scalar<") + Info(parameter.dtype).c_type + ">(" : "call.Tensor(") +
          std::to_string(i) + ")";
      add(&in_order, value);
      add(scalar ? &scalars : &tensors, value);
      if (scalar && Info(parameter.dtype).is_floating) add(&reals, value);
    }
    std::set<std::string> seen;
    for (const std::string& list : {in_order, tensors + (scalars.empty() ? "" : ", ") + scalars,
                                    tensors + (reals.empty() ? "" : ", ") + reals, tensors}) {
      if (seen.insert(list).second)
        calls += std::string(",\n    kgrpo_torch_form::With<") + Text(outputs) + ">(" + list + ")";
    }
  }
  for (const Parameter& parameter : problem.parameters) {
    add(&parameters, "{" + Text(parameter.role == Role::kOutput) + ", at::ScalarType::" + kTypes.at(parameter.dtype) +
                         ", " + std::to_string(parameter.IsTensor() ? static_cast<int>(parameter.shape.size()) : -1) +
                         "}");
  }
  return AfterUndefining("#line 1 \"call of " + function +
                         "\"\nextern \"C\" __attribute__((visibility(\"default\"))) void kgrpo_call(void** "
                         "arguments) {\n  kgrpo_torch_form::Call call(arguments, {" +
                         parameters + "});\n  kgrpo_torch_form::Run(call, [](auto&... each) -> decltype(" + function +
                         "(each...)) { return " + function + "(each...); }" + calls + ");\n}\n");
}

std::string TvmFfiEpilogue(const Problem& problem, const std::string& source) {
  const std::vector<std::string> names = ExportedFunctions(source);
  // Of several functions, calls the one with the problem's name for the launch function, else the first.
  const bool has_entry = std::find(names.begin(), names.end(), problem.entry) != names.end();
  const std::string function = kTvmFfiSymbol + (has_entry ? problem.entry : names.front());
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

}  // namespace

std::string FormPrologue(CandidateForm form, const std::string& source) {
  return (form == CandidateForm::kTorch ? StandardIncludes(source) : "") + "#include <kgrpo/" +
         (form == CandidateForm::kTorch ? "torch" : "tvm_ffi") + "_form.h>\n#line 1 \"kernel.cu\"\n";
}

std::string FormEpilogue(CandidateForm form, const Problem& problem, const std::string& source) {
  return form == CandidateForm::kTorch ? TorchEpilogue(problem, source) : TvmFfiEpilogue(problem, source);
}

}  // namespace kgrpo::evaluator
