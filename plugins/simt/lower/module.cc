#include "simt/lower/module.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "simt/lower/lowering.h"
#include "simt/ptx/ptx_parser.h"
#include "simt/state/program.h"

namespace kgrpo::simt {
namespace {

KernelParameter::Kind KindOf(Type type) {
  using Kind = KernelParameter::Kind;
  if (type >= Type::kF16 && type <= Type::kF64) return Kind::kFloating;
  return type >= Type::kU8 && type <= Type::kS64 ? Kind::kInteger : Kind::kBits;
}

}  // namespace

Module::Module() = default;
Module::~Module() = default;

std::shared_ptr<const Module> Module::Parse(std::string_view ptx, std::string_view own_file) {
  const PtxModule syntax = Parser(ptx, own_file).Run();
  std::shared_ptr<Module> module(new Module);
  module->program_ = std::make_unique<Program>();
  Program& program = *module->program_;
  program.files = syntax.files;
  std::unordered_map<std::string_view, uint32_t> globals;
  std::unordered_map<std::string_view, const Variable*> variables;
  for (const Variable& variable : syntax.variables) {
    if (variable.space != Variable::Space::kGlobal && variable.space != Variable::Space::kConst) continue;
    if (variable.is_extern)
      Refuse(syntax, {}, 0, "the variable '" + std::string(variable.name) + "', which another module defines,");
    globals[variable.name] = static_cast<uint32_t>(program.globals.size());
    const bool constant = variable.space == Variable::Space::kConst;
    program.globals.push_back(
        {std::string(variable.name), variable.bytes, variable.align, constant, variable.initial, {}});
    module->globals_.push_back({std::string(variable.name), variable.bytes, variable.align, constant});
    variables[variable.name] = &variable;
  }
  for (const auto& [name, variable] : variables) {
    for (const Variable::Reference& reference : variable->references) {
      const auto it = globals.find(reference.symbol);
      if (const uint64_t function = FunctionAddress(syntax, reference.symbol); it == globals.end() && function != 0) {
        std::vector<uint8_t>& bytes = program.globals[globals[name]].initial;
        for (uint64_t i = 0; i < 8; ++i) bytes.at(reference.offset + i) = static_cast<uint8_t>(function >> (8 * i));
        continue;
      }
      if (it == globals.end())
        Refuse(syntax, {}, 0, "the address of '" + std::string(reference.symbol) + "' in an initialiser");
      program.globals[globals[name]].references.push_back({reference.offset, it->second, reference.addend});
    }
  }
  for (const Function& function : syntax.functions) {
    if (!function.is_entry || !function.has_body) continue;
    Kernel kernel;
    KernelInfo info;
    try {
      kernel = LowerKernel(syntax, function, globals);
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_UNSUPPORTED) throw;
      info.refused = error.what();
    }
    info.name = kernel.name = std::string(function.name);
    uint32_t offset = 0;
    for (const Variable& parameter : function.parameters) {
      offset = (offset + parameter.align - 1) / parameter.align * parameter.align;
      info.parameters.push_back({std::string(parameter.name), offset, static_cast<uint32_t>(parameter.bytes),
                                 parameter.align, KindOf(parameter.type)});
      offset += static_cast<uint32_t>(parameter.bytes);
    }
    info.parameter_bytes = offset;
    info.static_shared_bytes = kernel.static_shared_bytes;
    info.local_bytes = kernel.local_bytes;
    info.max_threads = function.max_threads;
    info.min_blocks = function.min_blocks;
    info.instructions = static_cast<uint32_t>(kernel.code.size());
    info.registers_estimate = kernel.registers_estimate;
    module->kernels_.push_back(std::move(info));
    program.kernels.push_back(std::move(kernel));
  }
  return module;
}

uint64_t Module::GlobalBytes() const {
  uint64_t bytes = 0;
  for (const GlobalInfo& global : globals_) bytes += std::min(global.bytes, UINT64_MAX - bytes);
  return bytes;
}

int Module::FindKernel(std::string_view name) const {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

ModuleInstance::ModuleInstance(std::shared_ptr<const Module> module, DeviceMemory& memory)
    : module_(std::move(module)), memory_(memory) {
  for (const GlobalVariable& global : module_->program().globals) {
    const DeviceAddress address = memory_.Allocate(global.bytes, global.name, global.constant);
    if (address == 0) {
      for (const DeviceAddress earlier : addresses_) memory_.Free(earlier);
      throw Error(KGRPO_ERROR_INVALID, "no device memory left for the variable '" + global.name + "' of " +
                                           std::to_string(global.bytes) + " bytes");
    }
    addresses_.push_back(address);
  }
  ResetGlobals();
  for (const Kernel& kernel : module_->program().kernels) {
    constants_.push_back(kernel.constants);
    std::vector<uint32_t>& words = constants_.back();
    for (const ConstantPatch& patch : kernel.patches) {
      if (patch.kind != ConstantPatch::Kind::kGlobal) continue;
      const uint64_t value = addresses_[patch.value] + static_cast<uint64_t>(patch.addend);
      for (uint32_t l = 0; l < kLanes; ++l) {
        words[patch.at / 4 + 2 * l] = static_cast<uint32_t>(value);
        words[patch.at / 4 + 2 * l + 1] = static_cast<uint32_t>(value >> 32);
      }
    }
  }
}

ModuleInstance::~ModuleInstance() {
  for (const DeviceAddress address : addresses_) memory_.Free(address);
}

void ModuleInstance::ResetGlobals() {
  const std::vector<GlobalVariable>& globals = module_->program().globals;
  for (size_t i = 0; i < globals.size(); ++i) {
    memory_.Zero(addresses_[i]);
    memory_.Write(addresses_[i], globals[i].initial.data(), globals[i].initial.size());
    for (const GlobalVariable::Reference& reference : globals[i].references) {
      const uint64_t value = addresses_[reference.global] + static_cast<uint64_t>(reference.addend);
      memory_.Write(addresses_[i] + reference.offset, &value, sizeof value);
    }
  }
}

DeviceAddress ModuleInstance::GlobalAddress(std::string_view name) const {
  const std::vector<GlobalVariable>& globals = module_->program().globals;
  for (size_t i = 0; i < globals.size(); ++i) {
    if (globals[i].name == name) return addresses_[i];
  }
  return 0;
}

}  // namespace kgrpo::simt
