// The launch table of a candidate in PTX's form: comment lines of the PTX that say which kernels are launched, how and
// with which arguments. The format is described in docs/judging.md. Used by LoadedKernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interpreter/tensors.h"              // Tensors
#include "judge/verdict/kernel_evaluation.h"  // Trouble
#include "simt/simt.h"                        // Module

namespace kgrpo::interpreter {

// Reads the table and evaluates it for a call with these tensors: sets `launches` to what DeviceSession::Play takes, in
// the order of the table's lines. Returns `invalid_launch` and "kernel.ptx:LINE:COLUMN: ..." for the first mistake.
evaluator::Trouble MakeLaunches(const std::string& ptx, const simt::Module& module, const Tensors& tensors,
                                std::vector<std::vector<uint8_t>>* launches);

}  // namespace kgrpo::interpreter
