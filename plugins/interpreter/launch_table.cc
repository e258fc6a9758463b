#include "interpreter/launch_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>

#include "interpreter/client/protocol.h"   // LaunchRequest
#include "judge/compile/candidate_form.h"  // kPtxFile
#include "judge/problem/dtype.h"

namespace kgrpo::interpreter {
namespace {

using evaluator::Bindings;
using evaluator::Expression;
using evaluator::Parameter;
using Kind = simt::KernelParameter::Kind;

constexpr std::string_view kMark = "kgrpo launch:", kBlanks = " \t\r";
constexpr size_t kMostLaunches = 4096;

struct TableItem {
  std::string_view text;
  size_t column = 0;  // from 0
};

TableItem Trimmed(TableItem item) {
  const size_t first = std::min(item.text.find_first_not_of(kBlanks), item.text.size());
  item.text.remove_prefix(first);
  return {item.text.substr(0, item.text.find_last_not_of(kBlanks) + 1), item.column + first};
}

std::string KindText(const simt::KernelParameter& parameter) {
  const char* const kind = parameter.kind == Kind::kInteger    ? "-bit integer"
                           : parameter.kind == Kind::kFloating ? "-bit floating-point number"
                                                               : " untyped bits";
  return "the kernel's parameter " + parameter.name + " of " + std::to_string(8 * parameter.size) + kind;
}

// One line of the table. Every function throws std::invalid_argument for a mistake, with its place.
class TableLine {
 public:
  TableLine(std::string_view line, int number, const Tensors& tensors)
      : line_(line), number_(number), tensors_(tensors) {
    names_ = tensors.size();
    const std::vector<Parameter>& parameters = tensors.problem().parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].IsTensor() && !evaluator::Info(parameters[i].dtype).is_floating)
        names_[parameters[i].name] = evaluator::LoadInteger(parameters[i].dtype, &tensors.values()[i]);
    }
  }

  // The message for the launch that the text from `at` describes; empty where it is not made at this size.
  std::vector<uint8_t> Read(size_t at, const simt::Module& module) {
    const size_t begin = std::min(line_.find_first_not_of(kBlanks, at), line_.size());
    std::map<std::string, TableItem, std::less<>> values = {
        {"shared", {"0"}}, {"cooperative", {"0"}}, {"overlaps", {"0"}}, {"at", {"()"}}};
    for (const char* key : {"entry", "grid", "block", "args"}) values[key] = {};
    for (at = begin; at < line_.size(); at = std::min(line_.find_first_not_of(kBlanks, at), line_.size())) {
      const size_t equals = std::min(line_.find_first_of("= \t\r(", at), line_.size());
      const auto value = values.find(line_.substr(at, equals - at));
      if (equals == line_.size() || line_[equals] != '=') Fail(at, "expected KEY=VALUE, as in grid=(ceil_div(n, 256))");
      if (value == values.end())
        Fail(at, "unknown key; known are entry, grid, block, args, shared, cooperative, overlaps and at");
      if (value->second.column != 0) Fail(at, value->first + " is given twice");
      at = EndOf(equals + 1, kBlanks);
      value->second = {line_.substr(equals + 1, at - equals - 1), equals + 1};
      if (value->second.text.empty()) Fail(equals, value->first + " has no value");
    }
    for (const auto& [key, value] : values)
      if (value.text.empty()) Fail(begin, "the launch has no " + key);

    const int kernel = module.FindKernel(values["entry"].text);
    if (kernel < 0) Fail(values["entry"].column, "the PTX has no entry '" + std::string(values["entry"].text) + "'");
    bool is_made = true;
    for (const TableItem& part : PartsOf(values["at"])) {
      const size_t equals = part.text.find('=');
      if (equals == std::string_view::npos) Fail(part.column, "expected NAME=VALUE, as in at=(n=1024)");
      const TableItem wanted = Trimmed({part.text.substr(equals + 1), part.column + equals + 1});
      is_made &= Number(Trimmed({part.text.substr(0, equals), part.column}), names_) == Number(wanted, names_);
    }
    LaunchRequest request = {.kernel = static_cast<uint32_t>(kernel),
                             .cooperative = Extent(values["cooperative"]),
                             .dynamic_shared_bytes = Extent(values["shared"]),
                             .overlaps = Extent(values["overlaps"])};
    SetExtents(values["grid"], request.grid);
    SetExtents(values["block"], request.block);
    const simt::KernelInfo& info = module.kernels()[request.kernel];
    std::vector<uint8_t> message(sizeof request + info.parameter_bytes);
    std::memcpy(message.data(), &request, sizeof request);
    const std::vector<TableItem> arguments = PartsOf(values["args"]);
    if (arguments.size() != info.parameters.size()) {
      Fail(values["args"].column, std::to_string(arguments.size()) + " arguments, and " + info.name + " has " +
                                      std::to_string(info.parameters.size()) + " parameters");
    }
    for (size_t i = 0; i < arguments.size(); ++i)
      Store(arguments[i], info.parameters[i], message.data() + sizeof request + info.parameters[i].offset);
    return is_made ? message : std::vector<uint8_t>();
  }

 private:
  [[noreturn]] void Fail(size_t column, const std::string& what) const {
    throw std::invalid_argument(std::string(evaluator::kPtxFile) + ":" + std::to_string(number_) + ":" +
                                std::to_string(column + 1) + ": " + what);
  }

  // Where the text from `at` ends: at one of `ends` outside parentheses, or at the line's end.
  size_t EndOf(size_t at, std::string_view ends) const {
    std::vector<size_t> open;
    for (; at < line_.size(); ++at) {
      if (open.empty() && ends.find(line_[at]) != std::string_view::npos) return at;
      if (line_[at] == '(') open.push_back(at);
      if (line_[at] == ')' && open.empty()) Fail(at, "this ) closes nothing");
      if (line_[at] == ')') open.pop_back();
    }
    if (!open.empty()) Fail(open.back(), "this ( is not closed");
    return at;
  }

  // The parts of "(a, b, c)", or the value itself.
  std::vector<TableItem> PartsOf(TableItem value) const {
    if (value.text == "()") return {};
    const size_t end = value.column + value.text.size();
    if (value.text.empty() || value.text[0] != '(' || EndOf(value.column + 1, ")") + 1 != end) return {value};
    std::vector<TableItem> parts;
    for (size_t at = value.column + 1, stop = 0; at < end; at = stop + 1) {
      stop = EndOf(at, ",)");
      parts.push_back(Trimmed({line_.substr(at, stop - at), at}));
    }
    return parts;
  }

  Expression Parse(TableItem item) const try {
    return Expression::Parse(std::string(item.text));
  } catch (const std::invalid_argument& error) {
    Fail(item.column, error.what());
  }

  int64_t Number(TableItem item, const Bindings& names) const {
    const Expression expression = Parse(item);
    try {
      return expression.EvaluateInteger(names);
    } catch (const std::invalid_argument& error) {
      Fail(item.column, error.what());
    }
  }

  uint32_t Extent(TableItem item) const {
    const int64_t number = Number(item, names_);
    if (number < 0 || number > UINT32_MAX) Fail(item.column, std::string(item.text) + " is " + std::to_string(number));
    return static_cast<uint32_t>(number);
  }

  void SetExtents(TableItem value, uint32_t (&extents)[3]) const {
    const std::vector<TableItem> parts = PartsOf(value);
    if (parts.empty() || parts.size() > 3) Fail(value.column, "expected 1 to 3 dimensions");
    for (size_t d = 0; d < 3; ++d) extents[d] = d < parts.size() ? Extent(parts[d]) : 1;
  }

  // Stores an argument as the kernel's parameter has it. A tensor's name is its address. A struct of more than 8 bytes
  // is a list of its 8-byte words.
  void Store(TableItem argument, const simt::KernelParameter& parameter, uint8_t* target) const {
    if (parameter.size > 8) {
      const std::vector<TableItem> words = PartsOf(argument);
      if (words.size() != (parameter.size + 7) / 8)
        Fail(argument.column, std::to_string(words.size()) + " words of 8 bytes, and not for " + KindText(parameter));
      for (size_t i = 0; i < words.size(); ++i) {
        simt::KernelParameter word = parameter;
        word.size = std::min<decltype(word.size)>(8, parameter.size - 8 * static_cast<decltype(word.size)>(i));
        Store(words[i], word, target + 8 * i);
      }
      return;
    }
    Bindings names = names_;
    const Expression expression = Parse(argument);
    const std::set<std::string> symbols = expression.Symbols();
    const auto require = [&](bool fits, const std::string& what) {
      if (!fits)
        Fail(argument.column, std::string(argument.text) + " is " + what + ", and not for " + KindText(parameter));
    };
    const std::vector<Parameter>& parameters = tensors_.problem().parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const evaluator::DTypeInfo& info = evaluator::Info(parameters[i].dtype);
      if (!symbols.contains(parameters[i].name)) continue;
      if (parameters[i].IsTensor()) {
        require(parameter.kind != Kind::kFloating && parameter.size == 8, "a tensor's address");
        names[parameters[i].name] = static_cast<int64_t>(tensors_.values()[i]);
      } else if (info.is_floating && argument.text == parameters[i].name) {
        require(parameter.kind != Kind::kInteger && parameter.size == info.size, info.name);
        std::memcpy(target, &tensors_.values()[i], parameter.size);
        return;
      }
    }
    if (parameter.kind == Kind::kFloating) {
      require(parameter.size >= 4, "a number");
      try {
        evaluator::StoreDouble(parameter.size == 4 ? evaluator::DType::kFloat32 : evaluator::DType::kFloat64,
                               expression.Evaluate(names), target);
      } catch (const std::invalid_argument& error) {
        Fail(argument.column, error.what());
      }
      return;
    }
    const int64_t number = Number(argument, names);
    const unsigned bits = 8 * parameter.size;
    require(bits <= 64 && (bits >= 64 || (number < int64_t{1} << bits && number >= -(int64_t{1} << (bits - 1)))),
            std::to_string(number));
    std::memcpy(target, &number, parameter.size);
  }

  const std::string_view line_;
  const int number_;
  const Tensors& tensors_;
  Bindings names_;
};

}  // namespace

evaluator::Trouble MakeLaunches(const std::string& ptx, const simt::Module& module, const Tensors& tensors,
                                std::vector<std::vector<uint8_t>>* launches) try {
  size_t lines = 0;
  for (size_t at = 0, number = 1; at < ptx.size(); ++number) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size());
    const std::string_view line = std::string_view(ptx).substr(at, end - at);
    at = end + 1;
    const TableItem comment = Trimmed({line, 0});
    if (!comment.text.starts_with("//")) continue;
    const TableItem text = Trimmed({comment.text.substr(2), comment.column + 2});
    if (!text.text.starts_with(kMark)) continue;
    if (++lines > kMostLaunches) return {"invalid_launch", "The launch table has more than 4096 launches."};
    TableLine reader(line, static_cast<int>(number), tensors);
    std::vector<uint8_t> message = reader.Read(text.column + kMark.size(), module);
    if (!message.empty()) launches->push_back(std::move(message));
  }
  if (lines > 0) return {};
  return {"invalid_launch",
          "The PTX has no launch table; add a line such as `// kgrpo launch: entry=NAME grid=(ceil_div(n, 256)) "
          "block=(256) args=(x, out, n)`."};
} catch (const std::invalid_argument& error) {
  return {"invalid_launch", std::string(error.what()) + "."};
}

}  // namespace kgrpo::interpreter
