// The mustache template of a kernel's report. Filled by kernel_report.cc.
#ifndef KGRPO_EVALUATOR_SHARED_REPORT_KERNEL_REPORT_TEMPLATE_H
#define KGRPO_EVALUATOR_SHARED_REPORT_KERNEL_REPORT_TEMPLATE_H

namespace kgrpo::evaluator {

extern const char* const kKernelReportTemplate;

}  // namespace kgrpo::evaluator
#endif
