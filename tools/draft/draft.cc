#include "draft/draft.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "draft/call_site.h"
#include "draft/thread_index.h"
#include "draft/uses.h"
#include "judge/problem/expression.h"

namespace kgrpo::evaluator {
namespace {

bool IsStream(const FunctionParameter& parameter) {
  return parameter.type == "cudaStream_t" || parameter.type == "struct CUstream_st";
}

bool IsFloating(DType dtype) { return Info(dtype).is_floating; }

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
std::string_view FunctionNamed(std::string_view name) { return name == "cdiv" ? "ceil_div" : name; }

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
    try {
      site_ = CallSiteOf(source_, *draft_.function);
    } catch (const NotUnderstood&) {
      site_ = {};  // host code may be anything: what it would have told is asked for
    }
    for (const FunctionParameter& parameter : draft_.function->parameters) {
      if (!IsStream(parameter)) draft_.parameters.push_back(Begin(parameter));
    }
    for (DraftParameter& parameter : draft_.parameters) {
      if (!parameter.source.pointer) ReadScalar(&parameter);
    }
    for (DraftParameter& parameter : draft_.parameters) {
      if (parameter.source.pointer) ReadTensor(&parameter);
    }
    ReadOffsets();
    ReadFurtherSizes();
    if (draft_.function->kernel) ReadLaunch();
    AddParametersForSizes();
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
  // The option's value for a name; "" if it is not given.
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

  // The value that the file itself gives a size or scalar where it calls the function; "" with an option or without it.
  std::string Known(const std::string& option, const std::string& name) {
    if (!Given(option, name).empty()) return "";
    std::string value;
    if (const auto size = site_.sizes.find(name); size != site_.sizes.end()) value = std::to_string(size->second);
    if (const auto found = site_.values.find(name); found != site_.values.end()) value = found->second;
    if (option == "size" && (value == "0" || value.find_first_not_of("0123456789") != std::string::npos)) return "";
    if (!value.empty()) GuessBySite(name + " is " + value, option + " " + name + "=" + (option == "size" ? "N" : "X"));
    return value;
  }
  void GuessBySite(const std::string& what, const std::string& option) {
    draft_.guesses.push_back(what + ", as in the call in line " + std::to_string(site_.line) + " (--" + option + ")");
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
      const bool called = tokens.At(i).Is(kernel) && tokens.At(i + 1).Is("<");
      const size_t end = called ? tokens.EndOfAngles(i + 1, tokens.size()) : 0;
      if (end == 0 || !tokens.At(end).Is("<<<")) continue;
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
      parameter->value = Known("value", name);
      if (parameter->value.empty()) parameter->value = Need("value", name, "X", "the value of the scalar " + name);
      return;
    }
    parameter->value = name;
    AddSize(name);
  }

  void AddSize(const std::string& name) {
    std::string text = Known("size", name);
    if (text.empty()) text = Need("size", name, "N", "the value of the size " + name + " for timing, such as 1048576");
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
    if (draft_.function->kernel) AddSymbols(Given("grid", "") + " " + Given("shared", ""), &wanted);
    for (const std::string& name : wanted) {
      if (known.insert(name).second) AddSize(name);
    }
    if (draft_.sizes.empty() && missing_.empty()) {
      draft_.sizes.emplace_back("fixed", 1);
      draft_.guesses.emplace_back("every shape is made of the file's constants: there is one size (--shape, --size)");
    }
    for (const char* option : {"size", "multiple"}) {
      const auto values = options_.find(option);
      if (values == options_.end()) continue;
      for (const auto& [name, value] : values->second) {
        if (!known.contains(name)) FailUnknown(option, name);
      }
    }
  }

  // A size that the grid or an output has and the function does not take becomes a parameter of the launch function.
  void AddParametersForSizes() {
    std::set<std::string> used;
    AddSymbols(draft_.grid + " " + draft_.block + " " + draft_.shared, &used);
    for (const DraftParameter& parameter : draft_.parameters) {
      if (parameter.role != Role::kOutput && parameter.role != Role::kInout) continue;
      for (const std::string& dimension : parameter.shape) AddSymbols(dimension, &used);
    }
    for (const DraftParameter& parameter : draft_.parameters) used.erase(parameter.source.name);
    for (const std::string& name : used) {
      auto size =
          std::find_if(draft_.sizes.begin(), draft_.sizes.end(), [&](const auto& one) { return one.first == name; });
      if (size == draft_.sizes.end()) {
        if (draft_.sizes.size() == 1 && draft_.sizes[0].first == "fixed") draft_.sizes.clear();
        AddSize(name);
        if (draft_.sizes.empty() || draft_.sizes.back().first != name) continue;  // it is missing
        size = draft_.sizes.end() - 1;
      }
      DraftParameter added;
      const bool large = size->second > INT32_MAX;
      added.source = {large ? "long long" : "int", name, false, false};
      added.dtype = large ? DType::kInt64 : DType::kInt32;
      added.value = name;
      added.added = true;
      draft_.parameters.push_back(std::move(added));
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

  // The names of sizes in an expression: no functions, types and constants.
  void AddSymbols(const std::string& text, std::set<std::string>* symbols) const {
    const LexedSource lexed = Lex(text);
    for (size_t i = 0; i < lexed.tokens.size(); ++i) {
      const std::string name(lexed.tokens[i].text);
      const bool called = i + 1 < lexed.tokens.size() && lexed.tokens[i + 1].Is("(");  // min(a, b)
      if (lexed.tokens[i].kind == Token::Kind::kIdentifier && !called && !ElementTypeOf(name) &&
          (source_.ValueOf(name).empty() || site_.sizes.contains(name)))
        symbols->insert(name);
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
    AddMultipleOfVectors(*parameter);
    if (parameter->role == Role::kOutput || IsFloating(parameter->dtype)) return;
    const std::string range = Given("range", parameter->source.name);
    if (parameter->role == Role::kInput && range.empty() && IsOffsets(parameter->source.name)) {
      parameter->offsets = true;
      if (Given("shape", parameter->source.name).empty() && !parameter->shape.empty()) parameter->shape.back() += "+1";
      return;  // ReadOffsets
    }
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

  // Of each offset, the number of elements in the tensor that is read from one offset to the next.
  void ReadOffsets() {
    const SourceReader& tokens = source_.tokens();
    for (DraftParameter& parameter : draft_.parameters) {
      const std::string& name = parameter.source.name;
      if (!parameter.offsets) continue;
      for (size_t i = draft_.function->body; i < draft_.function->end && parameter.high.empty(); ++i) {
        const bool bound = tokens.At(i).Is("<") && tokens.At(i + 1).Is(name) && tokens.At(i + 2).Is("[");
        for (const DraftParameter& other : draft_.parameters) {
          for (size_t k = draft_.function->body; bound && k < draft_.function->end; ++k) {
            if (tokens.At(k).Is(other.source.name) && tokens.At(k + 1).Is("[") &&
                tokens.At(k + 2).text == tokens.At(i - 1).text && tokens.At(k + 3).Is("]"))
              parameter.high = Draft::Elements(other);
          }
        }
      }
      if (parameter.high.empty())
        parameter.high = Need("range", name, "0,N", "the last of the offsets " + name + ", the number of elements");
      if (const size_t comma = parameter.high.find(','); comma != std::string::npos) parameter.high.erase(0, comma + 1);
      draft_.guesses.push_back(name + " contains offsets from 0 to " + parameter.high + ": " + name + "[i] and " +
                               name + "[i + 1] are read (--range " + name + "=LO,HI, where they are other numbers)");
    }
  }

  // Returns whether both x[i] and x[i + 1] are read of a tensor of integers.
  bool IsOffsets(const std::string& name) const {
    const SourceReader& tokens = source_.tokens();
    std::set<std::string> first, next;
    for (size_t i = draft_.function->body; i < draft_.function->end; ++i) {
      if (!tokens.At(i).Is(name) || !tokens.At(i + 1).Is("[")) continue;
      const size_t close = tokens.SkipGroup(i + 1, tokens.size()) - 1;
      const bool plus_one = close > i + 4 && tokens.At(close - 1).text == "1" && tokens.At(close - 2).Is("+");
      (plus_one ? next : first).insert(source_.TextOf(i + 2, plus_one ? close - 2 : close));
    }
    return std::any_of(first.begin(), first.end(), [&](const std::string& index) { return next.contains(index); });
  }

  // A tensor that is read as vectors, `reinterpret_cast<float4*>(x)`, has no remainder.
  void AddMultipleOfVectors(const DraftParameter& parameter) {
    const SourceReader& tokens = source_.tokens();
    if (parameter.shape.empty()) return;
    const std::string size = parameter.shape.back();
    const bool name = !size.empty() && std::all_of(size.begin(), size.end(),
                                                   [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    for (size_t i = draft_.function->body; i < draft_.function->end; ++i) {
      if (tokens.At(i).Is("%")) return;  // a remainder is handled
      size_t type = i - 1;
      while (tokens.At(type).Is("(") || tokens.At(type).Is("&")) --type;  // `<float4*>(&x[0])`, `(float4*)x`
      if (!tokens.At(i).Is(parameter.source.name) || !(tokens.At(type).Is(">") || tokens.At(type).Is(")"))) continue;
      if (!tokens.At(--type).Is("*")) continue;
      const std::optional<ElementType> vector = ElementTypeOf(std::string(tokens.At(type - 1).text));
      if (!vector || vector->lanes < 2 || parameter.lanes > 1) continue;
      const size_t ratio = Info(vector->dtype).size * static_cast<size_t>(vector->lanes) / Info(parameter.dtype).size;
      if (ratio < 2 || !name || std::isdigit(static_cast<unsigned char>(size[0])) != 0) continue;
      AddMultiple(size, static_cast<int64_t>(ratio),
                  parameter.source.name + " is read as " + std::string(tokens.At(type - 1).text));
      return;
    }
  }

  // A guess; --multiple overrules it.
  void AddMultiple(const std::string& name, int64_t multiple, const std::string& why) {
    if (multiple < 2 || !Given("multiple", name).empty() || !draft_.multiples.emplace(name, multiple).second) return;
    draft_.guesses.push_back(name + " is a multiple of " + std::to_string(multiple) + ", as " + why + " (--multiple " +
                             name + "=N)");
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
    } else if (const auto memory = site_.shapes.find(name); memory != site_.shapes.end()) {
      parameter->shape = memory->second;
      if (parameter->lanes > 1 && parameter->shape.back() == std::to_string(parameter->lanes))
        parameter->shape.pop_back();
      std::string shape;
      for (const std::string& dimension : parameter->shape) shape += (shape.empty() ? "" : ",") + dimension;
      GuessBySite(name + " has the shape " + shape, "shape " + name + "=D,D");
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
    const bool called = blocks.empty() && draft_.grid.empty() && !site_.grid.empty() && !site_.block.empty();
    const auto take = [&] {
      draft_.grid = CText(site_.grid);
      GuessBySite("the grid is " + site_.grid + " and the block " + site_.block, "grid, --block");
      AddMultiplesOf(site_.grid);
    };
    std::set<std::string> symbols;
    AddSymbols(site_.grid, &symbols);
    if (called) blocks = SplitCommas(site_.block);
    if (called && !symbols.empty()) take();
    if (!deep) GuessLaunch(&blocks);
    if (called && draft_.grid.empty()) take();  // as many blocks for every size
    if (blocks.empty()) blocks = {"256"};
    for (const std::string& extent : blocks) draft_.block += (draft_.block.empty() ? "" : ",") + CText(extent);
    if (draft_.grid.empty())
      draft_.grid = CText(Need("grid", "", "X,Y,Z", "how many blocks, as expressions of the sizes"));
    draft_.shared = Given("shared", "");
    if (dynamic_shared && draft_.shared.empty() && !site_.shared.empty()) {
      draft_.shared = CText(site_.shared);
      GuessBySite("the dynamic shared memory has " + site_.shared + " bytes", "shared BYTES");
    } else if (dynamic_shared)
      draft_.shared = Need("shared", "", "BYTES", "the bytes of dynamic shared memory");
  }

  // A grid of n/256 blocks handles no remainder.
  void AddMultiplesOf(const std::string& grid) {
    for (const std::string& extent : SplitCommas(grid)) {
      const LexedSource lexed = Lex(extent);
      const auto& words = lexed.tokens;
      if (words.size() != 3 || !words[1].Is("/") || words[0].kind != Token::Kind::kIdentifier) continue;
      AddMultiple(std::string(words[0].text), std::atoll(std::string(words[2].text).c_str()),
                  "the grid handles no remainder");
    }
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
    const int64_t each = steps[0].thread * (two ? steps[1].thread : 1);
    const std::string many = "a thread for each " + (each == 1 ? "element" : std::to_string(each) + " elements");
    const std::string guards = GridByGuards(steps);
    std::string shape;
    const std::string name = GridByShapes(steps, &shape);
    draft_.grid = guards.empty() ? shape : guards;
    if (draft_.grid.empty()) return;
    const std::string which =
        guards.empty() || guards == shape ? name + (two ? ", x along its rows" : "") : "the guard of " + steps[0].index;
    draft_.guesses.push_back(many + (which.starts_with("the") ? " by " : " of ") + which + " (--grid, --block)");
  }

  static std::string BlocksFor(const std::string& extent, int64_t each) {
    const bool sum = extent.find_first_of("?<>&|") != std::string::npos;
    return (sum ? "((" + extent + ")" : "(" + extent) + " + " + std::to_string(each - 1) + ") / " +
           std::to_string(each);
  }

  // The grid by the extents of the output, or of the first input if that is a single number; "" where they do not tell.
  // Returns the tensor's name.
  std::string GridByShapes(const std::vector<ThreadIndex::Step>& steps, std::string* grid) const {
    const DraftParameter* whole = nullptr;
    for (const DraftParameter& one : draft_.parameters) {
      const bool written = one.role == Role::kOutput || one.role == Role::kInout;
      if (written && (whole == nullptr || Draft::Elements(*whole) == "1")) whole = &one;
    }
    for (const DraftParameter& one : draft_.parameters) {
      if (whole != nullptr && Draft::Elements(*whole) == "1" && one.role == Role::kInput) whole = &one;
    }
    if (whole == nullptr || whole->shape.empty()) return "";
    DraftParameter extents = *whole;
    if (extents.lanes > 1) extents.shape.pop_back();
    if (steps.size() > 1 && extents.shape.size() != 2) return "";
    for (size_t axis = 0; axis < steps.size(); ++axis) {
      const std::string extent = steps.size() > 1 ? extents.shape[1 - axis] : Draft::Elements(extents);
      *grid += (axis == 0 ? "" : ",") + BlocksFor(CText(extent), steps[axis].block);
    }
    return whole->source.name;
  }

  // The grid by guards, `if (i < n)`, which tell the number of threads whatever the shapes are; "" where an index has
  // none, or two that differ.
  std::string GridByGuards(const std::vector<ThreadIndex::Step>& steps) const {
    std::string grid;
    for (const ThreadIndex::Step& step : steps) {
      const std::vector<std::string> bounds = BoundsOf(source_, *draft_.function, step.index);
      if (bounds.size() != 1) return "";
      for (const Token& token : Lex(bounds[0]).tokens) {
        const int at = draft_.function->IndexOf(std::string(token.text));
        const bool size = at >= 0 && !draft_.function->parameters[static_cast<size_t>(at)].pointer;
        if (token.kind == Token::Kind::kIdentifier && !size) return "";
      }
      grid += (grid.empty() ? "" : ",") + BlocksFor(CText(bounds[0]), step.block);
    }
    return grid;
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
  CallSite site_;                                             // the call in the file
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
  try {
    return Drafter(source, options, ask).Run(name);
  } catch (const NotUnderstood& not_understood) {
    source.Fail(not_understood);
  }
}

}  // namespace kgrpo::evaluator
