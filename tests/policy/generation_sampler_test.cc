// The sampler of generation on a GPU draws the token that a sort of the vocabulary would give, with the draws of
// model/random.h. On the PTX interpreter.
#include "gpu_elements.h"
#include "policy_qwen/model/random.h"
#include "test.h"

namespace kgrpo::policy {
namespace {

struct Expected {
  int id;
  double logprob;
  double margin;  // how far the draw was from a neighbour, of the kept weight
};

// As model/sampler.h says, in double precision.
Expected SampleBySorting(const std::vector<float>& logits, const Slot& slot) {
  const float temperature = slot.temperature == 0 ? 1.0F : slot.temperature;
  std::vector<double> z(logits.size()), weights(logits.size());
  std::ranges::transform(logits, z.begin(), [&](float logit) { return logit / temperature; });
  const double greatest = std::ranges::max(z);
  double total = 0;
  for (size_t i = 0; i < z.size(); ++i) total += weights[i] = std::exp(z[i] - greatest);
  const auto logprob = [&](int id) { return z[static_cast<size_t>(id)] - greatest - std::log(total); };
  std::vector<int> order(z.size());
  std::iota(order.begin(), order.end(), 0);
  const bool has_filter = slot.top_k > 0 || slot.top_p < 1 || slot.min_p > 0;
  if (slot.temperature == 0 || has_filter) {
    std::ranges::stable_sort(order,
                             [&](int a, int b) { return z[static_cast<size_t>(a)] > z[static_cast<size_t>(b)]; });
  }
  if (slot.temperature == 0) return {order[0], logprob(order[0]), 1};
  const auto weight = [&](int id) { return weights[static_cast<size_t>(id)]; };
  if (slot.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(slot.top_k)));
  if (slot.top_p < 1) {
    double sum = 0, before = 0;
    for (const int id : order) sum += weight(id);
    size_t kept = 0;
    while (kept < order.size() && (kept == 0 || before < slot.top_p * sum)) before += weight(order[kept++]);
    order.resize(kept);
  }
  if (slot.min_p > 0) std::erase_if(order, [&](int id) { return weight(id) < slot.min_p; });
  double sum = 0, running = 0;
  for (const int id : order) sum += weight(id);
  const double threshold = RandomUniform(slot.seed, static_cast<uint64_t>(slot.count)) * sum;
  for (const int id : order) {
    const double before = running;
    running += weight(id);
    if (running > threshold) return {id, logprob(id), std::min(threshold - before, running - threshold) / sum};
  }
  return {order.back(), logprob(order.back()), 0};
}

class GenerationSamplerTest : public ::testing::TestWithParam<Element> {};

void DrawsWhatASortWouldGive(Element type, size_t vocabulary) {
  GenerationGpu on;
  std::vector<Slot> slots;
  const auto add = [&](float temperature, int32_t top_k, double top_p, double min_p) {
    Slot slot = {};
    slot.seed = slots.size() * 1000 + 5;
    slot.temperature = temperature;
    slot.top_k = top_k;
    slot.top_p = top_p;
    slot.min_p = min_p;
    slot.limit = 3;
    slot.count = static_cast<int32_t>(slots.size() % 3);
    slots.push_back(slot);
  };
  for (int i = 0; i < 6; ++i) add(i % 2 == 0 ? 1.0F : 0.7F, 0, 1, 0);
  add(0, 0, 1, 0);
  add(0, 5, 0.5, 0.1);
  for (int i = 0; i < 3; ++i) add(1, 5, 1, 0);
  for (int i = 0; i < 3; ++i) add(0.8F, 0, 0.9, 0);
  for (int i = 0; i < 3; ++i) add(1.3F, 0, 1, 0.05);
  for (int i = 0; i < 3; ++i) add(1, 200, 0.7, 0.02);
  add(1, 1, 1, 0);
  add(1, 100000, 1, 0);
  add(1, 0, 1e-9, 0);
  add(1, 0, 1, 1);
  const size_t count = slots.size();
  // Rounded to quarters in part: many equal logits.
  std::vector<float> logits = on.Normal(type, count * vocabulary, 3);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (i / vocabulary % 2 == 0) logits[i] = std::round(logits[i] * 4) / 4;
  }
  const ElementArray on_gpu(on.gpu, type, logits);
  std::vector<int32_t> rows(count);
  std::iota(rows.rbegin(), rows.rend(), 0);
  std::vector<Place> places(count + 1, {0, -1});
  for (size_t i = 0; i < count; ++i) places[static_cast<size_t>(rows[i])] = {static_cast<int32_t>(i), 40};
  GpuArray<Slot> state(on.gpu, slots);
  const GpuArray<Place> place_array(on.gpu, places);
  const GpuArray<int32_t> row_array(on.gpu, rows);
  // The token of row 0 is an end token.
  const int stop = SampleBySorting({logits.begin(), logits.begin() + vocabulary}, slots[0]).id;
  const GpuArray<int32_t> end_ids(on.gpu, {1, stop});
  GpuArray<int32_t> ids(on.gpu, std::vector<int32_t>(count * 3, -7));
  GpuArray<float> logprobs(on.gpu, count * 3);
  const GpuArray<SamplePart> parts(on.gpu, count * (vocabulary / kSampleSegment + 1));
  EXPECT_EQ(on.kernels.sample(type, on_gpu.data(), static_cast<int64_t>(count), static_cast<int64_t>(vocabulary),
                              row_array.data(), place_array.data(), state.data(), end_ids.data(), 2, parts.data(),
                              ids.data(), logprobs.data(), 3, kStream),
            nullptr);
  EXPECT_EQ(on.gpu.TakeFindings(), "");
  const std::vector<int32_t> found = ids.Read();
  const std::vector<float> found_logprobs = logprobs.Read();
  const std::vector<Slot> after = state.Read();
  for (size_t i = 0; i < count; ++i) {
    const auto begin = logits.begin() + static_cast<ptrdiff_t>(i * vocabulary);
    const Expected expected = SampleBySorting({begin, begin + static_cast<ptrdiff_t>(vocabulary)}, slots[i]);
    const size_t at = i * 3 + static_cast<size_t>(slots[i].count);
    if (expected.margin > 1e-6) {
      ASSERT_EQ(found[at], expected.id) << i;
    }
    EXPECT_NEAR(found_logprobs[at], expected.logprob, 2e-5) << i;
    EXPECT_EQ(after[i].token, found[at]);
    EXPECT_EQ(after[i].position, 41);
    EXPECT_EQ(after[i].count, slots[i].count + 1);
    const bool stops = found[at] == stop || found[at] == 1;
    EXPECT_EQ(after[i].end, stops ? SlotEnd::kStop : after[i].count == 3 ? SlotEnd::kLength : SlotEnd::kNone) << i;
    for (size_t j = 0; j < 3; ++j) {
      if (i * 3 + j != at) {
        EXPECT_EQ(found[i * 3 + j], -7);
      }
    }
  }
  EXPECT_EQ(after[0].end, SlotEnd::kStop);
}

TEST_P(GenerationSamplerTest, DrawsWhatASortWouldGive) {
  DrawsWhatASortWouldGive(GetParam(), 2531);
  DrawsWhatASortWouldGive(GetParam(), 2528);  // rows of which 16 bytes are read at a time
}

// A model that has diverged: nothing is read or written out of bounds, and an all-NaN row says so.
TEST_P(GenerationSamplerTest, LogitsThatAreNoNumbersEndNothing) {
  GenerationGpu on;
  constexpr size_t kVocabulary = 700, kRows = 6;
  std::vector<float> logits(kVocabulary * kRows, std::nanf(""));
  for (size_t i = 0; i < kVocabulary; ++i) {
    logits[2 * kVocabulary + i] = i % 3 == 0 ? std::nanf("") : 1.0F;
    logits[3 * kVocabulary + i] = i % 3 == 0 ? std::nanf("") : 1.0F;
    logits[4 * kVocabulary + i] = i == 9 ? INFINITY : 1.0F;
    logits[5 * kVocabulary + i] = -INFINITY;
  }
  std::vector<Slot> slots(kRows);
  std::vector<Place> places(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    slots[i].seed = i;
    slots[i].temperature = 1;
    slots[i].top_p = i % 2 == 0 ? 1 : 0.9;
    slots[i].top_k = i % 2 == 0 ? 0 : 50;
    slots[i].limit = 2;
    places[i] = {static_cast<int32_t>(i), 3};
  }
  const ElementArray on_gpu(on.gpu, GetParam(), logits);
  const GpuArray<Place> place_array(on.gpu, places);
  GpuArray<Slot> state(on.gpu, slots);
  const GpuArray<int32_t> end_ids(on.gpu, std::vector<int32_t>{1});
  GpuArray<int32_t> ids(on.gpu, std::vector<int32_t>(kRows * 2, -7));
  GpuArray<float> logprobs(on.gpu, std::vector<float>(kRows * 2));
  const GpuArray<SamplePart> parts(on.gpu, kRows * (kVocabulary / kSampleSegment + 1));
  EXPECT_EQ(on.kernels.sample(GetParam(), on_gpu.data(), kRows, kVocabulary, nullptr, place_array.data(), state.data(),
                              end_ids.data(), 1, parts.data(), ids.data(), logprobs.data(), 2, kStream),
            nullptr);
  EXPECT_EQ(on.gpu.TakeFindings(), "");
  const std::vector<int32_t> found = ids.Read();
  for (size_t i = 0; i < kRows; ++i) {
    EXPECT_GE(found[i * 2], 0);
    EXPECT_LT(found[i * 2], static_cast<int32_t>(kVocabulary));
    EXPECT_EQ(state.Read()[i].count, 1);
  }
  EXPECT_EQ(found[4 * 2], 9);
  EXPECT_TRUE(std::isnan(logprobs.Read()[0]));
}

INSTANTIATE_TEST_SUITE_P(All, GenerationSamplerTest, ::testing::Values(Element::kFloat32, Element::kBfloat16),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace kgrpo::policy
