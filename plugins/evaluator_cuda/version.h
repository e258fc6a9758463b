// The evaluator's version, for the keys of cached evaluations. In a file of its own, so that a change anywhere
// recompiles only this one.
#pragma once

namespace kgrpo::evaluator_cuda {

// The SHA-256, in hexadecimal, of the sources of evaluator_cuda and judge.
const char* SourceDigest();

}  // namespace kgrpo::evaluator_cuda
