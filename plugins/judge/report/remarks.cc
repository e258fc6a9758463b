#include "judge/report/remarks.h"

#include "judge/report/declared_metrics.h"
#include "judge/report/line_facts.h"
#include "judge/report/occupancy_limit.h"

#include <string>

namespace kgrpo::evaluator {

std::vector<Remark> RemarksOf(const std::vector<Metric>& metrics) {
  std::vector<Remark> remarks;
  if (const std::string limit = OccupancyLimit(metrics); !limit.empty())
    remarks.push_back({kOccupancyTitle, "limited by", limit});
  for (const LineFacts& line : LinesOf(metrics)) {
    remarks.push_back({kLinesTitle, "", line.Text(), line.line, line.share});
  }
  return remarks;
}

}  // namespace kgrpo::evaluator
