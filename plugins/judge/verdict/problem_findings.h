// Finds degenerate problems: those that judge a kernel correct that does not do the work, and those whose reference
// kernel is no fair baseline. No kernel runs: constructed outputs are compared with the expected ones. Called by
// evaluators' check_problem.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "judge/inputs/inputs.h"       // Argument
#include "judge/problem/cases.h"       // CorrectnessCase
#include "judge/problem/problem.h"     // Problem
#include "judge/verdict/comparison.h"  // Expected
#include "judge/verdict/kernel_evaluation.h"
#include "judge/verdict/oracle.h"  // Checker

namespace kgrpo::evaluator {

// An oracle.cc or a checker.cc with this line is a draft of `problems new`, without a body.
inline constexpr const char* kOracleToWrite = "// ORACLE TO BE WRITTEN";
inline constexpr const char* kCheckerToWrite = "// CHECKER TO BE WRITTEN";

struct ProblemFinding {
  std::string code;      // "constant_output": docs/problems.md lists them
  std::string sentence;  // names the parameter
  std::string advice;
};

// Returns the expected outputs of a case, by parameter.
using ExpectedOf = std::function<std::vector<Expected>(const CorrectnessCase&, const std::vector<Argument>&)>;

// Tries the correctness sizes with inputs of its own, the same each time. Empty for a sound problem, and for one that
// an import refused. Throws what `expected` throws. [any thread, if `expected` allows it]
// With `checker` the outputs of `expected` are the reference's, and the checker decides whether others are right.
std::vector<ProblemFinding> FindDegenerate(const Problem& problem, const ExpectedOf& expected,
                                           const Checker* checker = nullptr);

// What to do if the oracle or the checker is still a draft, which cannot evaluate any kernel; else empty.
std::string DraftAdvice(const Problem& problem);

// Evaluates the reference kernel thoroughly, as candidates are, with inputs of this seed. The diagnosis of an incorrect
// one names hidden sizes, since only the problem's author reads it.
using JudgeReference = std::function<KernelEvaluation(uint64_t seed)>;

inline constexpr uint64_t kReferenceSeeds = 5;

// Returns the findings on the reference kernel over kReferenceSeeds evaluations, which end at the first incorrect one:
// it is not correct, faster than `needs` allows, so near to its tolerance that correct kernels exceed it, or too short
// to time. Throws what `judge` throws.
std::vector<ProblemFinding> FindOfReference(const Problem& problem, const JudgeReference& judge);

}  // namespace kgrpo::evaluator
