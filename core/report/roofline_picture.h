// Draws a roofline: log-log, as SVG for a web page or a file of its own. Used by kernel_report.cc.
#ifndef KGRPO_REPORT_ROOFLINE_PICTURE_H
#define KGRPO_REPORT_ROOFLINE_PICTURE_H

#include <string>

#include "report/roofline.h"

namespace kgrpo {

std::string RooflineSvg(const Roofline& roofline);

}  // namespace kgrpo
#endif
