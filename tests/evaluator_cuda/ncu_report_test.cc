// evaluator_cuda/ncu_report.h and profile_facts.h: Nsight Compute's tables and error messages, in the forms of its
// manual and its output.
#include "evaluator_cuda/ncu_report.h"

#include "evaluator_cuda/profile_facts.h"
#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

// A line for each metric; messages before, between and after.
constexpr char kLong[] =
    R"csv(==PROF== Connected to process 41 (/build/kgrpo_cuda_profile)
==PROF== Profiling "rows" - 0: 0%....50%....100% - 9 passes
==PROF== Disconnected from process 41
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","41","kgrpo_cuda_profile","127.0.0.1","rows","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","ns","11,968.00"
"0","41","kgrpo_cuda_profile","127.0.0.1","rows","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_read.sum","byte","16,777,216"
"0","41","kgrpo_cuda_profile","127.0.0.1","rows","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0","Command line profiler metrics","lts__t_sector_hit_rate.pct","","n/a"
"1","41","kgrpo_cuda_profile","127.0.0.1","sum<float, 4>(""x"")","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","ns","2,048"
)csv";

// A column for each metric, units in the second line.
constexpr char kWide[] =
    "==PROF== Connected to process 41 (/build/kgrpo_cuda_profile)\r\n"
    R"csv("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum","l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","lts__t_sector_hit_rate.pct","sm__warps_active.avg.pct_of_peak_sustained_active","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_selected_per_issue_active.ratio","smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"
"","","","","","","","","","","","byte","byte","%","ns","sector/request","","%","%","inst","inst","inst","inst"
"0","41","kgrpo_cuda_profile","127.0.0.1","rows","1","7","(256, 1, 1)","(1024, 1, 1)","0","9.0","16,777,216","1,048,576","47.25","11,968","31.875","4,096","12.5","71.5","2","6","1","1"
"1","41","kgrpo_cuda_profile","127.0.0.1","fold","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","4096","128","0.5","2,032","4","0","80","1.5","0","n/a","1","3"
)csv";

TEST(NcuReportTest, ReadsALineForEachMetric) {
  const NcuReport report = ParseNcuOutput(kLong);
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.kernels[0].name, "rows");
  EXPECT_EQ(report.kernels[0].counts,
            (std::map<std::string, double>{{"gpu__time_duration.sum", 11968}, {"dram__bytes_read.sum", 16777216}}))
      << "what is n/a is left out";
  EXPECT_EQ(report.kernels[1].name, "sum<float, 4>(\"x\")");
  EXPECT_EQ(report.kernels[1].counts.at("gpu__time_duration.sum"), 2048);
  EXPECT_FALSE(report.not_permitted);
  EXPECT_EQ(report.complaint, "");
}

TEST(NcuReportTest, ReadsAColumnForEachMetric) {
  const NcuReport report = ParseNcuOutput(kWide);
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.kernels[0].counts.size(), 12u);
  EXPECT_EQ(report.kernels[0].counts.at("gpu__time_duration.sum"), 11968);
  EXPECT_EQ(report.kernels[0].counts.at("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"),
            31.875);
  EXPECT_EQ(report.kernels[1].name, "fold");
  EXPECT_EQ(report.kernels[1].counts.count("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"),
            0u);
}

TEST(NcuReportTest, SurvivesWhatIsNoTable) {
  for (const char* text : {"", "\n\n", "\"", "\"ID\",\"Kernel Name", "\"0\",\"41\"\n", "a,b\n\"ID\"\n\"\"\n"})
    EXPECT_TRUE(ParseNcuOutput(text).kernels.empty()) << text;
  // Cut off at every length: never more than is there.
  const std::string whole = kWide;
  for (size_t length = 0; length <= whole.size(); length += 7)
    EXPECT_LE(ParseNcuOutput(whole.substr(0, length)).kernels.size(), 2u);
  const NcuReport short_row = ParseNcuOutput("\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Value\"\n\"0\",\"k\"\n");
  ASSERT_EQ(short_row.kernels.size(), 1u);
  EXPECT_TRUE(short_row.kernels[0].counts.empty());
}

TEST(NcuReportTest, UnderstandsComplaints) {
  const NcuReport denied = ParseNcuOutput(
      "==PROF== Connected to process 7 (/x)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access "
      "NVIDIA GPU Performance Counters on the target device 0. For instructions on enabling permissions and to get "
      "more "
      "information see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n==WARNING== No kernels were profiled.\n");
  EXPECT_TRUE(denied.not_permitted);
  const NcuReport unknown = ParseNcuOutput(
      "==PROF== Connected to process 20101 (/x)\n"
      "==ERROR== Failed to find metric regex:^dram__bytes_red\\.(sum|min|max|avg|pct|ratio|max_rate)$\n");
  EXPECT_THAT(unknown.unknown_metrics, ElementsAre(HasSubstr("dram__bytes_red")));
  EXPECT_EQ(unknown.complaint, "");
  EXPECT_EQ(ParseNcuOutput("==ERROR== Profiling failed because a driver resource was unavailable.\r\n"
                           "==WARNING== No kernels were profiled.\n")
                .complaint,
            "Profiling failed because a driver resource was unavailable.");
  EXPECT_EQ(
      ParseNcuOutput("==WARNING== Note: Running with unmodified GPU clocks.\n==WARNING== No kernels were profiled.\n")
          .complaint,
      "No kernels were profiled.");
  EXPECT_EQ(ParseNcuOutput(std::string("==WARNING== Clocks may vary.\n") + kLong).complaint, "");
}

TEST(ProfileFactsTest, SaysWhatTheLongestKernelDoes) {
  const ProfileFacts facts = FactsOf(ParseNcuOutput(kWide).kernels);
  const std::map<std::string, double> metrics(facts.metrics.begin(), facts.metrics.end());
  EXPECT_EQ(metrics.at("profile.kernels"), 2);
  EXPECT_NEAR(metrics.at("profile.seconds"), 14e-6, 1e-12);
  EXPECT_NEAR(metrics.at("profile.longest_seconds"), 11.968e-6, 1e-12);
  EXPECT_NEAR(metrics.at("profile.dram_fraction"), 0.4725, 1e-9);
  EXPECT_NEAR(metrics.at("profile.occupancy"), 0.715, 1e-9);
  EXPECT_EQ(metrics.at("profile.dram_bytes"), 16777216 + 1048576);
  EXPECT_EQ(metrics.at("profile.bank_conflicts"), 4096);
  EXPECT_NEAR(metrics.at("profile.stalls.long_scoreboard"), 0.6, 1e-9);
  EXPECT_NEAR(metrics.at("profile.stalls.barrier"), 0.2, 1e-9);
  EXPECT_EQ(metrics.count("profile.tensor_fraction"), 0u) << "was not counted";
  EXPECT_EQ(
      facts.text,
      "Profiled by Nsight Compute, with cold caches: 2 kernels take 14 us: rows 12 us, fold 2.03 us. The longest: "
      "DRAM at 47% of its peak, L2 hits 12%, achieved occupancy 72%. Its warps spend 60% of their time waiting for "
      "data from global or local memory, 20% for other warps at a barrier and 10% for instructions of fixed "
      "latency. A warp's global load touches 31.9 sectors. Shared memory: 4096 bank conflicts.");
}

TEST(ProfileFactsTest, MakesDoWithWhatWasCounted) {
  const ProfileFacts facts = FactsOf({{"k", {}}});
  EXPECT_EQ(facts.text, "Profiled by Nsight Compute, with cold caches: k takes 0 us.");
  EXPECT_EQ(facts.metrics.size(), 3u);
}

TEST(ProfileFactsTest, AsksForWhatTheDeviceHas) {
  const std::string wgmma = "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio";
  EXPECT_THAT(NcuMetrics(90), testing::Contains(wgmma));
  EXPECT_THAT(NcuMetrics(86), Not(testing::Contains(wgmma)));
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
