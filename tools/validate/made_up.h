// A made-up problem with kernels and evaluations, for the calls of the .cc files.
#ifndef KGRPO_VALIDATE_MADE_UP_H
#define KGRPO_VALIDATE_MADE_UP_H

#include <kgrpo/coder.h>
#include <kgrpo/evaluator.h>

#include <string>

namespace kgrpo::validate {

// Vector addition. All of this is static.
const kgrpo_problem_info& MadeUpProblem();
const char* MadeUpKernel();        // the reference
const char* MadeUpFasterKernel();  // one that reads four floats at once

// A correct kernel of that run time, with metrics (dram_bytes falls with the time) and a remark.
kgrpo_evaluation CorrectKernel(double seconds);
kgrpo_evaluation WrongKernel(const char* verdict);  // compiled unless the verdict is "not_compiled"

kgrpo_coder_answer AnswerWith(const char* source);
kgrpo_coder_answer AnswerWithout(kgrpo_coder_outcome outcome);

}  // namespace kgrpo::validate
#endif
