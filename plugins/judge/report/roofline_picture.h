// Draws a roofline: log-log, as SVG for a web page or a file of its own. Used by kernel_report.cc.
#ifndef KGRPO_JUDGE_REPORT_ROOFLINE_PICTURE_H
#define KGRPO_JUDGE_REPORT_ROOFLINE_PICTURE_H

#include <string>

#include "judge/report/roofline.h"

namespace kgrpo::evaluator {

std::string RooflineSvg(const Roofline& roofline);

}  // namespace kgrpo::evaluator
#endif
