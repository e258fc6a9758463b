// Whole updates of a bigram policy against PyTorch and TRL (tests/golden/trainer/make_updates.py).
#include "bigram_policy.h"
#include "fake_host.h"
#include "options_json.h"
#include "recorded_sink.h"
#include "test.h"
#include "trainer_grpo/grpo_options.h"
#include "trainer_grpo/grpo_trainer.h"

namespace kgrpo::grpo {
namespace {

using kgrpo::testing::BigramPolicy;
using kgrpo::testing::FakeHost;
using kgrpo::testing::RecordedSink;

constexpr size_t kVocabulary = 13;

const json& GoldenUpdates() {
  static const json golden = json::parse(std::ifstream(KGRPO_BINARY_DIR "/test_data/trainer/updates.json"));
  return golden;
}

// A case's samples, with the arrays that kgrpo_sample points to.
struct Samples {
  explicit Samples(const json& list) {
    for (const json& s : list) {
      prompts.push_back(s.at("prompt_ids"));
      completions.push_back(s.at("completion_ids"));
      logprobs.push_back(s.at("logprobs"));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const json& s = list[i];
      samples.push_back({sizeof(kgrpo_sample), prompts[i].data(), prompts[i].size(), completions[i].data(),
                         logprobs[i].data(), completions[i].size(), s.at("reward"), s.at("idle_reward"),
                         s.at("trajectory"), s.at("round"), s.at("rounds"), s.at("problem"),
                         s.at("truncated").get<bool>() ? 1 : 0});
    }
  }
  std::vector<std::vector<int32_t>> prompts, completions;
  std::vector<std::vector<float>> logprobs;
  std::vector<kgrpo_sample> samples;
};

class Update : public ::testing::TestWithParam<size_t> {};

TEST_P(Update, EqualsPyTorch) {
  const json& c = GoldenUpdates().at(GetParam());
  SCOPED_TRACE(c.at("name").get<std::string>());
  json settings = c.at("settings");
  const double temperature = settings.at("temperature");
  const uint64_t updates = settings.at("updates");
  const bool bfloat16 = settings.at("dtype") == "bfloat16";
  for (const char* own : {"temperature", "updates", "noise", "dtype", "trajectories"}) settings.erase(own);

  FakeHost host;
  BigramPolicy policy(kVocabulary, bfloat16);
  for (size_t i = 0; i < 2; ++i) policy.SetValues(i, c.at("before")[i].get<std::vector<double>>());
  policy.FreezeReference();
  const Samples samples(c.at("samples"));
  RecordedSink sink;
  GrpoTrainer trainer(host.get(), ReadGrpoOptions(kgrpo::testing::OptionsJson(GrpoOptionsSchema(), settings)), nullptr);
  trainer.Begin(&BigramPolicy::Api(), policy.get(),
                {sizeof(kgrpo_trainer_plan), updates, temperature, 6, 0, 0, 0, 0, 0, 0});
  for (uint64_t i = 0; i < updates; ++i)
    trainer.Update(kgrpo::testing::PointersTo(samples.samples).data(), samples.samples.size(), sink.get());

  const json& rows = c.at("rows");
  ASSERT_EQ(sink.rows.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE("optimiser step " + std::to_string(i));
    // Policies in bfloat16 whose masters differ in the last bit can round to neighbours.
    const double tolerance = bfloat16 ? 5e-3 : 1e-4;
    for (const auto& [name, value] : rows[i].items()) {
      EXPECT_NEAR(sink.rows[i].at(name), value.get<double>(), tolerance * (0.1 + std::abs(value.get<double>())))
          << name;
    }
  }
  double squares = 0, error = 0;
  for (size_t p = 0; p < 2; ++p) {
    const auto before = c.at("before")[p].get<std::vector<double>>(),
               after = c.at("after")[p].get<std::vector<double>>();
    const auto values = policy.Values(p);
    for (size_t i = 0; i < values.size(); ++i) {
      squares += std::pow(after[i] - before[i], 2);
      error += std::pow(values[i] - after[i], 2);
    }
  }
  ASSERT_GT(squares, 0);
  RecordProperty("relative_error", std::to_string(std::sqrt(error / squares)));
  EXPECT_LE(std::sqrt(error / squares), bfloat16 ? 2e-2 : 1e-3);
  EXPECT_EQ(policy.live_contexts, 0);
}

INSTANTIATE_TEST_SUITE_P(GoldenUpdates, Update, ::testing::Range(size_t{0}, GoldenUpdates().size()),
                         [](const auto& info) {
                           return GoldenUpdates().at(info.param).at("name").template get<std::string>();
                         });

}  // namespace
}  // namespace kgrpo::grpo
