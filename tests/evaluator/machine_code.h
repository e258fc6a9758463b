// Compares the machine code of two cubins kernel by kernel, instruction by instruction. Used by machine_code_test.cc to
// hold the two compile routes to the same result.
#ifndef KGRPO_TESTS_EVALUATOR_MACHINE_CODE_H
#define KGRPO_TESTS_EVALUATOR_MACHINE_CODE_H

#include <string>
#include <string_view>

namespace kgrpo::evaluator {

// Returns "" if both hold the same kernels and device functions with the same instructions (16 bytes each for sm_70 and
// later, including scheduling); otherwise the first difference: its function, instruction and bytes.
//
// Instructions may name different slots of the linker's address table (constant bank 4): they are equal if the slots
// hold the same symbol, because the slot is relocation and not code.
std::string MachineCodeDifference(std::string_view a, std::string_view b);

}  // namespace kgrpo::evaluator

#endif
