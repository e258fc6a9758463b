// judge/report/declared_metrics.h and remarks.h: the names of the evaluators' metrics, and the remarks on
// them.
#include "judge/report/remarks.h"

#include <kgrpo/support/metrics.h>
#include "judge/report/declared_metrics.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

const MetricRegistry& Names() {
  static MetricRegistry names;
  for (const MetricDeclaration& metric : DeclaredMetrics()) names.Declare(metric.ToC());
  return names;
}

// The text that prompts show for a kernel with these metrics.
std::string Evidence(const std::vector<Metric>& metrics, double seconds = 0) {
  Evaluation evaluation;
  evaluation.seconds = seconds;
  evaluation.metrics = metrics;
  evaluation.remarks = RemarksOf(metrics);
  return EvidenceText(evaluation, &Names());
}

TEST(DeclaredMetricsTest, NoNameIsDeclaredTwice) {
  std::set<std::string_view> names;
  for (const MetricDeclaration& metric : DeclaredMetrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
  }
}

TEST(DeclaredMetricsTest, AreShownInGroupsWithUnits) {
  EXPECT_EQ(Evidence({{"strange", 1},
                      {"clock_mhz", 1980},
                      {"seconds/dram", 5e-5},
                      {"bytes_per_second", 3.02e12},
                      {"measured_seconds", 1e-4},
                      {"same_bits_twice", 1},
                      {"registers of k<int>", 30},
                      {"worst_error/out", 0.5},
                      {"judge_time_seconds", 2},
                      {"line_sectors/12", 16},
                      {"spill_bytes", 0},
                      {"first_call_seconds", -2e-6}},
                     1e-4),
            "Time: a call, in turns with the reference 100 us; clock 1980 MHz\n"
            "Time by memory level, each alone: dram (device memory) 50 us (50%)\n"
            "Machine code: registers a thread, k<int> 30; registers spilled 0 B\n"
            "Roofline: needed traffic 3.02 TB/s\n"
            "Cross-checks: extra time of a batch's first call -2 us; same bits when called twice yes\n"
            "The evaluation itself: timing 2 s\n"
            "By source line: line 12 16 sectors a request\n"
            "Other: strange 1");
  EXPECT_EQ(FormatMetric("l2_bytes", 65606997.3, &Names()), "65.6 MB");
  EXPECT_EQ(FormatMetric("issued_instructions", 2.5e6, &Names()), "2.5 M");
  EXPECT_EQ(FormatMetric("checked_warp_instructions", 79651, &Names()), "79651");
}

TEST(RemarksTest, NameWhatLimitsOccupancy) {
  const auto limit = [](double occupancy, double registers, double shared, double threads, double waves) {
    return OccupancyLimit({{"occupancy", occupancy},
                           {"resident_blocks_by/registers", registers},
                           {"resident_blocks_by/shared_memory", shared},
                           {"resident_blocks_by/threads", threads},
                           {"resident_blocks_by/blocks", 32},
                           {"waves", waves}});
  };
  EXPECT_EQ(limit(0.625, 5, 9, 8, 4), "registers (room for 5 blocks; block size for 8)");
  EXPECT_EQ(limit(0.125, 5, 1, 8, 4), "shared memory (room for 1 block; registers for 5)");
  EXPECT_EQ(limit(0.75, 2, 9, 2, 4), "registers and block size (room for 2 blocks; shared memory for 9)");
  EXPECT_EQ(limit(0.5, 64, 64, 64, 4), "number of blocks (room for 32 blocks; registers for 64)");
  EXPECT_EQ(limit(1, 8, 9, 8, 4), "nothing");
  EXPECT_EQ(limit(1, 8, 9, 8, 0.25), "nothing but the grid: its blocks fill 25% of the places");
  EXPECT_EQ(limit(0.625, 5, 9, 8, 0.5),
            "registers (room for 5 blocks; block size for 8); and by the grid: its blocks fill 50% of the places");
  EXPECT_EQ(OccupancyLimit({{"occupancy", 0.5}}), "") << "nobody says";
  EXPECT_EQ(Evidence({{"occupancy", 0.625}, {"resident_blocks_by/registers", 5}}),
            "Occupancy: occupancy 62.5%; blocks at once, limit by registers 5; limited by registers (room for "
            "5 blocks)");
}

TEST(RemarksTest, PutTogetherWhatIsSaidOfALine) {
  const std::vector<Metric> metrics = {{"line/7 issue", 0.05},
                                       {"line/12 dram", 0.5},
                                       {"line/12 latency", 0.25},
                                       {"line_sectors/12", 16},
                                       {"line_sectors_used/12", 0.25},
                                       {"line_shared_cycles/7", 2},
                                       {"line_shared_conflicts/7", 0.5},
                                       {"line/x", 1},
                                       {"lines/3", 1}};
  const std::vector<LineFacts> lines = LinesOf(metrics);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].line, 12u);
  EXPECT_EQ(lines[0].share, 0.75);
  EXPECT_EQ(lines[0].Text(), "mostly dram; 16 sectors a request, 25% of their bytes used");
  EXPECT_FALSE(lines[0].shared_cycles);
  const std::vector<LineFacts> one = LinesOf({{"line/3 l1", 1}, {"line_shared_cycles/3", 1}, {"line_sectors/3", 1}});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].Text(), "mostly l1; 1 sector a request; 1 cycle a shared memory access");
  EXPECT_EQ(
      Evidence(metrics),
      "By source line: line 12 75% of the time, mostly dram; 16 sectors a request, 25% of their bytes used; line 7 "
      "5% of the time, mostly issue; 2 cycles a shared memory access, 50% by bank conflicts\n"
      "Other: lines/3 1");
}

}  // namespace
}  // namespace kgrpo::evaluator
