// The gaps of a verdict: lines of a candidate that no call ran, in words, and sizes that may reach them. Used
// by both evaluators once all of a candidate's calls were correct.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/interpreted_cases.h"
#include "interpreter/loaded_kernel.h"
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

// "lines 12, 20": the source lines of instructions, each with its kernel, in any order.
std::string LinesOfEdges(const simt::Module& module, const std::vector<std::pair<uint32_t, uint32_t>>& edges,
                         const std::string& source);

// Sizes like those that the problem lists but with one dimension beyond a constant that the code compares. At most
// four, none of which has larger tensors than the timing size.
std::vector<evaluator::Bindings> SizesBeyond(const evaluator::Problem& problem,
                                             const std::vector<simt::CodeNotRun>& code);

// What calls at further sizes need.
struct FurtherSizes {
  const evaluator::Problem& problem;
  uint64_t key;  // secret: of the inputs
  // The problem's reference kernel on a device of its own, started. Null, or returns null: no size is tried.
  std::function<std::shared_ptr<LoadedKernel>()> reference;
  // How outputs of these cases are judged. They outlive the result.
  std::function<InterpretedCases::Options(const std::vector<evaluator::CorrectnessCase>&)> rules;
};

// Judges a kernel, of which all calls so far were correct, at SizesBeyond, as far as the reference is correct there.
// Without trouble, the NotJudgedText of what is left is appended to *not_judged. Throws what the functions of `how`
// throw at the kernel's own calls, and Error(KGRPO_ERROR_CANCELLED).
Trouble TryFurtherSizes(LoadedKernel& loaded, const FurtherSizes& how, std::string* not_judged);

}  // namespace kgrpo::interpreter
