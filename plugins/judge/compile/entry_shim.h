// The few lines put before and after a candidate's source: a declaration that enforces the problem's signature, and
// a function through which the worker calls it with arguments in memory. Both compile routes use them.
#pragma once

#include <string>

#include "judge/problem/problem.h"  // Problem

namespace kgrpo::evaluator {

// Ends with `#line 1 "kernel.cu"`, so that messages count the candidate's own lines.
std::string EntryPrologue(const Problem& problem);

// Defines `extern "C" void kgrpo_call(void** arguments)`; arguments[i] points to the value of parameter i.
std::string EntryEpilogue(const Problem& problem);

}  // namespace kgrpo::evaluator
