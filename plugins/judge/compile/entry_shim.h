// The few lines put before and after a candidate's source: a declaration that enforces the problem's signature, and
// a function through which the worker calls it with arguments in memory. Both compile routes use them.
#pragma once

#include <string>

#include "judge/problem/problem.h"  // Problem

namespace kgrpo::evaluator {

// Makes the compiler refuse what would exempt host code from being counted.
inline constexpr char kCountsStay[] = "#pragma GCC poison no_sanitize_coverage __no_sanitize_coverage__\n";

// Ends with `#line 1 "kernel.cu"`, so that messages count the candidate's own lines.
std::string EntryPrologue(const Problem& problem);

// Defines `extern "C" void kgrpo_call(void** arguments)`; arguments[i] points to the value of parameter i.
std::string EntryEpilogue(const Problem& problem);

}  // namespace kgrpo::evaluator
