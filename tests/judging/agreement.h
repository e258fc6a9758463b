// Which verdicts of the two evaluators say the same of a kernel, and where they may differ by nature. Shared by
// sim_test.cc, which holds the catalogue's first lines against it, and gpu_test.cc, which holds verdicts against it.
#ifndef KGRPO_TESTS_JUDGING_AGREEMENT_H
#define KGRPO_TESTS_JUDGING_AGREEMENT_H

#include <optional>
#include <string>
#include <vector>

namespace kgrpo::judging {

// A pair of verdicts on one kernel that both evaluators may be right to give.
struct Equivalence {
  std::string sim, cuda;
  std::string why;
};

// All pairs but those of a verdict with itself.
const std::vector<Equivalence>& Equivalences();

// Why the evaluator without a GPU may say `sim` where the one with a GPU says `cuda`; "the same" for the same verdict;
// nothing where they contradict each other.
std::optional<std::string> WhyTheyMaySay(const std::string& sim, const std::string& cuda);

}  // namespace kgrpo::judging

#endif
