// Compares the machine code of two cubins kernel by kernel, instruction by instruction. Used by machine_code_test.cc to
// hold the two compile routes to the same result.
#ifndef KGRPO_TESTS_EVALUATOR_MACHINE_CODE_H
#define KGRPO_TESTS_EVALUATOR_MACHINE_CODE_H

#include <string>
#include <string_view>

namespace kgrpo::evaluator {

// "" where both hold the same kernels and device functions with the same instructions (for sm_70 and later, 16 bytes
// each, scheduling included); otherwise the first difference: its function, instruction and bytes.
//
// Which slot of the linker's table of addresses (constant bank 4) holds a symbol's address is not code but relocation:
// instructions that name different slots are the same where the slots hold the same symbol.
std::string MachineCodeDifference(std::string_view a, std::string_view b);

}  // namespace kgrpo::evaluator

#endif
