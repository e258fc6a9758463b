// Guesses how the kernel of a draft sums: the number of terms of a result, and the precision. Used by problem_text.cc.
#ifndef KGRPO_TOOLS_DRAFT_SUMS_H
#define KGRPO_TOOLS_DRAFT_SUMS_H

#include <optional>
#include <string>

#include "draft/draft.h"

namespace kgrpo::evaluator {

// The terms that one result sums, as an expression of sizes. The dimensions of an input that are reduced away: "k" of
// a[m, k] and b[k, n] for c[m, n], "ceil_div(n, blocks)" of x[n] for sums[blocks]. The last dimension of an output if
// no dimension is reduced, but `code` accumulates or exchanges values between lanes (softmax, scans); else "1".
std::string TermsOf(const Draft& draft, const std::string& code);

// The 16-bit dtype of the draft's tensors that `code` computes in, as __hfma2, a tensor-core instruction with 16-bit
// accumulators, or `half sum` do; nothing if it computes in float.
std::optional<DType> LowPrecisionOf(const Draft& draft, const std::string& code);

}  // namespace kgrpo::evaluator

#endif
