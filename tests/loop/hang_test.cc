// Finding the rank that hangs from the states that the ranks report, and their times. tests/cli/ranks_test.cc has real
// processes.
#include "loop/hang.h"

#include "test.h"

namespace kgrpo {
namespace {

using std::chrono::seconds;
using ::testing::Optional;

constexpr seconds kLimit{600};
const RankState kWorks = {7, true, false, "trainer_grpo's update", 40};
const RankState kWaits = {7, true, true, "transport_torch's collective", 52};
const RankState kOwnWork = {7, true, false, "", 40};           // such as awaiting a coder
const RankState kBetween = {7, false, false, "x's save", 40};  // the leader's, between two orders

class HangTest : public ::testing::Test {
 protected:
  // The watch's finding at `at`, if the ranks reported these states at second 0 and again at 599.
  std::optional<std::string> Found(const std::vector<RankState>& states, seconds at) {
    HangWatch watch(static_cast<uint32_t>(states.size()));
    for (uint32_t rank = 0; rank < states.size(); ++rank) watch.Saw(rank, states[rank], begin_);
    for (uint32_t rank = 0; rank < states.size(); ++rank) watch.Saw(rank, states[rank], begin_ + seconds(599));
    return watch.Stuck(kLimit, begin_ + at);
  }
  const HangWatch::Clock::time_point begin_ = HangWatch::Clock::now();
};

TEST_F(HangTest, NamesTheRankThatOthersWaitFor) {
  EXPECT_EQ(Found({kWaits, kWorks, kWaits}, seconds(599)), std::nullopt);
  EXPECT_THAT(Found({kWaits, kWorks, kWaits}, kLimit),
              Optional(std::string("rank 1 has been in trainer_grpo's update for 600 s while others wait for it")));
  EXPECT_THAT(Found({kWorks, kWaits}, kLimit),
              Optional(std::string("rank 0 has been in trainer_grpo's update for 600 s while others wait for it")));
  EXPECT_THAT(Found({kWaits, kWaits}, kLimit), Optional(std::string("all ranks have waited for each other for 600 s, "
                                                                    "rank 0 in transport_torch's collective")));
}

TEST_F(HangTest, LeavesAloneWhatTakesLong) {
  EXPECT_EQ(Found({kWaits, kOwnWork, kWaits}, 10 * kLimit), std::nullopt) << "a coder";
  EXPECT_EQ(Found({kBetween, kWaits, kWaits}, 10 * kLimit), std::nullopt) << "the leader's own work";
  EXPECT_EQ(Found({kWorks, kWorks}, 10 * kLimit), std::nullopt) << "nobody waits";
}

// Another call of the same function, or any progress elsewhere, begins the time anew.
TEST_F(HangTest, ProgressIsNoHang) {
  HangWatch watch(2);
  RankState works = kWorks;
  watch.Saw(0, kWaits, begin_);
  for (int second = 0; second < 5000; second += 500) {
    ++works.calls;
    watch.Saw(1, works, begin_ + seconds(second));
    EXPECT_EQ(watch.Stuck(kLimit, begin_ + seconds(second + 499)), std::nullopt);
  }
  EXPECT_NE(watch.Stuck(kLimit, begin_ + seconds(4500) + kLimit), std::nullopt);
  RankState waits = kWaits;
  ++waits.calls;
  watch.Saw(0, waits, begin_ + seconds(5000));
  EXPECT_EQ(watch.Stuck(kLimit, begin_ + seconds(5000)), std::nullopt);
}

TEST_F(HangTest, ARankThatHasNotSpokenIsNotJudged) {
  HangWatch watch(2);
  watch.Saw(0, kWaits, begin_);
  EXPECT_EQ(watch.Stuck(kLimit, begin_ + 2 * kLimit), std::nullopt);
}

TEST_F(HangTest, AStateIsReadAsItWasWritten) {
  for (const RankState& state : {kWorks, kWaits, kOwnWork, kBetween}) EXPECT_EQ(RankStateOf(ToText(state)), state);
  for (const char* text : {"", "[]", "{}", "[1, false, \"x\"]"}) EXPECT_FALSE(RankStateOf(text)) << text;
}

}  // namespace
}  // namespace kgrpo
