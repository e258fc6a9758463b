// Assembles a candidate in PTX's form by ptxas, for its resources and its machine code. Used by Compiler.
#pragma once

#include <functional>
#include <string>

#include "judge/compile/compiled_kernel.h"  // CompileOutcome
#include "judge/compile/cuda_toolkit.h"     // CudaToolkit
#include "judge/sandbox/sandbox.h"          // Sandbox

namespace kgrpo::evaluator {

// The outcome has no object. Throws Error(KGRPO_ERROR_UNAVAILABLE) where ptxas cannot be run. `stop`: as in
// Compiler::Options.
CompileOutcome AssemblePtx(const CudaToolkit& toolkit, const Sandbox& sandbox, int compute_capability,
                           const std::string& ptx, double seconds, const std::function<bool()>& stop);

}  // namespace kgrpo::evaluator
