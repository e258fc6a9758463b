// Messages between ranks arrive as they were sent: records with every member set, bytes that are no text, numbers that
// are no numbers.
#include "loop/wire.h"

#include "fakes.h"
#include "store/filled_round.h"
#include "test.h"

namespace kgrpo {
namespace {

TEST(Wire, TrajectoriesArriveAsTheyWere) {
  TrajectoryRecord trajectory = test::FilledTrajectory();
  RoundRecord& round = trajectory.rounds_done[0];
  round.messages[1].content = std::string("zero \0 and \xff\xfe", 13);
  round.logprobs = {-0.1F, std::nextafter(-1.0F, 0.0F)};
  round.speedup = std::numeric_limits<double>::infinity();
  const auto sent = TrajectoriesToJson({trajectory, TrajectoryRecord()});
  const auto arrived = TrajectoriesFromJson(FromBytes(ToBytes(sent)));
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_EQ(ToBytes(TrajectoriesToJson(arrived)), ToBytes(sent));
  EXPECT_EQ(arrived[0].rounds_done[0].messages[1].content, round.messages[1].content);
  EXPECT_EQ(arrived[0].rounds_done[0].logprobs, round.logprobs);
  EXPECT_EQ(arrived[0].rounds_done[0].speedup, std::numeric_limits<double>::infinity());
  round.messages[1].content = "text";  // the comparison shows no bytes that are not UTF-8, and no infinity
  round.speedup = 2;
  EXPECT_EQ(test::Shown(TrajectoriesFromJson(TrajectoriesToJson({trajectory}))[0]), test::Shown(trajectory));
}

TEST(Wire, RequestsAndSamplesArriveAsTheyWere) {
  RolloutRequest request;
  request.purpose = Purpose::kHeldout;
  request.step = 12;
  request.suggester = {Suggester::Kind::kFixed, {"a", "b"}};
  request.assignments = {{1, 0}, {2, 1}};
  request.encode = true;
  request.most_faults = 5;
  const auto sent = RequestToJson(request);
  EXPECT_EQ(ToBytes(RequestToJson(RequestFromJson(FromBytes(ToBytes(sent))))), ToBytes(sent));

  const std::vector<int32_t> prompt = {5, 6, 7}, completion = {8, 9};
  const std::vector<float> logprobs = {-0.5F, std::numeric_limits<float>::denorm_min()};
  kgrpo_sample sample{};
  sample.struct_size = sizeof(sample);
  sample.prompt_ids = prompt.data();
  sample.prompt_size = prompt.size();
  sample.completion_ids = completion.data();
  sample.completion_size = completion.size();
  sample.logprobs = logprobs.data();
  sample.reward = std::numeric_limits<double>::quiet_NaN();
  sample.idle_reward = 0.25;
  sample.trajectory = 1;
  sample.round = 2;
  sample.rounds = 3;
  sample.problem = 4;
  sample.truncated = 1;
  kgrpo_sample silent = sample;
  silent.logprobs = nullptr;
  const std::vector<kgrpo_sample> samples = {sample, silent};
  const OwnedSamples arrived = SamplesFromJson(FromBytes(ToBytes(SamplesToJson(samples))));
  ASSERT_EQ(arrived.samples.size(), 2U);
  const kgrpo_sample& first = arrived.samples[0];
  EXPECT_EQ(std::vector<int32_t>(first.prompt_ids, first.prompt_ids + first.prompt_size), prompt);
  EXPECT_EQ(std::vector<int32_t>(first.completion_ids, first.completion_ids + first.completion_size), completion);
  EXPECT_EQ(std::vector<float>(first.logprobs, first.logprobs + first.completion_size), logprobs);
  EXPECT_TRUE(std::isnan(first.reward));
  EXPECT_EQ(first.idle_reward, 0.25);
  EXPECT_EQ(first.trajectory, 1U);
  EXPECT_EQ(first.round, 2U);
  EXPECT_EQ(first.rounds, 3U);
  EXPECT_EQ(first.problem, 4U);
  EXPECT_EQ(first.truncated, 1);
  EXPECT_EQ(arrived.samples[1].logprobs, nullptr);
}

}  // namespace
}  // namespace kgrpo
