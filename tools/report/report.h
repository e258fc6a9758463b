// One HTML file that shows runs: their results, their curves, and every sample. It needs no network and no
// other file. Used by `kgrpo-host report`.
#ifndef KGRPO_REPORT_REPORT_H
#define KGRPO_REPORT_REPORT_H

#include <string>
#include <vector>

#include "compare/run_measures.h"

namespace kgrpo {

// The page of the runs, which are grouped as compare.h groups them. Without `samples` the viewer of trajectories is
// left out. `left_out`: a sentence for each run that could not be read. Throws kgrpo::Error naming a
// database that cannot be read.
std::string MakeReport(std::vector<RunMeasures> runs, bool samples, const std::vector<std::string>& left_out);

}  // namespace kgrpo

#endif  // KGRPO_REPORT_REPORT_H
