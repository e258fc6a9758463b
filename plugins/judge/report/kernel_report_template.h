// The mustache template of a kernel's report. Filled by kernel_report.cc.
#pragma once

namespace kgrpo::evaluator {

extern const char* const kKernelReportTemplate;

}  // namespace kgrpo::evaluator
