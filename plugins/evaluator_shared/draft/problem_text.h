// problem.yaml and reference.cu of a drafted problem. Used by draft_problem_main.cc.
#ifndef KGRPO_EVALUATOR_SHARED_DRAFT_PROBLEM_TEXT_H
#define KGRPO_EVALUATOR_SHARED_DRAFT_PROBLEM_TEXT_H

#include <string>
#include <vector>

#include "evaluator_shared/draft/draft.h"
#include "evaluator_shared/draft/oracle_text.h"

namespace kgrpo::evaluator {

// The file, with a launch function of the problem's types where it has none.
std::string ReferenceText(const CudaSource& source, const Draft& draft);

// The launch function's name: the file's own, or one that is added.
std::string EntryOf(const CudaSource& source, const Draft& draft);

// For a person: that function, and why it is one that was added to the kernel's `file`.
std::string EntryText(const CudaSource& source, const Draft& draft, const std::string& file);

// A sentence for each value of problem.yaml that the kernel does not state, beside draft.guesses. Each begins with its
// key, or names it in brackets.
std::vector<std::string> ValueGuesses(const Draft& draft, const OracleText& oracle);

std::string ProblemText(const CudaSource& source, const Draft& draft, const OracleText& oracle);

}  // namespace kgrpo::evaluator

#endif
