// The report of one kernel, kgrpo_evaluator_tools.report: a web page that needs neither scripts nor anything else.
// Missing measurements are left out. Sources, compilers' output and metrics' names are data and never become markup.
#pragma once

#include <string>

#include <kgrpo/support/evaluation.h>

namespace kgrpo::evaluator {

struct KernelReport {
  std::string problem;
  std::string file;  // of the kernel, as it is called
  std::string source;
  Evaluation candidate, baseline;
  std::string evaluator;  // what it says of itself, a line each
};

std::string KernelReportHtml(const KernelReport& report);

}  // namespace kgrpo::evaluator
