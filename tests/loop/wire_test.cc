// Messages between ranks arrive as they were sent: records with every member set, bytes that are no text, numbers that
// are no numbers.
#include "loop/wire.h"

#include "fakes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kgrpo {
namespace {

RoundRecord Round(uint32_t number) {
  RoundRecord round;
  round.round = number;
  round.messages = {{"system", "a"}, {"user", std::string("zero \0 and \xff\xfe", 13)}};
  round.prompt_ids = {1, -2, 2147483647};
  round.completion_ids = {7, 8};
  round.logprobs = {-0.1F, std::nextafter(-1.0F, 0.0F)};
  round.truncated = true;
  round.suggestion = "tile";
  round.code_a = "A";
  round.code_b = "B";
  round.answer.outcome = KGRPO_CODER_OK;
  round.answer.source = "C";
  round.answer.summary = "s";
  round.answer.message = "m";
  round.answer.prompt_tokens = 1ULL << 60;
  round.answer.cost = 0.1;
  round.answer.lost_cost = 0.3;
  round.answer.seconds = 1e-9;
  round.answer.attempts = 3;
  round.answer.text = "t";
  round.answer.reused = true;
  round.evaluation.emplace();
  round.evaluation->correct = true;
  round.evaluation->verdict = "correct";
  round.evaluation->seconds = 1.0 / 3;
  round.evaluation->metrics = {{"x", 2.5}};
  round.evaluation->remarks = {{"g", "l", "t", 4, 0.5}};
  round.evaluation_seed = UINT64_MAX;
  round.evaluate_seconds = 0.25;
  round.unchanged = round.applied = true;
  round.speedup = std::numeric_limits<double>::infinity();
  round.reward = -1.5;
  round.idle_reward = 0.5;
  round.reward_parts = {{"p", 1e300}};
  return round;
}

TEST(Wire, TrajectoriesArriveAsTheyWere) {
  TrajectoryRecord trajectory;
  trajectory.trajectory = 1ULL << 40;
  trajectory.problem = 3;
  trajectory.problem_name = "n";
  trajectory.family = "f";
  trajectory.prompted_as = "o";
  trajectory.baseline_seconds = 0.1;
  trajectory.rounds = 2;
  trajectory.rounds_done = {Round(0), Round(1)};
  trajectory.rounds_done[1].evaluation.reset();
  trajectory.dropped = "why";
  trajectory.failed_round = Round(2);
  trajectory.failed_round->failure = {RoundPart::kReward, "NaN"};
  const auto sent = TrajectoriesToJson({trajectory, TrajectoryRecord()});
  const auto arrived = TrajectoriesFromJson(FromBytes(ToBytes(sent)));
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_EQ(ToBytes(TrajectoriesToJson(arrived)), ToBytes(sent));
  EXPECT_EQ(arrived[0].rounds_done[0].messages[1].content, trajectory.rounds_done[0].messages[1].content);
  EXPECT_EQ(arrived[0].rounds_done[0].logprobs, trajectory.rounds_done[0].logprobs);
  EXPECT_EQ(arrived[0].rounds_done[0].evaluation_seed, UINT64_MAX);
  EXPECT_EQ(arrived[0].rounds_done[0].speedup, std::numeric_limits<double>::infinity());
  EXPECT_EQ(arrived[0].rounds_done[0].evaluation->seconds, 1.0 / 3);
  EXPECT_FALSE(arrived[0].rounds_done[1].evaluation);
  EXPECT_EQ(arrived[0].failed_round->round, 2U);
  ASSERT_TRUE(arrived[0].failed_round->failure);
  EXPECT_EQ(arrived[0].failed_round->failure->part, RoundPart::kReward);
  EXPECT_EQ(arrived[0].failed_round->failure->message, "NaN");
  EXPECT_FALSE(arrived[0].rounds_done[0].failure);
  EXPECT_FALSE(arrived[1].failed_round);
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
