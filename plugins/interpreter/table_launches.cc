#include "interpreter/table_launches.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "interpreter/client/protocol.h"  // LaunchRequest
#include "judge/problem/dtype.h"

namespace kgrpo::interpreter {
namespace {

using evaluator::Bindings;
using evaluator::Parameter;
using evaluator::TableLaunch;
using evaluator::TableValue;
using Kind = simt::KernelParameter::Kind;

// Thrown with the sentence of a verdict `invalid_launch`.
struct BadTable : std::runtime_error {
  BadTable(const std::string& place, const std::string& what) : runtime_error(place + ": " + what + ".") {}
};

const simt::KernelInfo& EntryOf(const TableLaunch& launch, const simt::Module& module) {
  const int kernel = module.FindKernel(launch.entry);
  if (kernel < 0) throw BadTable(launch.place, "the PTX has no entry '" + launch.entry + "' with a body");
  return module.kernels()[static_cast<size_t>(kernel)];
}

std::string KindText(const simt::KernelParameter& parameter) {
  const char* const kind = parameter.kind == Kind::kInteger    ? "-bit integer"
                           : parameter.kind == Kind::kFloating ? "-bit floating-point number"
                                                               : " untyped bits";
  return std::to_string(8 * parameter.size) + kind;
}

void CheckArgument(const TableValue& argument, const evaluator::Problem& problem,
                   const simt::KernelParameter& parameter) {
  bool fits = parameter.size == 1 || parameter.size == 2 || parameter.size == 4 || parameter.size == 8;
  std::string what = "an expression";
  if (argument.scalar) {
    const evaluator::DTypeInfo& info = evaluator::Info(problem.parameters[*argument.scalar].dtype);
    fits = parameter.kind != Kind::kInteger && parameter.size == info.size;
    what = info.name;
  } else if (argument.has_address) {
    fits = parameter.kind != Kind::kFloating && parameter.size == 8;
    what = "a tensor's address";
  } else if (parameter.kind == Kind::kFloating) {
    fits = parameter.size >= 4;
  }
  if (!fits)
    throw BadTable(argument.place, "the argument is " + what + ", and the kernel's parameter " + parameter.name +
                                       " is of " + KindText(parameter));
}

int64_t WholeNumber(const TableValue& value, const Bindings& names) try {
  return value.expression.EvaluateInteger(names);
} catch (const std::invalid_argument& error) {
  throw BadTable(value.place, error.what());
}

uint32_t Extent(const TableValue& value, const Bindings& names) {
  const int64_t number = WholeNumber(value, names);
  if (number < 0 || number > UINT32_MAX)
    throw BadTable(value.place, value.expression.text() + " is " + std::to_string(number));
  return static_cast<uint32_t>(number);
}

void StoreArgument(const TableValue& argument, const Bindings& names, const std::vector<uint64_t>& values,
                   const simt::KernelParameter& parameter, uint8_t* target) {
  if (argument.scalar) {
    std::memcpy(target, &values[*argument.scalar], parameter.size);
  } else if (parameter.kind == Kind::kFloating) {
    evaluator::StoreDouble(parameter.size == 4 ? evaluator::DType::kFloat32 : evaluator::DType::kFloat64,
                           argument.expression.Evaluate(names), target);
  } else {
    const int64_t number = WholeNumber(argument, names);
    const unsigned bits = 8 * parameter.size;
    if (bits < 64 && (number >= int64_t{1} << bits || number < -(int64_t{1} << (bits - 1))))
      throw BadTable(argument.place, argument.expression.text() + " is " + std::to_string(number) +
                                         ", which the kernel's parameter " + parameter.name + " of " +
                                         KindText(parameter) + " cannot hold");
    std::memcpy(target, &number, parameter.size);
  }
}

}  // namespace

Trouble CheckArguments(const std::vector<TableLaunch>& table, const evaluator::Problem& problem,
                       const simt::Module& module) try {
  for (const TableLaunch& launch : table) {
    const simt::KernelInfo& info = EntryOf(launch, module);
    if (info.parameters.size() != launch.arguments.size()) {
      throw BadTable(launch.place, "the launch has " + std::to_string(launch.arguments.size()) + " arguments, and " +
                                       launch.entry + " has " + std::to_string(info.parameters.size()) + " parameters");
    }
    for (size_t i = 0; i < launch.arguments.size(); ++i)
      CheckArgument(launch.arguments[i], problem, info.parameters[i]);
  }
  return {};
} catch (const BadTable& error) {
  return {"invalid_launch", error.what()};
}

Trouble MakeLaunches(const std::vector<TableLaunch>& table, const simt::Module& module, const Tensors& tensors,
                     std::vector<std::vector<uint8_t>>* launches) try {
  const std::vector<Parameter>& parameters = tensors.problem().parameters;
  Bindings names = tensors.size();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].IsTensor() && !evaluator::Info(parameters[i].dtype).is_floating)
      names[parameters[i].name] = evaluator::LoadInteger(parameters[i].dtype, &tensors.values()[i]);
  }
  Bindings with_addresses = names;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].IsTensor()) with_addresses[parameters[i].name] = static_cast<int64_t>(tensors.values()[i]);
  }
  for (const TableLaunch& launch : table) {
    bool holds = true;
    for (const auto& [name, value] : launch.only_at) holds = holds && names.at(name) == WholeNumber(value, names);
    if (!holds) continue;
    const simt::KernelInfo& info = EntryOf(launch, module);
    LaunchRequest request = {};
    request.kernel = static_cast<uint32_t>(module.FindKernel(launch.entry));
    request.cooperative = launch.cooperative ? 1 : 0;
    request.overlaps = launch.overlaps ? 1 : 0;
    for (size_t d = 0; d < 3; ++d) {
      request.grid[d] = d < launch.grid.size() ? Extent(launch.grid[d], names) : 1;
      request.block[d] = d < launch.block.size() ? Extent(launch.block[d], names) : 1;
    }
    request.dynamic_shared_bytes = Extent(launch.shared, names);
    std::vector<uint8_t>& message = launches->emplace_back(sizeof request + info.parameter_bytes);
    std::memcpy(message.data(), &request, sizeof request);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const simt::KernelParameter& parameter = info.parameters[i];
      StoreArgument(launch.arguments[i], with_addresses, tensors.values(), parameter,
                    message.data() + sizeof request + parameter.offset);
    }
  }
  return {};
} catch (const BadTable& error) {
  return {"invalid_launch", error.what()};
}

}  // namespace kgrpo::interpreter
