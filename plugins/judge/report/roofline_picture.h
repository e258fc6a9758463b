// Draws a roofline: log-log, as SVG for a web page or a file of its own. Used by kernel_report.cc.
#pragma once

#include <string>

#include "judge/report/roofline.h"

namespace kgrpo::evaluator {

std::string RooflineSvg(const Roofline& roofline);

}  // namespace kgrpo::evaluator
