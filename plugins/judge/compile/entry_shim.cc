#include "judge/compile/entry_shim.h"

namespace kgrpo::evaluator {

std::string EntryPrologue(const Problem& problem) {
  std::string text;
  bool half = false, bfloat = false;
  for (const Parameter& parameter : problem.parameters) {
    half = half || parameter.dtype == DType::kFloat16;
    bfloat = bfloat || parameter.dtype == DType::kBfloat16;
  }
  if (half) text += "#include <cuda_fp16.h>\n";
  if (bfloat) text += "#include <cuda_bf16.h>\n";
  return kCountsStay + text + problem.Signature() + ";\n#line 1 \"kernel.cu\"\n";
}

std::string EntryEpilogue(const Problem& problem) {
  // Undefines every word that follows: a macro of the source would see the arguments of calls to come.
  std::string text = "\n";
  for (const char* word :
       {"kgrpo_call", "arguments", "extern", "__attribute__", "visibility", "default", "const", "void", "float",
        "double", "int", "short", "long", "unsigned", "char", "__half", "__nv_bfloat16"}) {
    text += std::string("#undef ") + word + "\n";
  }
  for (size_t i = 0; i < problem.parameters.size(); i += problem.ListLength(i)) {
    if (!problem.parameters[i].list.empty()) text += "#undef kgrpo_list_" + std::to_string(i) + "\n";
  }
  text += "#undef " + problem.entry + "\n";
  text += "#line 1 \"call of " + problem.entry +
          "\"\nextern \"C\" __attribute__((visibility(\"default\"))) void kgrpo_call(void** arguments) {\n  "
          "(void)arguments;\n";
  std::string call;
  for (size_t i = 0; i < problem.parameters.size(); i += problem.ListLength(i)) {
    const Parameter& parameter = problem.parameters[i];
    const std::string type =
        (parameter.role == Role::kInput ? "const " : "") + std::string(Info(parameter.dtype).c_type);
    const auto argument = [&](size_t k) {
      return "*(" + type + (parameter.role == Role::kScalar ? "*" : "**") + ")arguments[" + std::to_string(k) + "]";
    };
    if (i > 0) call += ", ";
    if (parameter.list.empty()) {
      call += argument(i);
      continue;
    }
    const std::string array = "kgrpo_list_" + std::to_string(i);
    text += "  " + type + "* const " + array + "[] = {";
    for (size_t k = i; k < i + problem.ListLength(i); ++k) text += (k > i ? ", " : "") + argument(k);
    text += "};\n";
    call += array;
  }
  return text + "  " + problem.entry + "(" + call + ");\n}\n";
}

}  // namespace kgrpo::evaluator
