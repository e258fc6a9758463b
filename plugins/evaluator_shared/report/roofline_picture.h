// Draws a roofline: log-log, as SVG for a web page or a file of its own. Used by kernel_report.cc.
#ifndef KGRPO_EVALUATOR_SHARED_REPORT_ROOFLINE_PICTURE_H
#define KGRPO_EVALUATOR_SHARED_REPORT_ROOFLINE_PICTURE_H

#include <string>

#include "evaluator_shared/report/roofline.h"

namespace kgrpo::evaluator {

std::string RooflineSvg(const Roofline& roofline);

}  // namespace kgrpo::evaluator
#endif
