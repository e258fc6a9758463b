#include "draft/draft.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "draft/thread_index.h"
#include "draft/uses.h"
#include "judge/problem/expression.h"

namespace kgrpo::evaluator {
namespace {

bool IsStream(const FunctionParameter& parameter) {
  return parameter.type == "cudaStream_t" || parameter.type == "struct CUstream_st";
}

bool IsFloating(DType dtype) {
  return Info(dtype).is_floating;
}

// At commas outside brackets, without spaces.
std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' || c == '<' ? 1 : c == ')' || c == '>' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

// The name that expressions of problem.yaml have for this function.
std::string_view FunctionNamed(std::string_view name) {
  return name == "cdiv" ? "ceil_div" : name;
}

class Drafter {
 public:
  Drafter(const CudaSource& source, const DraftOptions& options, const Ask& ask)
      : source_(source), options_(options), ask_(ask) {}

  Draft Run(const std::string& name) {
    draft_.name = name;
    draft_.function = &Choose();
    if (const auto allowed = options_.find("allow"); allowed != options_.end()) {
      for (const auto& [library, none] : allowed->second) draft_.libraries.push_back(library);
    }
    index_.emplace(source_, *draft_.function, draft_.bindings);
    BindTemplate();
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

  // Of `k<256>` the text between the brackets.
  static std::string ArgumentsIn(const std::string& name) {
    const size_t open = name.find('<');
    return open == std::string::npos ? "" : name.substr(open + 1, name.rfind('>') - open - 1);
  }

  // Gives the function's template parameters the values of `--function k<float,256>`, of a launch `k<float, 256><<<` in
  // the file, or their defaults.
  void BindTemplate() {
    const CudaFunction& function = *draft_.function;
    std::vector<std::string> arguments = SplitCommas(ArgumentsIn(Given("function", "")));
    if (arguments == std::vector<std::string>{""}) arguments = LaunchedArguments(function.name);
    std::string names;
    bool bound = true;
    for (size_t i = 0; i < function.template_parameters.size(); ++i) {
      const auto& [name, value] = function.template_parameters[i];
      const std::string given = i < arguments.size() && !arguments[i].empty() ? arguments[i] : value;
      draft_.bindings[name] = given;
      names += (names.empty() ? "" : ",") + name;
      bound = bound && !given.empty();
    }
    if (bound) return;
    source_.Fail(function.begin, function.name + " is a template: choose its arguments by --function '" +
                                     function.name + "<" + names + ">', with values in place of the names");
  }

  // The template arguments of the first launch of a kernel: types, and constants as numbers.
  std::vector<std::string> LaunchedArguments(const std::string& kernel) const {
    const SourceReader& tokens = source_.tokens();
    std::vector<std::string> arguments;
    for (size_t i = 0; i + 1 < tokens.size() && arguments.empty(); ++i) {
      if (!tokens.At(i).Is(kernel) || !tokens.At(i + 1).Is("<")) continue;
      const size_t end = tokens.SkipAngles(i + 1, tokens.size());
      if (!tokens.At(end).Is("<<<")) continue;
      for (std::string& argument : SplitCommas(source_.TextOf(i + 2, end - 1))) {
        if (!ElementTypeOf(argument) && !ElementTypeOf(source_.ValueOf(argument)))
          argument = index_->ConstantOf(argument);
        if (argument.empty()) return {};
        arguments.push_back(argument);
      }
    }
    return arguments;
  }

  // Returns whether problems have its parameters, one of them a tensor: test programs also launch kernels.
  bool IsOfTensors(const CudaFunction& function) const {
    bool tensors = false;
    for (const FunctionParameter& parameter : function.parameters) {
      std::string type = parameter.type;
      for (int i = 0; i < 4 && !source_.ValueOf(type).empty(); ++i) type = source_.ValueOf(type);
      if (!function.is_template && !IsStream(parameter) && !ElementTypeOf(type)) return false;
      tensors = tensors || parameter.pointer;
    }
    return tensors && function.name.rfind("operator", 0) != 0;
  }

  const CudaFunction& Choose() const {
    if (std::string wanted = Given("function", ""); !wanted.empty()) {
      wanted = wanted.substr(0, wanted.find('<'));
      const CudaFunction* found = source_.Find(wanted);
      if (found == nullptr) source_.Fail(0, "there is no function " + wanted);
      return *found;
    }
    std::vector<const CudaFunction*> launchers, kernels;
    for (const CudaFunction& function : source_.functions()) {
      if (function.kernel) kernels.push_back(&function);
      if (!function.kernel && !function.device && IsOfTensors(function) && !LaunchesOf(source_, function).empty())
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
      if (option == "allow" || option == "include" || option == "size" || option == "multiple")
        continue;  // ReadFurtherSizes
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
    DraftParameter begun;
    begun.source = parameter;
    std::string& type = begun.source.type;
    for (int i = 0; i < 4 && !index_->ValueOf(type).empty(); ++i) type = index_->ValueOf(type);
    const std::optional<ElementType> element = ElementTypeOf(type);
    if (!element || (element->lanes > 1 && !parameter.pointer)) {
      source_.Fail(draft_.function->begin,
                   draft_.function->name + ": the parameter " + parameter.name + " is of type " + type +
                       ", which problems do not have: write a launcher that takes pointers and numbers");
    }
    begun.dtype = element->dtype;
    begun.lanes = element->lanes;
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
    if (draft_.sizes.empty() && missing_.empty()) draft_.sizes.emplace_back("fixed", 1);  // every shape is constant
    for (const char* option : {"size", "multiple"}) {
      const auto values = options_.find(option);
      if (values == options_.end()) continue;
      for (const auto& [name, value] : values->second) {
        if (!known.contains(name)) FailUnknown(option, name);
      }
    }
  }

  // An expression with the values of constants and of the parameters that are not sizes.
  std::string WithValues(const std::string& expression) const {
    std::string text;
    for (const Token& token : Lex(expression).tokens) {
      std::string value = Given("value", std::string(token.text));
      if (const auto bound = draft_.bindings.find(std::string(token.text)); bound != draft_.bindings.end())
        value = bound->second;
      text += value.empty() ? std::string(FunctionNamed(token.text)) : value;
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
    if (parameter->lanes > 1) parameter->shape.push_back(std::to_string(parameter->lanes));
  }

  // How a kernel without a launcher is to be launched.
  void ReadLaunch() {
    const SourceReader& tokens = source_.tokens();
    const CudaFunction& kernel = *draft_.function;
    bool deep = false, dynamic_shared = false;
    for (size_t i = kernel.body; i + 2 < kernel.end; ++i) {
      const bool index = tokens.At(i).Is("threadIdx") || tokens.At(i).Is("blockIdx");
      if (index && tokens.At(i + 2).Is("z")) deep = true;
      if (tokens.At(i).Is("extern") && tokens.At(i + 1).Is("__shared__")) dynamic_shared = true;
      if (tokens.At(i).Is("this_grid") || tokens.At(i).Is("grid_group")) draft_.cooperative = true;
    }
    std::vector<std::string> blocks;
    if (!Given("block", "").empty()) blocks = SplitCommas(Given("block", ""));
    draft_.grid = CText(Given("grid", ""));
    if (!deep) GuessLaunch(&blocks);
    if (blocks.empty()) blocks = {"256"};
    for (const std::string& extent : blocks) draft_.block += (draft_.block.empty() ? "" : ",") + CText(extent);
    if (draft_.grid.empty())
      draft_.grid = CText(Need("grid", "", "X,Y,Z", "how many blocks, as expressions of the sizes"));
    draft_.shared = Given("shared", "");
    if (dynamic_shared) draft_.shared = Need("shared", "", "BYTES", "the bytes of dynamic shared memory");
  }

  // The threads of a block that __launch_bounds__ or an index without blockDim tells, and as many blocks as the output
  // (a single number: the first input) has elements.
  void GuessLaunch(std::vector<std::string>* blocks) {
    const auto threads = [&](size_t axis, int64_t otherwise) {
      const int64_t given = axis < blocks->size() ? std::atoll((*blocks)[axis].c_str()) : 0;
      return given > 0 ? given : otherwise;
    };
    const bool two = index_->StepAlong("y", 16).has_value();
    std::vector<ThreadIndex::Step> steps;
    std::vector<std::string> guessed;
    for (size_t axis = 0; axis < (two ? 2 : 1); ++axis) {
      const int64_t size = threads(axis, two ? 16 : index_->Bounds());
      const std::optional<ThreadIndex::Step> step = index_->StepAlong(axis == 0 ? "x" : "y", size);
      if (!step) return;
      steps.push_back(*step);
      guessed.push_back(std::to_string(step->by_size ? size : step->block / step->thread));
    }
    if (blocks->empty()) *blocks = guessed;
    if (!draft_.grid.empty()) return;
    const DraftParameter* whole = nullptr;
    for (const DraftParameter& one : draft_.parameters) {
      const bool written = one.role == Role::kOutput || one.role == Role::kInout;
      if (written && (whole == nullptr || Draft::Elements(*whole) == "1")) whole = &one;
    }
    for (const DraftParameter& one : draft_.parameters) {
      if (whole != nullptr && Draft::Elements(*whole) == "1" && one.role == Role::kInput) whole = &one;
    }
    if (whole == nullptr || whole->shape.empty()) return;
    DraftParameter extents = *whole;
    if (extents.lanes > 1) extents.shape.pop_back();
    if (two && extents.shape.size() != 2) return;
    for (size_t axis = 0; axis < steps.size(); ++axis) {
      const std::string extent = two ? extents.shape[1 - axis] : Draft::Elements(extents);
      draft_.grid += (axis == 0 ? "(" : ",(") + CText(extent) + " + " + std::to_string(steps[axis].block - 1) + ") / " +
                     std::to_string(steps[axis].block);
    }
    const int64_t each = steps[0].thread * (two ? steps[1].thread : 1);
    draft_.guesses.push_back("a thread for each " + (each == 1 ? "element" : std::to_string(each) + " elements") +
                             " of " + whole->source.name + (two ? ", x along its rows" : "") + " (--grid, --block)");
  }

  // Expressions of options in C++: ceil_div, cdiv, min and max, template parameters and values are replaced.
  std::string CText(const std::string& expressions) const {
    std::string text;
    for (const std::string& part : SplitCommas(WithValues(expressions)))
      text += (text.empty() ? "" : ",") + CPart(part);
    return text;
  }
  static std::string CPart(std::string text) {
    for (const std::string name : {"ceil_div(", "min(", "max("}) {
      for (size_t at; (at = text.find(name)) != std::string::npos;) {
        const size_t open = at + name.size();
        size_t close = open;
        for (int depth = 1; close < text.size(); ++close) {
          depth += text[close] == '(' ? 1 : text[close] == ')' ? -1 : 0;
          if (depth == 0) break;
        }
        const std::vector<std::string> two = SplitCommas(text.substr(open, close - open));
        if (two.size() != 2 || close == text.size()) return text;
        const std::string a = "(" + CPart(two[0]) + ")", b = "(" + CPart(two[1]) + ")";
        const std::string value = name == "ceil_div("
                                      ? "(" + a + " + " + b + " - 1) / " + b
                                      : a + (name == "min(" ? " < " : " > ") + b + " ? " + a + " : " + b;
        text = text.substr(0, at) + "(" + value + ")" + text.substr(close + 1);
      }
    }
    return text;
  }

  const CudaSource& source_;
  const DraftOptions& options_;
  const Ask& ask_;
  Draft draft_;
  std::optional<ThreadIndex> index_;                          // of draft_.function
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
