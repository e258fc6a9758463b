// From PTX syntax to a decoded kernel: device functions inlined, operands resolved, handlers and costs chosen.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "simt/ptx/ptx_syntax.h"
#include "simt/state/program.h"

namespace kgrpo::simt {

// Lowers one .entry function. `globals` maps names to indices in Program::globals. Throws kgrpo::Error where something
// is not interpreted.
Kernel LowerKernel(const PtxModule& module, const Function& entry,
                   const std::unordered_map<std::string_view, uint32_t>& globals);

// Gives every virtual register that `kernel` mentions a byte offset such that registers alive at the same time never
// share; returns the total bytes. `types` is by register; `whole` are alive from start to end. Needs code, mentions and
// blocks. Also says how many 32-bit registers a thread has alive at most, and which may be read before anything is
// written to them. See register_slots.cc.
uint32_t AssignSlots(const Kernel& kernel, const std::vector<Type>& types, const std::vector<uint32_t>& whole,
                     std::vector<Operand>& offsets, uint32_t& most_alive, std::vector<uint32_t>& unset);

// The value of a pointer to the function; 0 if the module defines none of that name.
uint64_t FunctionAddress(const PtxModule& module, std::string_view name);

// The basic blocks that may follow block `index`, by index.
std::vector<uint32_t> SuccessorsOf(const Kernel& kernel, uint32_t index, const std::vector<uint32_t>& block_at);

// Returns true if the instruction's result is affine in the block's number if its sources are. `origins`: by virtual
// register; kThread: it does not depend on that number.
bool IsLinear(const Instruction& in, const std::vector<Origin>& origins);

}  // namespace kgrpo::simt
