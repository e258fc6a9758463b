// The sampler draws from the distribution that its options define: chi-square against the exact probabilities.
#include "policy_qwen/model/sampler.h"

#include "policy_qwen/model/random.h"
#include "test.h"

namespace kgrpo::policy {
namespace {

constexpr int kVocabularySize = 40;

std::vector<float> MakeLogits() {
  std::vector<float> logits;
  for (int i = 0; i < kVocabularySize; ++i)
    logits.push_back(static_cast<float>(1.5 * RandomNormal(7, static_cast<uint64_t>(i))));
  return logits;
}

// The distribution by its definition, in double precision: a token is dropped by top_k if k are likelier, by top_p if
// the likelier ones that top_k left reach top_p of those, by min_p if it is below min_p of the likeliest.
std::vector<double> ExactProbabilities(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  std::vector<double> weights(logits.size(), 0.0);
  const size_t kept = options.top_k > 0 ? static_cast<size_t>(options.top_k) : logits.size();
  double sum = 0;
  for (size_t rank = 0; rank < std::min(kept, order.size()); ++rank) {
    weights[order[rank]] = std::exp(static_cast<double>(logits[order[rank]]));
    sum += weights[order[rank]];
  }
  double likelier = 0;
  const double likeliest = weights[order[0]];
  for (size_t rank = 0; rank < order.size(); ++rank) {
    double& weight = weights[order[rank]];
    const double own = weight;
    if (rank > 0 && options.top_p < 1 && likelier >= options.top_p * sum) weight = 0;
    if (weight < options.min_p * likeliest) weight = 0;
    likelier += own;
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= total;
  return weights;
}

struct Drawn {
  std::vector<int64_t> ids;
  std::vector<float> logprobs;
};
Drawn Draw(const std::vector<float>& logits, const SamplingOptions& options, const std::vector<double>& uniforms) {
  Drawn drawn;
  for (const double uniform : uniforms) {
    const SampledToken token = SampleToken(logits, options, uniform);
    drawn.ids.push_back(token.id);
    drawn.logprobs.push_back(token.logprob);
  }
  return drawn;
}

struct Setting {
  const char* name;
  double temperature;
  int64_t top_k;
  double top_p;
  double min_p;
};

class SamplerTest : public ::testing::TestWithParam<Setting> {};

TEST_P(SamplerTest, FrequenciesFitTheDistribution) {
  constexpr int64_t kDraws = 200'000;
  SamplingOptions options;
  options.temperature = GetParam().temperature;
  options.top_k = GetParam().top_k;
  options.top_p = GetParam().top_p;
  options.min_p = GetParam().min_p;
  std::vector<float> logits = MakeLogits();
  for (float& logit : logits) logit /= static_cast<float>(options.temperature);
  const std::vector<double> exact = ExactProbabilities(logits, options);

  std::vector<double> uniforms;
  for (uint64_t i = 0; i < kDraws; ++i) uniforms.push_back(RandomUniform(i, 3));
  const Drawn sampled = Draw(logits, options, uniforms);
  std::vector<int64_t> counts(kVocabularySize, 0);
  for (const int64_t id : sampled.ids) ++counts[static_cast<size_t>(id)];

  double chi_square = 0;
  int cells = 0;
  for (size_t id = 0; id < kVocabularySize; ++id) {
    if (exact[id] == 0) {
      EXPECT_EQ(counts[id], 0) << "token " << id << " was filtered away";
      continue;
    }
    const double expected = exact[id] * kDraws;
    chi_square +=
        (static_cast<double>(counts[id]) - expected) * (static_cast<double>(counts[id]) - expected) / expected;
    ++cells;
  }
  // Wilson and Hilferty's approximation of the 99.99% quantile; the draws are fixed, so that this passes always or
  // never.
  const double n = std::max(cells - 1, 1);
  const double quantile = n * std::pow(1 - 2 / (9 * n) + 3.719 * std::sqrt(2 / (9 * n)), 3);
  EXPECT_LT(chi_square, quantile) << cells << " tokens";
  if (GetParam().top_k > 0) {
    EXPECT_LE(cells, GetParam().top_k);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, SamplerTest,
                         ::testing::Values(Setting{"plain", 1.0, 0, 1.0, 0.0}, Setting{"cold", 0.5, 0, 1.0, 0.0},
                                           Setting{"hot", 1.7, 0, 1.0, 0.0}, Setting{"top_k", 1.0, 5, 1.0, 0.0},
                                           Setting{"top_k_beyond_the_vocabulary", 1.0, 1000, 1.0, 0.0},
                                           Setting{"top_p", 1.0, 0, 0.6, 0.0}, Setting{"tiny_top_p", 1.0, 0, 0.01, 0.0},
                                           Setting{"min_p", 1.0, 0, 1.0, 0.2}, Setting{"all", 0.8, 12, 0.9, 0.05}),
                         [](const auto& info) { return info.param.name; });

TEST(SamplerTest, TemperatureZeroTakesTheLikeliest) {
  const std::vector<float> logits = MakeLogits();
  SamplingOptions options;
  options.temperature = 0;
  const Drawn sampled = Draw(logits, options, {0.0, 0.5, 0.999999});
  const int64_t likeliest = std::ranges::max_element(logits) - logits.begin();
  EXPECT_EQ(sampled.ids, std::vector<int64_t>(3, likeliest));
}

TEST(SamplerTest, LogprobsAreOfTheFullVocabularyWhateverTheFilters) {
  const std::vector<float> logits = MakeLogits();
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  SamplingOptions options;
  options.top_k = 3;
  options.top_p = 0.5;
  const Drawn sampled = Draw(logits, options, {0.1, 0.9});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(sampled.logprobs[i], logits[static_cast<size_t>(sampled.ids[i])] - std::log(sum), 1e-5);
  }
}

// As on a GPU: tokens of equal logits are taken in the order of their ids.
TEST(SamplerTest, OfEqualLogitsTheSmallerIdComesFirst) {
  const std::vector<float> logits(kVocabularySize, 0.5F);
  SamplingOptions options;
  options.top_k = 4;
  EXPECT_EQ(Draw(logits, options, {0.0, 0.3, 0.6, 0.9}).ids, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(SamplerTest, ExtremeUniformsStayInTheVocabulary) {
  // Tokens of probability 0 at both ends must not be drawn.
  std::vector<float> logits(kVocabularySize, -std::numeric_limits<float>::infinity());
  logits[3] = logits[4] = 0;
  const Drawn sampled = Draw(logits, {}, {0.0, std::nextafter(1.0, 0.0)});
  EXPECT_EQ(sampled.ids, (std::vector<int64_t>{3, 4}));
}

TEST(SamplerTest, RefusesOptionsOutOfRange) {
  const auto message = [](SamplingOptions options) -> std::string {
    return test::MessageOf([&] { CheckSamplingOptions(options); }, 0, "accepted");
  };
  const double nan = std::nan("");
  EXPECT_EQ(message({0, 1, 0, 1, 0}), "sampling: max_new_tokens must be at least 1");
  EXPECT_EQ(message({1, -1, 0, 1, 0}), "sampling: temperature must be 0 or above");
  EXPECT_EQ(message({1, nan, 0, 1, 0}), "sampling: temperature must be 0 or above");
  EXPECT_EQ(message({1, 1, -1, 1, 0}), "sampling: top_k must be 0 (off) or above");
  EXPECT_EQ(message({1, 1, 0, 0, 0}), "sampling: top_p must be above 0 and at most 1 (off)");
  EXPECT_EQ(message({1, 1, 0, nan, 0}), "sampling: top_p must be above 0 and at most 1 (off)");
  EXPECT_EQ(message({1, 1, 0, 1, 2}), "sampling: min_p must be from 0 (off) to 1");
  EXPECT_EQ(message({1, 1, 0, 1, 0}), "accepted");
}

}  // namespace
}  // namespace kgrpo::policy
