// oracle.cc of a drafted problem: an elementwise map is translated to float64, of anything else there is a skeleton
// that `problems check` refuses until somebody writes it. Used by draft_problem_main.cc.
#ifndef KGRPO_EVALUATOR_SHARED_DRAFT_ORACLE_TEXT_H
#define KGRPO_EVALUATOR_SHARED_DRAFT_ORACLE_TEXT_H

#include <string>

#include "evaluator_shared/draft/draft.h"

namespace kgrpo::evaluator {

struct OracleText {
  std::string text;
  bool translated = false;
  std::string why_not;  // "line 12: __syncthreads"
  int operations = 0;   // of one element, where it is translated
};

OracleText MakeOracle(const CudaSource& source, const Draft& draft);

}  // namespace kgrpo::evaluator

#endif
