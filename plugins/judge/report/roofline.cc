#include "judge/report/roofline.h"

#include <string>

#include <kgrpo/support/metrics.h>  // ValueOf

namespace kgrpo::evaluator {
namespace {

constexpr double kLeastIntensity = 0.01;  // operations a needed byte, below which instructions say more
constexpr double kLeastShare = 0.01;      // of the time, above which a pipe counts as used

// A metric's value; 0 where it was not measured.
double MetricOf(const Evaluation& evaluation, const std::string& name) {
  return ValueOf(evaluation.metrics, name).value_or(0);
}

// Bytes that a call moves between DRAM and L2, as counted, else as needed.
double DramBytes(const Evaluation& evaluation) {
  for (const char* counted : {"dram_bytes", "profile.dram_bytes"}) {
    if (const double bytes = MetricOf(evaluation, counted); bytes > 0) return bytes;
  }
  return MetricOf(evaluation, "bytes_per_second") * evaluation.seconds;
}

bool Uses(const Evaluation& evaluation, const char* pipe) {
  return evaluation.seconds > 0 &&
         MetricOf(evaluation, std::string("seconds/") + pipe) > kLeastShare * evaluation.seconds;
}

void AddSlopes(const Evaluation& device, Roofline* roofline) {
  const auto add = [roofline](const char* name, double rate, bool below, bool dashed) {
    if (rate > 0) roofline->slopes.push_back({name, rate, below, dashed});
  };
  add("L2", MetricOf(device, "l2_bandwidth_ceiling"), false, false);
  const double peak = MetricOf(device, "bandwidth_peak");
  add("DRAM, data sheet", peak, false, true);
  add("DRAM, reached", MetricOf(device, "bandwidth_ceiling"), peak > 0, false);
}

void AddPeaks(const Evaluation& candidate, const Evaluation& baseline, const Evaluation& device, Roofline* roofline) {
  const auto add = [roofline](const char* name, double rate, bool dashed) {
    if (rate > 0) roofline->peaks.push_back({name, rate, dashed});
  };
  if (const double measured = MetricOf(device, "arithmetic_ceiling"); measured > 0)
    return add("arithmetic, reached", measured, false);
  for (const char* pipe : {"tensor", "half", "fp32", "fp64"}) {
    // Peaks that neither kernel uses are drawn only as alternatives: fp32, and tensor cores above it.
    const bool used = Uses(candidate, pipe) || Uses(baseline, pipe);
    const std::string name(pipe);
    if (used || name == "fp32" || name == "tensor") add(pipe, MetricOf(device, "arithmetic_peak/" + name), !used);
  }
}

}  // namespace

std::optional<Roofline> RooflineOf(const Evaluation& candidate, const Evaluation& baseline) {
  // A kernel that is not correct has no time; the reference knows the device too.
  const Evaluation& device = candidate.correct ? candidate : baseline;
  const double needed_bytes = MetricOf(device, "bytes_per_second") * device.seconds;
  const double operations = MetricOf(device, "operations_per_second") * device.seconds;
  const bool of_operations = needed_bytes > 0 && operations / needed_bytes >= kLeastIntensity;
  Roofline roofline;
  AddSlopes(device, &roofline);
  if (of_operations) {
    roofline.work = "needed operations";
    roofline.rate_unit = "FLOP/s";
    roofline.intensity_unit = "FLOP/byte";
    roofline.needed_intensity = operations / needed_bytes;
    AddPeaks(candidate, baseline, device, &roofline);
  } else {
    roofline.work = "warp instructions";
    roofline.rate_unit = "instr/s";
    roofline.intensity_unit = "warp instructions/byte";
    if (const double peak = MetricOf(device, "issue_peak"); peak > 0) roofline.peaks.push_back({"issue", peak, false});
  }
  if (roofline.slopes.empty() || roofline.peaks.empty()) return std::nullopt;
  std::stable_sort(roofline.peaks.begin(), roofline.peaks.end(),
                   [](const Roofline::Peak& a, const Roofline::Peak& b) { return a.rate > b.rate; });
  const auto add = [&](const Evaluation& evaluation, const std::string& name, double bytes, Roofline::Mark mark) {
    if (!evaluation.correct || evaluation.seconds <= 0) return;
    const double work = of_operations ? operations : MetricOf(evaluation, "issued_instructions");
    if (work > 0 && bytes > 0) roofline.points.push_back({name, work / bytes, work / evaluation.seconds, mark});
  };
  const double l2_bytes = MetricOf(candidate, "l2_bytes");
  add(baseline, "reference", DramBytes(baseline), Roofline::Mark::kReference);
  add(candidate, "kernel, by L2 traffic", l2_bytes, Roofline::Mark::kKernelOtherLevel);
  add(candidate, l2_bytes > 0 ? "kernel, by DRAM traffic" : "kernel", DramBytes(candidate), Roofline::Mark::kKernel);
  if (roofline.points.empty()) return std::nullopt;
  return roofline;
}

}  // namespace kgrpo::evaluator
