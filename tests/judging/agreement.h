// The pairs of verdicts by which the two evaluators agree on a kernel, although they may differ. Shared by sim_test.cc,
// which checks the catalogue's first lines against them, and gpu_test.cc, which checks verdicts.
#ifndef KGRPO_TESTS_JUDGING_AGREEMENT_H
#define KGRPO_TESTS_JUDGING_AGREEMENT_H

#include <optional>
#include <string>
#include <vector>

namespace kgrpo::judging {

// A pair of verdicts on one kernel of which both may be right.
struct Equivalence {
  std::string sim, cuda;
  std::string why;
};

// All pairs of different verdicts.
const std::vector<Equivalence>& Equivalences();

// The reason why the evaluator without a GPU may say `sim` and the one with a GPU `cuda`; "the same" for equal
// verdicts; nullopt if they contradict each other.
std::optional<std::string> WhyTheyMaySay(const std::string& sim, const std::string& cuda);

}  // namespace kgrpo::judging

#endif
