// The oracle of a drafted problem: oracle.cc, where an elementwise map is translated to float64; for anything else it
// is a skeleton that `problems check` refuses until it is filled in. Used by draft_problem_main.cc.
#ifndef KGRPO_TOOLS_DRAFT_ORACLE_TEXT_H
#define KGRPO_TOOLS_DRAFT_ORACLE_TEXT_H

#include <string>

#include "draft/draft.h"

namespace kgrpo::evaluator {

struct OracleText {
  std::string text;  // of oracle.cc; "" without the file
  std::string yaml;  // lines of problem.yaml
  bool translated = false;
  std::string why_not;  // "line 12: __syncthreads"
  int operations = 0;   // of one element, where it is translated
};

// Traces a PyTorch function, "reference.py" or "reference.py:softmax", to the files oracle/*.pt of the problem's
// folder. `python`: the program; `script`: trace_function.py. Returns the function's name. Throws
// Error(KGRPO_ERROR_INVALID) with what Python says.
std::string TraceOracle(const Problem& problem, const std::string& function, const std::string& python,
                        const std::string& script);

// checker.cc in place of an oracle: compiles, but accepts no output until it is written.
std::string CheckerSkeleton(const Draft& draft);

OracleText MakeOracle(const CudaSource& source, const Draft& draft);

}  // namespace kgrpo::evaluator

#endif
