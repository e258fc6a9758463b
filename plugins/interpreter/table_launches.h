// Makes the launches of a candidate in PTX's form: its table's expressions at a call's sizes and arguments. Used by
// LoadedKernel.
#pragma once

#include <cstdint>
#include <vector>

#include "interpreter/tensors.h"              // Tensors
#include "judge/compile/launch_table.h"       // TableLaunch
#include "judge/verdict/kernel_evaluation.h"  // Trouble
#include "simt/simt.h"                        // Module

namespace kgrpo::interpreter {

using evaluator::Trouble;

// Checks the number and kinds of each launch's arguments against its kernel's parameters.
Trouble CheckArguments(const std::vector<evaluator::TableLaunch>& table, const evaluator::Problem& problem,
                       const simt::Module& module);

// Sets `launches` to the messages that DeviceSession::Play takes. CheckArguments has found no trouble.
Trouble MakeLaunches(const std::vector<evaluator::TableLaunch>& table, const simt::Module& module,
                     const Tensors& tensors, std::vector<std::vector<uint8_t>>* launches);

}  // namespace kgrpo::interpreter
