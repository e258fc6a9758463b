// An update by several ranks equals that by one: the same parameters except for the order of additions, the same bits
// on every rank, and states that can be loaded with another number of ranks.
#include "grpo_bench.h"
#include "test.h"
#include "thread_ranks.h"
#include "trainer_shared/ranks.h"

namespace kgrpo::grpo {
namespace {

using testing::ThreadRanks;

// A trainer a rank.
struct RankedBench {
  // `blocking`: a transport that only blocks. `api`: the policies'.
  RankedBench(uint32_t size, const nlohmann::json& options, bool bfloat16 = false, bool blocking = false,
              const kgrpo_policy_interface& api = testing::BigramPolicy::Api())
      : ranks(size) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      hosts.push_back(std::make_unique<testing::FakeHost>());
      ranks.Join(*hosts[rank], rank, blocking);
      policies.push_back(std::make_unique<testing::BigramPolicy>(kVocabulary, bfloat16));
      policies[rank]->FillRandomly(1);
      policies[rank]->FreezeReference();
      policies[rank]->log = &ranks.logs[rank];
      trainers.push_back(std::make_unique<GrpoTrainer>(
          hosts[rank]->get(), ReadGrpoOptions(testing::OptionsJson(GrpoOptionsSchema(), options)), nullptr));
      sinks.push_back(std::make_unique<testing::RecordedSink>());
    }
    ranks.Run([&](uint32_t rank) {
      trainers[rank]->Begin(&api, policies[rank]->get(), {sizeof(kgrpo_trainer_plan), 10, 1.0, 6, 0, 0, 0, 0, 0, 0});
    });
  }
  void Update(const Batch& batch) {
    ranks.Run([&](uint32_t rank) {
      trainers[rank]->Update(testing::PointersTo(batch.samples).data(), batch.samples.size(), sinks[rank]->get());
    });
  }
  std::string State() {
    std::vector<testing::MemoryStream> states(trainers.size());
    ranks.Run([&](uint32_t rank) { trainers[rank]->SaveState(states[rank].writer()); });
    for (const auto& state : states) EXPECT_EQ(state.bytes, states[0].bytes);
    return states[0].bytes;
  }
  void Load(const std::string& state) {
    ranks.Run([&](uint32_t rank) {
      testing::MemoryStream own;
      own.bytes = state;
      trainers[rank]->LoadState(own.reader());
    });
  }
  std::vector<double> Values(uint32_t rank = 0) const {
    std::vector<double> all = policies[rank]->Values(0);
    for (double value : policies[rank]->Values(1)) all.push_back(value);
    return all;
  }

  ThreadRanks ranks;
  std::vector<std::unique_ptr<testing::FakeHost>> hosts;
  std::vector<std::unique_ptr<testing::BigramPolicy>> policies;
  std::vector<std::unique_ptr<GrpoTrainer>> trainers;
  std::vector<std::unique_ptr<testing::RecordedSink>> sinks;
};

const nlohmann::json kOptions = {
    {"learning_rate", 0.01},      {"beta", 0.1},         {"ppo_epochs", 2},
    {"mini_batch_size", 3},       {"weight_decay", 0.1}, {"gradient_accumulation_steps", 2},
    {"max_tokens_per_forward", 9}};

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

TEST(TrainerRanks, AnUpdateIsThatOfOneRank) {
  for (const char* old : {"behaviour", "recomputed"}) {
    nlohmann::json options = kOptions;
    options["old_logprobs"] = old;
    RankedBench alone(1, options);
    const Batch batch(*alone.policies[0], 7, 6);
    alone.Update(batch);
    for (uint32_t size : {2U, 3U, 7U}) {
      SCOPED_TRACE(std::string(old) + ", " + std::to_string(size) + " ranks");
      RankedBench several(size, options);
      several.Update(batch);
      // float32 parameters and gradients: 24 bits, of values below 4, over a dozen steps.
      ExpectNear(several.Values(), alone.Values(), 1e-5);
      for (uint32_t rank = 1; rank < size; ++rank) EXPECT_EQ(several.Values(rank), several.Values(0));
      ASSERT_EQ(several.sinks[0]->step.size(), alone.sinks[0]->step.size());
      for (const auto& [name, value] : alone.sinks[0]->step)
        EXPECT_NEAR(several.sinks[size - 1]->step.at(name), value, 1e-5 * std::max(1.0, std::abs(value))) << name;
    }
  }
}

TEST(TrainerRanks, Bfloat16ParametersHaveSlicedMasters) {
  RankedBench alone(1, kOptions, true), several(3, kOptions, true);
  const Batch batch(*alone.policies[0], 3, 4);
  for (int i = 0; i < 3; ++i) {
    alone.Update(batch);
    several.Update(batch);
  }
  for (uint32_t rank = 1; rank < 3; ++rank) EXPECT_EQ(several.Values(rank), several.Values(0));
  ExpectNear(several.Values(), alone.Values(), 0.02);  // a step of bfloat16 near 2
}

// More ranks than sequences in a window: some have nothing to do.
TEST(TrainerRanks, RanksWithoutASequenceTakePart) {
  nlohmann::json options = kOptions;
  options["mini_batch_size"] = 1;
  options["gradient_accumulation_steps"] = 1;
  RankedBench alone(1, options), several(4, options);
  const Batch batch(*alone.policies[0], 5, 1);
  alone.Update(batch);
  several.Update(batch);
  ExpectNear(several.Values(), alone.Values(), 1e-5);
}

// The reduction begins before the last backward of a step has ended, and in no other one.
TEST(TrainerRanks, GradientsAreReducedDuringTheLastBackward) {
  RankedBench several(2, kOptions);
  several.Update(Batch(*several.policies[0], 5, 3));
  for (const std::vector<std::string>& log : several.ranks.logs) {
    // Two epochs of two windows, each with one backward that tells. The table's bucket goes first.
    std::vector<std::string> step = {"piece"};  // the bias
    for (size_t row = 0; row < kVocabulary; ++row) step.emplace_back("piece");
    step.insert(step.end(), {"begin 0 to 121 of 121", "begin 0 to 11 of 11", "finish", "backward ends"});
    std::vector<std::string> expected;
    for (int i = 0; i < 4; ++i) expected.insert(expected.end(), step.begin(), step.end());
    EXPECT_EQ(log, expected);
  }
}

// With a transport, or a policy, that knows nothing of it, an update has the same bits: the order of the sums is the
// same.
TEST(TrainerRanks, OldTransportsAndPoliciesReduceAfterTheBackward) {
  kgrpo_policy_interface old = testing::BigramPolicy::Api();
  old.backward_in_pieces = nullptr;
  RankedBench expected(3, kOptions), transport(3, kOptions, false, /*blocking=*/true),
      policy(3, kOptions, false, false, old);
  const Batch batch(*expected.policies[0], 7, 6);
  for (RankedBench* bench : {&expected, &transport, &policy}) bench->Update(batch);
  EXPECT_EQ(transport.Values(), expected.Values());
  EXPECT_EQ(policy.Values(), expected.Values());
  EXPECT_EQ(transport.ranks.logs[1], std::vector<std::string>());
  EXPECT_EQ(policy.ranks.logs[1][0], "begin 0 to 121 of 121");
  EXPECT_EQ(std::ranges::count(policy.ranks.logs[1], "piece"), 0);
}

// All ranks end the reductions that some have begun: where every rank fails, each tells its own error and none is left
// in a call.
TEST(TrainerRanks, APolicyThatFailsInTheBackwardLeavesNoReductionUnderWay) {
  nlohmann::json options = kOptions;
  options["beta"] = 0;  // no forward pass but those with a backward
  RankedBench several(3, options);
  const Batch batch(*several.policies[0], 7, 6);
  several.policies[0]->fail_between_pieces = true;
  several.policies[1]->fail_forward = 0;
  several.policies[2]->fail_between_pieces = true;
  several.ranks.Run([&](uint32_t rank) {
    EXPECT_EQ(ErrorOf(
                  [&] {
                    several.trainers[rank]->Update(testing::PointersTo(batch.samples).data(), batch.samples.size(),
                                                   several.sinks[rank]->get());
                  },
                  KGRPO_ERROR_UNAVAILABLE),
              "the device fell off the bus");
    EXPECT_EQ(several.ranks.logs[rank].back(), "finish");
  });
}

TEST(TrainerRanks, AStateGoesOnAtAnotherNumberOfRanks) {
  RankedBench three(3, kOptions);
  const Batch first(*three.policies[0], 1, 4), second(*three.policies[0], 2, 4);
  three.Update(first);
  const std::string state = three.State();
  for (uint32_t size : {1U, 2U, 3U}) {
    RankedBench other(size, kOptions);
    for (uint32_t rank = 0; rank < size; ++rank) {
      other.policies[rank]->SetValues(0, three.policies[0]->Values(0));
      other.policies[rank]->SetValues(1, three.policies[0]->Values(1));
    }
    other.Load(state);
    EXPECT_EQ(other.State(), state);
    other.Update(second);
    RankedBench going_on(3, kOptions);
    going_on.Update(first);
    going_on.Update(second);
    if (size == 3)
      EXPECT_EQ(other.Values(), going_on.Values());
    else
      ExpectNear(other.Values(), going_on.Values(), 1e-5);
  }
}

// A gradient that is not finite on one rank is a step that nobody takes.
TEST(TrainerRanks, OneRanksInfinityIsSkippedByAll) {
  RankedBench several(3, kOptions);
  const Batch batch(*several.policies[0], 1, 4);
  several.policies[1]->always_poison = true;
  const std::vector<double> before = several.Values();
  several.Update(batch);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(several.Values(rank), before);
    EXPECT_GT(several.sinks[rank]->step.at("skipped_steps"), 0);
  }
}

TEST(TrainerRanks, OnesCancelStopsAll) {
  nlohmann::json options = kOptions;
  options["old_logprobs"] = "recomputed";
  RankedBench several(2, options);
  const Batch batch(*several.policies[0], 1, 2);
  several.hosts[1]->cancel = true;
  several.ranks.Run([&](uint32_t rank) {
    EXPECT_EQ(ErrorOf(
                  [&] {
                    several.trainers[rank]->Update(testing::PointersTo(batch.samples).data(), batch.samples.size(),
                                                   several.sinks[rank]->get());
                  },
                  KGRPO_ERROR_CANCELLED),
              "cancelled");
  });
}

TEST(TrainerRanks, SharesAreADivisionAndEven) {
  std::mt19937_64 engine(1);
  for (uint32_t size : {2U, 5U}) {
    ThreadRanks ranks(size);
    std::vector<size_t> costs(40);
    for (size_t& cost : costs) cost = 1 + engine() % 100;
    std::vector<int> owners(costs.size(), 0);
    for (uint32_t rank = 0; rank < size; ++rank) {
      testing::FakeHost host;
      ranks.Join(host, rank);
      size_t load = 0;
      for (size_t item : trainer::ShareOf(Collective(host.get()), costs)) {
        ++owners[item];
        load += costs[item];
      }
      const size_t even = std::accumulate(costs.begin(), costs.end(), size_t{0}) / size;
      EXPECT_NEAR(static_cast<double>(load), static_cast<double>(even), 100.0);
    }
    for (int count : owners) EXPECT_EQ(count, 1);
  }
}

TEST(TrainerRanks, SummariesAreThoseOfAllValues) {
  ThreadRanks ranks(3);
  std::vector<trainer::Summary> own(3);
  trainer::Summary all;
  for (int i = 0; i < 20; ++i) {
    const double value = std::sin(i) * 10 + 3;
    own[i % 2].Add(value);  // the third has none
    all.Add(value);
  }
  ranks.Run([&](uint32_t rank) {
    testing::FakeHost host;
    ranks.Join(host, rank);
    const trainer::Summary combined = trainer::CombinedOver(Collective(host.get()), own[rank]);
    EXPECT_EQ(combined.count(), all.count());
    EXPECT_NEAR(combined.mean(), all.mean(), 1e-12);
    EXPECT_NEAR(combined.standard_deviation(), all.standard_deviation(), 1e-12);
    EXPECT_EQ(combined.min(), all.min());
    EXPECT_EQ(combined.max(), all.max());
  });
}

}  // namespace
}  // namespace kgrpo::grpo
