// problem.yaml, reference.cu and launcher.cu of a drafted problem. Used by draft_problem_main.cc.
#ifndef KGRPO_TOOLS_DRAFT_PROBLEM_TEXT_H
#define KGRPO_TOOLS_DRAFT_PROBLEM_TEXT_H

#include <string>
#include <vector>

#include "draft/draft.h"
#include "draft/oracle_text.h"

namespace kgrpo::evaluator {

// reference.cu: what the launcher or kernel needs of the file.
std::string ReferenceText(const CudaSource& source, const Draft& draft);

// launcher.cu: the launch function of the problem's types, which calls the file's; "" if the file's has them.
std::string LauncherText(const CudaSource& source, const Draft& draft);

// For a person: the function that candidates define, and why there is a launcher.cu.
std::string EntryText(const CudaSource& source, const Draft& draft);

// A sentence for each value of problem.yaml that the kernel does not state, beside draft.guesses. Each begins with its
// key, or names it in brackets.
std::vector<std::string> ValueGuesses(const CudaSource& source, const Draft& draft, const OracleText& oracle);

std::string ProblemText(const CudaSource& source, const Draft& draft, const OracleText& oracle);

}  // namespace kgrpo::evaluator

#endif
