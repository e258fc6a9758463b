// The mustache template of a kernel's report. Filled by kernel_report.cc.
#ifndef KGRPO_JUDGE_REPORT_KERNEL_REPORT_TEMPLATE_H
#define KGRPO_JUDGE_REPORT_KERNEL_REPORT_TEMPLATE_H

namespace kgrpo::evaluator {

extern const char* const kKernelReportTemplate;

}  // namespace kgrpo::evaluator
#endif
