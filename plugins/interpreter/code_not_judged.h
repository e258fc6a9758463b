// The gaps of a verdict: lines of a candidate that no call ran, in words, and sizes that may reach them. Used
// by the evaluators once all of a candidate's calls were correct.
#pragma once

#include <string>
#include <vector>

#include "judge/problem/problem.h"  // Problem, Bindings
#include "simt/lower/code_not_run.h"
#include "simt/simt.h"  // Module, Coverage

namespace kgrpo::interpreter {

// As simt::FindCodeNotRun, of lines of the candidate's own files only.
std::vector<simt::CodeNotRun> FindCodeNotJudged(const simt::Module& module, const std::vector<simt::Coverage>& coverage,
                                                const std::string& source);

// "lines 30-31, which no size reaches: rows > 4096"; empty if there is no such code.
std::string NotJudgedText(const simt::Module& module, const std::vector<simt::CodeNotRun>& code,
                          const std::string& source);

// Sizes like those that the problem lists but with one dimension beyond a constant that the code compares. At most
// four, none of which has larger tensors than the timing size.
std::vector<evaluator::Bindings> SizesBeyond(const evaluator::Problem& problem,
                                             const std::vector<simt::CodeNotRun>& code);

}  // namespace kgrpo::interpreter
