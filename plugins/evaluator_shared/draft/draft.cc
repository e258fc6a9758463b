#include "evaluator_shared/draft/draft.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "evaluator_shared/draft/uses.h"
#include "evaluator_shared/expression.h"

namespace kgrpo::evaluator {
namespace {

bool IsStream(const FunctionParameter& parameter) {
  return parameter.type == "cudaStream_t" || parameter.type == "struct CUstream_st";
}

std::optional<DType> DTypeOf(const std::string& type) {
  static const std::map<std::string, DType> kTypes = {{"float", DType::kFloat32},
                                                      {"double", DType::kFloat64},
                                                      {"__half", DType::kFloat16},
                                                      {"half", DType::kFloat16},
                                                      {"__nv_bfloat16", DType::kBfloat16},
                                                      {"nv_bfloat16", DType::kBfloat16},
                                                      {"int", DType::kInt32},
                                                      {"int32_t", DType::kInt32},
                                                      {"unsigned", DType::kUint32},
                                                      {"unsigned int", DType::kUint32},
                                                      {"uint32_t", DType::kUint32},
                                                      {"long long", DType::kInt64},
                                                      {"long", DType::kInt64},
                                                      {"int64_t", DType::kInt64},
                                                      {"size_t", DType::kInt64},
                                                      {"unsigned char", DType::kUint8},
                                                      {"uint8_t", DType::kUint8},
                                                      {"int8_t", DType::kInt8},
                                                      {"bool", DType::kBool}};
  const auto found = kTypes.find(type.rfind("std::", 0) == 0 ? type.substr(5) : type);
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

bool IsFloating(DType dtype) {
  return Info(dtype).is_floating;
}

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

class Drafter {
 public:
  Drafter(const CudaSource& source, const DraftOptions& options, const Ask& ask)
      : source_(source), options_(options), ask_(ask) {}

  Draft Run(const std::string& name) {
    draft_.name = name;
    draft_.function = &Choose();
    if (draft_.function->is_template) {
      source_.Fail(draft_.function->begin,
                   draft_.function->name + " is a template: add a launcher that calls it with the types you want");
    }
    RequireKnownNames();
    for (const FunctionParameter& parameter : draft_.function->parameters) {
      if (!IsStream(parameter)) draft_.parameters.push_back(Begin(parameter));
    }
    for (DraftParameter& parameter : draft_.parameters) {
      if (!parameter.source.pointer) ReadScalar(&parameter);
    }
    for (DraftParameter& parameter : draft_.parameters) {
      if (parameter.source.pointer) ReadTensor(&parameter);
    }
    ReadFurtherSizes();
    if (draft_.function->kernel) ReadLaunch();
    if (!missing_.empty()) {
      std::string all;
      for (const auto& [question, option] : missing_) all += "\n  " + option + ": " + question;
      throw Error(KGRPO_ERROR_INVALID, "the kernel does not tell these values; add these options:" + all);
    }
    const bool writes = std::any_of(draft_.parameters.begin(), draft_.parameters.end(), [](const DraftParameter& one) {
      return one.role == Role::kOutput || one.role == Role::kInout;
    });
    if (!writes) source_.Fail(draft_.function->begin, draft_.function->name + " writes to none of its parameters");
    return std::move(draft_);
  }

 private:
  // The option's value for a name; "" where it is not given.
  std::string Given(const std::string& option, const std::string& name) const {
    const auto values = options_.find(option);
    if (values == options_.end()) return "";
    const auto value = values->second.find(name);
    return value == values->second.end() ? "" : value->second;
  }
  bool Has(const std::string& option, const std::string& name) const {
    const auto values = options_.find(option);
    return values != options_.end() && values->second.contains(name);
  }

  // The option's value, or a person's answer.
  std::string Need(const std::string& option, const std::string& name, const std::string& form,
                   const std::string& question) {
    if (std::string given = Given(option, name); !given.empty()) return given;
    const std::string text = "--" + option + " " + (name.empty() ? "" : name + "=") + form;
    std::string answer = ask_(question, text);
    if (answer.empty()) missing_.emplace_back(question, text);
    return answer;
  }

  const CudaFunction& Choose() const {
    if (const std::string wanted = Given("function", ""); !wanted.empty()) {
      const CudaFunction* found = source_.Find(wanted);
      if (found == nullptr) source_.Fail(0, "there is no function " + wanted);
      return *found;
    }
    std::vector<const CudaFunction*> launchers, kernels;
    for (const CudaFunction& function : source_.functions()) {
      if (function.kernel) kernels.push_back(&function);
      if (!function.kernel && !function.device && function.name != "main" && !LaunchesOf(source_, function).empty())
        launchers.push_back(&function);
    }
    const std::vector<const CudaFunction*>& candidates = launchers.empty() ? kernels : launchers;
    if (candidates.empty()) source_.Fail(0, "there is no __global__ function");
    if (candidates.size() == 1) return *candidates[0];
    for (const CudaFunction* function : candidates) {
      if (function->name == "launch") return *function;
    }
    std::string names;
    for (const CudaFunction* function : candidates) names += (names.empty() ? "" : ", ") + function->name;
    source_.Fail(candidates[1]->begin, std::string("there are several ") +
                                           (launchers.empty() ? "kernels" : "launchers") + " (" + names +
                                           "): choose one by --function NAME");
  }

  void RequireKnownNames() const {
    for (const auto& [option, values] : options_) {
      if (option == "size" || option == "multiple") continue;  // ReadFurtherSizes
      for (const auto& [name, value] : values) {
        if (!name.empty() && draft_.function->IndexOf(name) < 0) FailUnknown(option, name);
      }
    }
  }
  [[noreturn]] void FailUnknown(const std::string& option, const std::string& name) const {
    source_.Fail(draft_.function->begin,
                 "--" + option + " " + name + ": " + draft_.function->name + " has no parameter of that name");
  }

  DraftParameter Begin(const FunctionParameter& parameter) const {
    const std::optional<DType> dtype = DTypeOf(parameter.type);
    if (!dtype) {
      source_.Fail(draft_.function->begin,
                   draft_.function->name + ": the parameter " + parameter.name + " is of type " + parameter.type +
                       ", which problems do not have: write a launcher that takes pointers and numbers");
    }
    DraftParameter begun;
    begun.source = parameter;
    begun.dtype = *dtype;
    return begun;
  }

  void ReadScalar(DraftParameter* parameter) {
    const std::string& name = parameter->source.name;
    if (Has("value", name) || IsFloating(parameter->dtype)) {
      parameter->value = Need("value", name, "X", "the value of the scalar " + name);
      return;
    }
    parameter->value = name;
    AddSize(name);
  }

  void AddSize(const std::string& name) {
    const std::string text = Need("size", name, "N", "the value of the size " + name + " for timing, such as 1048576");
    if (text.empty()) return;
    draft_.sizes.emplace_back(name, Whole("size", name, text));
    if (const std::string multiple = Given("multiple", name); !multiple.empty())
      draft_.multiples[name] = Whole("multiple", name, multiple);
  }

  // Sizes that shapes mention and the kernel is not told, such as the entries of a table.
  void ReadFurtherSizes() {
    for (DraftParameter& parameter : draft_.parameters) {
      for (std::string& dimension : parameter.shape) dimension = WithValues(dimension);
    }
    std::set<std::string> known, wanted;
    for (const DraftParameter& parameter : draft_.parameters) {
      if (!parameter.source.pointer) known.insert(parameter.source.name);
      for (const std::string& text : parameter.shape) AddSymbols(text, &wanted);
      AddSymbols(parameter.low + " " + parameter.high, &wanted);
    }
    for (const std::string& name : wanted) {
      if (known.insert(name).second) AddSize(name);
    }
    for (const char* option : {"size", "multiple"}) {
      const auto values = options_.find(option);
      if (values == options_.end()) continue;
      for (const auto& [name, value] : values->second) {
        if (!known.contains(name)) FailUnknown(option, name);
      }
    }
  }

  // An expression with the values of the parameters that are no sizes.
  std::string WithValues(const std::string& expression) const {
    std::string text;
    for (const Token& token : Lex(expression).tokens) {
      const std::string value = Given("value", std::string(token.text));
      text += value.empty() ? std::string(token.text) : value;
    }
    return text;
  }

  static void AddSymbols(const std::string& text, std::set<std::string>* symbols) {
    const LexedSource lexed = Lex(text);
    for (size_t i = 0; i < lexed.tokens.size(); ++i) {
      const bool called = i + 1 < lexed.tokens.size() && lexed.tokens[i + 1].Is("(");  // min(a, b)
      if (lexed.tokens[i].kind == Token::Kind::kIdentifier && !called) symbols->emplace(lexed.tokens[i].text);
    }
  }

  int64_t Whole(const std::string& option, const std::string& name, const std::string& text) const {
    char* end = nullptr;
    const int64_t value = std::strtoll(text.c_str(), &end, 10);
    if (*end == '\0' && value >= 1) return value;
    throw Error(KGRPO_ERROR_INVALID, "--" + option + " " + name + "=" + text + ": expected a whole number from 1 up");
  }

  void ReadTensor(DraftParameter* parameter) {
    const Uses uses = UsesOf(source_, *draft_.function, parameter->source.name, Given("grid", ""));
    ReadRole(uses, parameter);
    ReadShape(uses, parameter);
    if (parameter->role == Role::kOutput || IsFloating(parameter->dtype)) return;
    const std::string range = Given("range", parameter->source.name);
    const std::vector<std::string> bounds = SplitCommas(range.empty() ? "0,9" : range);
    if (bounds.size() != 2)
      throw Error(KGRPO_ERROR_INVALID, "--range " + parameter->source.name + "=" + range + ": expected LO,HI");
    parameter->low = bounds[0];
    parameter->high = bounds[1];
    if (range.empty()) {
      draft_.guesses.push_back(parameter->source.name + " holds whole numbers from 0 to 9 (--range " +
                               parameter->source.name + "=LO,HI)");
    }
  }

  void ReadRole(const Uses& uses, DraftParameter* parameter) {
    const std::string& name = parameter->source.name;
    if (Has("output", name)) {
      parameter->role = Role::kOutput;
    } else if (Has("inout", name)) {
      parameter->role = Role::kInout;
    } else if (Has("input", name) || parameter->source.constant || (uses.read && !uses.written)) {
      parameter->role = Role::kInput;
    } else if (uses.written_first) {
      parameter->role = Role::kOutput;
      if (uses.read)
        draft_.guesses.push_back(name + " is an output: it is written before it is read (--inout " + name +
                                 ", where the caller sets it)");
    } else if (uses.written) {
      parameter->role = Role::kInout;
      draft_.guesses.push_back(name + " is an inout: line " + std::to_string(uses.read_line) + " reads it (--output " +
                               name + ", where the caller need not set it)");
    } else {
      const std::string answer = ask_("is " + name + " an input, an output or an inout?", "--output " + name);
      parameter->role = answer == "input" ? Role::kInput : answer == "inout" ? Role::kInout : Role::kOutput;
      if (answer.empty())
        missing_.emplace_back("nothing in the file reads or writes " + name, "--input, --output or --inout " + name);
    }
  }

  void ReadShape(const Uses& uses, DraftParameter* parameter) {
    const std::string& name = parameter->source.name;
    if (const std::string given = Given("shape", name); !given.empty()) {
      parameter->shape = SplitCommas(given);
    } else if (uses.shape) {
      parameter->shape = *uses.shape;
    } else {
      parameter->shape = SplitCommas(Need("shape", name, "D,D", "the dimensions of " + name + ", such as rows,cols"));
    }
  }

  // How a kernel without a launcher is to be launched.
  void ReadLaunch() {
    const SourceReader& tokens = source_.tokens();
    const CudaFunction& kernel = *draft_.function;
    bool two_dimensions = false, by_threads = false, dynamic_shared = false;
    for (size_t i = kernel.body; i + 2 < kernel.end; ++i) {
      const bool index = tokens.At(i).Is("threadIdx") || tokens.At(i).Is("blockIdx");
      if (index && tokens.At(i + 2).Is("y")) two_dimensions = true;
      if (index && tokens.At(i + 2).Is("z")) NeedGrid();
      if (tokens.At(i).Is("blockDim")) by_threads = true;
      if (tokens.At(i).Is("extern") && tokens.At(i + 1).Is("__shared__")) dynamic_shared = true;
    }
    draft_.block = Given("block", "");
    if (draft_.block.empty()) draft_.block = two_dimensions ? "16,16" : "256";
    draft_.grid = Given("grid", "");
    if (draft_.grid.empty()) {
      const auto output =
          std::find_if(draft_.parameters.begin(), draft_.parameters.end(),
                       [](const DraftParameter& one) { return one.role == Role::kOutput || one.role == Role::kInout; });
      if (output != draft_.parameters.end() && by_threads && !two_dimensions && !output->shape.empty()) {
        draft_.grid = "(" + Draft::Elements(*output) + " + 255) / 256";
        if (draft_.block != "256") draft_.grid = "";
        draft_.guesses.push_back("a thread for each element of " + output->source.name + " (--grid, --block)");
      } else if (output != draft_.parameters.end() && two_dimensions && output->shape.size() == 2 &&
                 draft_.block == "16,16") {
        draft_.grid = "(" + output->shape[1] + " + 15) / 16,(" + output->shape[0] + " + 15) / 16";
        draft_.guesses.push_back("a thread for each element of " + output->source.name +
                                 ", x along its rows (--grid, --block)");
      }
      if (draft_.grid.empty()) NeedGrid();
    }
    if (dynamic_shared) draft_.shared = Need("shared", "", "BYTES", "the bytes of dynamic shared memory");
    if (draft_.shared.empty()) draft_.shared = Given("shared", "");
  }
  void NeedGrid() {
    if (draft_.grid.empty()) draft_.grid = Need("grid", "", "X,Y,Z", "how many blocks, as expressions of the sizes");
  }

  const CudaSource& source_;
  const DraftOptions& options_;
  const Ask& ask_;
  Draft draft_;
  std::vector<std::pair<std::string, std::string>> missing_;  // question and option
};

}  // namespace

std::string Draft::Elements(const DraftParameter& parameter) {
  std::string text;
  for (const std::string& dimension : parameter.shape) {
    const bool simple = dimension.find_first_of("+-/%") == std::string::npos;
    text += (text.empty() ? "" : "*") + (simple ? dimension : "(" + dimension + ")");
  }
  return text;
}

Draft MakeDraft(const CudaSource& source, const std::string& name, const DraftOptions& options, const Ask& ask) {
  return Drafter(source, options, ask).Run(name);
}

}  // namespace kgrpo::evaluator
