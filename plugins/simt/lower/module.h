// PTX, parsed once and decoded for the interpreter. The evaluator parses what nvcc embedded in a candidate, then makes
// an instance (its global variables in a DeviceMemory) for each run.
#pragma once

#include <cstdint>      // sizes
#include <memory>       // shared_ptr
#include <string>       // names
#include <string_view>  // PTX text
#include <vector>       // kernels

#include "simt/state/memory.h"

namespace kgrpo::simt {

struct Program;  // program.h: decoded instructions, private to this library

// One parameter of a kernel, within the parameter block that a launch passes.
struct KernelParameter {
  std::string name;
  uint32_t offset = 0;  // bytes
  uint32_t size = 0;    // bytes
  uint32_t align = 0;
  enum class Kind : uint8_t { kInteger, kFloating, kBits } kind = Kind::kBits;  // kBits: .b32, a struct
};

// One kernel (.entry).
struct KernelInfo {
  std::string name;  // as in PTX: mangled unless extern "C"
  std::vector<KernelParameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;         // a thread's local memory
  uint32_t max_threads = 0;         // __launch_bounds__, 0 where none
  uint32_t min_blocks = 0;          // likewise
  uint32_t instructions = 0;        // after inlining
  std::string refused;              // the first thing in it that is not interpreted, with its line; else empty
  uint32_t registers_estimate = 0;  // live 32-bit registers, for callers that have no figure of ptxas
};

// A global variable (__device__, __constant__).
struct GlobalInfo {
  std::string name;
  uint64_t bytes = 0;
  uint32_t align = 0;
  bool constant = false;
};

// A parsed module. Immutable: may be shared among threads.
class Module {
 public:
  // Parses the PTX text that nvcc or NVRTC emits. A kernel that uses a feature or an instruction that is not
  // interpreted is refused when it is launched (KernelInfo::refused). Throws kgrpo::Error: KGRPO_ERROR_UNSUPPORTED for
  // such a thing outside of functions, KGRPO_ERROR_INVALID for text that is not PTX.
  // `own_file`, unless empty, names the text in places of instructions without a .loc.
  static std::shared_ptr<const Module> Parse(std::string_view ptx, std::string_view own_file = {});
  ~Module();

  const std::vector<KernelInfo>& kernels() const { return kernels_; }
  const std::vector<GlobalInfo>& globals() const { return globals_; }
  // Of all globals together.
  uint64_t GlobalBytes() const;
  // Index in kernels(), or -1.
  int FindKernel(std::string_view name) const;

  const Program& program() const { return *program_; }

 private:
  Module();
  std::vector<KernelInfo> kernels_;
  std::vector<GlobalInfo> globals_;
  std::unique_ptr<Program> program_;
};

// A module loaded into a device's memory: its globals have addresses and initial values. Owns those allocations.
// One thread at a time. The memory must outlive it.
class ModuleInstance {
 public:
  // Throws kgrpo::Error(KGRPO_ERROR_INVALID) where memory does not suffice.
  ModuleInstance(std::shared_ptr<const Module> module, DeviceMemory& memory);
  ~ModuleInstance();
  ModuleInstance(const ModuleInstance&) = delete;
  ModuleInstance& operator=(const ModuleInstance&) = delete;

  const Module& module() const { return *module_; }
  DeviceMemory& memory() const { return memory_; }
  // A global's address, 0 where there is none of that name.
  DeviceAddress GlobalAddress(std::string_view name) const;
  // Restores every global to its initial value (what a fresh process would see).
  void ResetGlobals();

  // The constants of kernel `index` with the globals' addresses filled in; for the interpreter.
  const std::vector<uint32_t>& Constants(int kernel) const { return constants_[static_cast<size_t>(kernel)]; }

 private:
  std::shared_ptr<const Module> module_;
  DeviceMemory& memory_;
  std::vector<DeviceAddress> addresses_;          // by index in module().globals()
  std::vector<std::vector<uint32_t>> constants_;  // by kernel
};

}  // namespace kgrpo::simt
