// The output of `kgrpo-host eval kernel`: on a terminal, and as systems of continuous integration read it (JUnit's XML
// and SARIF). Used by kernel_eval.cc.
#ifndef KGRPO_EVAL_KERNEL_TEXT_H
#define KGRPO_EVAL_KERNEL_TEXT_H

#include <kgrpo/support/metric_registry.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "plugin/records.h"  // Evaluation

namespace kgrpo::cli {

// Prints verdict, times and the source lines that take most of the time, in at most 25 lines for a diagnosis of a few
// lines; with `verbose` every metric in groups, all such lines, and the conditions of the measurement, too.
// `evaluator`: its description.
void PrintKernelText(const Evaluation& candidate, const Evaluation& baseline, const std::string& problem,
                     const std::string& source, const std::string& evaluator, bool thorough, bool verbose,
                     const MetricRegistry& registry);

struct ReportedKernel {
  std::string file;
  const Evaluation* evaluation = nullptr;
  std::string unmet;  // why it fails; "" if it does not
};

// A test suite with a test case for each kernel, in the dialect that Jenkins and GitLab read. Characters that XML
// cannot hold become '?'.
std::string JunitReport(const std::string& problem, const std::vector<ReportedKernel>& kernels);

// SARIF 2.1.0 with a result for each failed kernel. The rule is the verdict, or "slow" for a correct kernel; the place
// is the first line that the diagnosis names.
nlohmann::ordered_json SarifReport(const std::string& problem, const std::vector<ReportedKernel>& kernels);

}  // namespace kgrpo::cli
#endif
