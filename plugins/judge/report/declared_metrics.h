// Labels of the evaluators' metrics: those of an evaluation, in the order in which they are listed, and those of a
// step. Declared by each evaluator's create; docs/metrics.md lists the names for users.
#pragma once

#include <kgrpo/sdk/host.h>  // MetricDeclaration

#include <span>

namespace kgrpo::evaluator {

std::span<const MetricDeclaration> DeclaredMetrics();

// The headings of remarks: what limits the occupancy, and what is said of source lines.
inline constexpr const char* kOccupancyTitle = "Occupancy";
inline constexpr const char* kLinesTitle = "By source line";

}  // namespace kgrpo::evaluator
