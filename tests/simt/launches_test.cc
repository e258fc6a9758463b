// Races between a launch and the one that begins before it has ended (programmatic dependent launch).
#include "harness.h"
#include "simt/check/earlier_launches.h"

namespace kgrpo::simt {
namespace {

class Launches : public testing::Test {
 protected:
  // Runs `second` on what `first` gives, as if it might begin before that has ended.
  LaunchResult Pair(const std::string& first, const std::string& second, bool swapped = false) {
    const DeviceAddress x = bench_.Upload(NoiseVector(128), "x");
    const DeviceAddress y = bench_.Reserve<float>(128, "y"), z = bench_.Reserve<float>(128, "z");
    LaunchConfig config = Config({2}, {64});
    const LaunchResult earlier = bench_.Run(first, config, x, y);
    EXPECT_CLEAN(earlier);
    std::vector<std::shared_ptr<EarlierLaunch>> in_flight;
    if (earlier.accesses != nullptr) in_flight.push_back(earlier.accesses);
    if (!in_flight.empty()) config.in_flight = &in_flight;
    return bench_.Run(second, config, swapped ? z : y, swapped ? x : z);
  }
  void ExpectRace(const LaunchResult& result, int line, int other_line, const std::string& text) {
    ASSERT_EQ(result.findings.size(), 1u) << Messages(result);
    const Finding& race = result.findings[0];
    EXPECT_EQ(race.code, FindingCode::kRace);
    EXPECT_EQ(race.line, line) << race.message;
    EXPECT_EQ(race.other_line, other_line) << race.message;
    EXPECT_NE(race.message.find(text), std::string::npos) << race.message;
  }

  Bench bench_{"launches"};
};

TEST_F(Launches, ReadsBeforeTheWait) {
  for (const auto& [first, line] : {std::pair{"produce_and_trigger", 7}, std::pair{"trigger_and_produce", 13}}) {
    const LaunchResult result = Pair(first, "read_and_wait");
    ExpectRace(result, 25, line, "before it waits for kernel '" + std::string(first) + "', of which thread (0,0,0)");
    EXPECT_EQ(result.findings[0].other.block.x, 0u);
  }
  ExpectRace(Pair("produce_and_trigger", "wait_in_one_without_barrier"), 44, 7, "reads");
}

TEST_F(Launches, ReadsAfterTheWait) {
  for (const char* first : {"produce_and_trigger", "trigger_and_produce", "produce"}) {
    EXPECT_CLEAN(Pair(first, "wait_and_read"));
    EXPECT_CLEAN(Pair(first, "wait_in_one"));
  }
  EXPECT_CLEAN(Pair("produce", "read_and_wait"));  // it lets nothing begin early
}

TEST_F(Launches, WritesBeforeTheWait) {
  ExpectRace(Pair("trigger_and_produce", "write_and_wait", true), 48, 13, "reads it at line 13");
}

TEST_F(Launches, TellsIfEarlierOnesMayStillRun) {
  const auto early = [&](const char* kernel) {
    LaunchConfig config = Config({2}, {64});
    const DeviceAddress x = bench_.Upload(NoiseVector(128), "x"), y = bench_.Reserve<float>(128, "y");
    return bench_.Run(kernel, config, x, y).let_next_begin_early;
  };
  EXPECT_TRUE(early("trigger_wait_produce"));
  EXPECT_FALSE(early("wait_trigger_produce"));
  EXPECT_FALSE(early("produce"));
}

}  // namespace
}  // namespace kgrpo::simt
