// From PTX syntax to a decoded kernel: device functions inlined, operands resolved, handlers and costs chosen.
#ifndef KGRPO_EVALUATOR_SIM_SIMT_LOWERING_H_
#define KGRPO_EVALUATOR_SIM_SIMT_LOWERING_H_

#include <string_view>
#include <unordered_map>

#include "evaluator_sim/simt/program.h"
#include "evaluator_sim/simt/ptx_syntax.h"

namespace kgrpo::simt {

// Lowers one .entry function. `globals` maps names to indices in Program::globals. Throws kgrpo::Error where something
// is not interpreted.
Kernel LowerKernel(const PtxModule& module, const Function& entry,
                   const std::unordered_map<std::string_view, uint32_t>& globals);

// Where each virtual register's mentions lie, for sharing of slots. See register_slots.cc.
struct RegisterUse {
  Type type = Type::kB32;
  int32_t first = -1, last = -1;  // instruction indices; -1: never
  bool starts_with_definition = false;
};
// Gives every used register a byte offset such that registers alive at the same time never share; returns the total
// bytes. `backward` are the branches (from, to) with to <= from. Also says how many 32-bit registers a thread has alive
// at most.
uint32_t AssignSlots(std::vector<RegisterUse>& uses, const std::vector<std::pair<int32_t, int32_t>>& backward,
                     std::vector<Operand>& offsets, uint32_t& most_alive);

}  // namespace kgrpo::simt
#endif  // KGRPO_EVALUATOR_SIM_SIMT_LOWERING_H_
