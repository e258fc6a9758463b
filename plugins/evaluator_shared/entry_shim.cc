#include "evaluator_shared/entry_shim.h"

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
  return text + problem.Signature() + ";\n#line 1 \"kernel.cu\"\n";
}

std::string EntryEpilogue(const Problem& problem) {
  // No macro of the source's may have a say in what follows: it would see the arguments of calls to come.
  std::string text = "\n";
  for (const char* word : {"kgrpo_call", "arguments", "extern", "__attribute__", "visibility", "default", "const",
                           "void", "float", "double", "int", "long", "unsigned", "char", "__half", "__nv_bfloat16"}) {
    text += std::string("#undef ") + word + "\n";
  }
  text += "#undef " + problem.entry + "\n";
  text += "#line 1 \"call of " + problem.entry +
          "\"\nextern \"C\" __attribute__((visibility(\"default\"))) void kgrpo_call(void** arguments) {\n  "
          "(void)arguments;\n  " +
          problem.entry + "(";
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const std::string type = Info(parameter.dtype).c_type;
    const bool scalar = parameter.role == Role::kScalar;
    if (i > 0) text += ", ";
    text += "*(" + std::string(parameter.role == Role::kInput ? "const " : "") + type + (scalar ? "*" : "**") +
            ")arguments[" + std::to_string(i) + "]";
  }
  return text + ");\n}\n";
}

}  // namespace kgrpo::evaluator
