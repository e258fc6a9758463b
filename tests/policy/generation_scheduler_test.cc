// The scheduler of generation, over a device whose model is a hash of all previous tokens: a request's result
// does not depend on the requests that share its slots and pages, and shared prefixes are processed once.
#include "policy_qwen/generation/generation_scheduler.h"

#include "policy_qwen/model/random.h"
#include "test.h"

namespace kgrpo::policy {
namespace {

constexpr int32_t kTokens = 50, kStop = 7, kContext = 200;

uint64_t Extend(uint64_t hash, int32_t token) {
  return Mix(hash ^ (static_cast<uint64_t>(token) + 1) * 0x9e3779b97f4a7c15u);
}

// The token after a history, and a stand-in for its log-probability.
std::pair<int32_t, float> Next(uint64_t history, uint64_t seed, int32_t count) {
  const uint64_t bits = Mix(history + RandomBits(seed, static_cast<uint64_t>(count)));
  return {static_cast<int32_t>(bits % kTokens), -static_cast<float>(bits >> 40)};
}

Completion Expect(const GenerationRequest& request, const SamplingOptions& options) {
  uint64_t history = 0;
  for (const int32_t token : request.prompt) history = Extend(history, token);
  const auto limit = std::min<int64_t>(options.max_new_tokens, kContext - static_cast<int64_t>(request.prompt.size()));
  Completion completion;
  while (static_cast<int64_t>(completion.ids.size()) < limit && !completion.ended) {
    const auto [id, logprob] = Next(history, request.seed, static_cast<int32_t>(completion.ids.size()));
    completion.ids.push_back(id);
    completion.logprobs.push_back(logprob);
    completion.ended = id == kStop;
    history = Extend(history, id);
  }
  return completion;
}

// Keeps of every position the token it was given, and reads histories back through the pages, as attention would.
class FakeDevice final : public GenerationDevice {
 public:
  explicit FakeDevice(const SchedulerLimits& limits)
      : limits_(limits),
        cache_(static_cast<size_t>(limits.pages) * kPageSize, -1),
        slots_(static_cast<size_t>(limits.slots)),
        pages_(slots_.size()),
        outputs_(slots_.size()) {}

  void Admit(int32_t slot, const Slot& start, std::span<const int32_t> pages) override {
    slots_[static_cast<size_t>(slot)] = start;
    pages_[static_cast<size_t>(slot)].assign(pages.begin(), pages.end());
    outputs_[static_cast<size_t>(slot)] = Completion();
  }
  void ReadPrompts(std::span<const StepRow> rows, std::span<const int32_t> sampled) override {
    if (limits_.whole_prompts) {  // one prompt, by as many slots as have it
      const size_t length = rows.size() / sampled.size();
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].position, static_cast<int32_t>(i % length));
        EXPECT_EQ(rows[i].token, rows[i % length].token);
      }
    } else {
      EXPECT_LE(static_cast<int32_t>(rows.size()), limits_.rows_a_read);
    }
    for (const StepRow& row : rows) At(row.slot, row.position) = row.token;
    prompt_rows.insert(prompt_rows.end(), rows.begin(), rows.end());
    for (const int32_t row : sampled) {
      const StepRow& last = rows[static_cast<size_t>(row)];
      Sample(last.slot, last.position);
    }
  }
  void Decode(std::span<const int32_t> slots, int32_t positions, int32_t steps) override {
    for (int32_t step = 0; step < steps; ++step) {
      for (const int32_t slot : slots) {
        const Slot& state = slots_[static_cast<size_t>(slot)];
        if (state.end != SlotEnd::kNone) continue;
        ASSERT_LT(state.position, positions);
        decoded.push_back({slot, state.position, state.token});
        At(slot, state.position) = state.token;
        Sample(slot, state.position);
      }
    }
  }
  std::vector<Slot> ReadSlots() override { return slots_; }
  void Clear() override { ++cleared; }
  int cleared = 0;
  std::vector<StepRow> prompt_rows, decoded;  // so far
  void Fetch(int32_t slot, Completion& completion) override {
    const Completion& output = outputs_[static_cast<size_t>(slot)];
    ASSERT_EQ(completion.ids.size(), output.ids.size());
    completion.ids = output.ids;
    completion.logprobs = output.logprobs;
  }

 private:
  int32_t& At(int32_t slot, int32_t position) {
    const std::vector<int32_t>& pages = pages_[static_cast<size_t>(slot)];
    return cache_.at(
        static_cast<size_t>(pages.at(static_cast<size_t>(position / kPageSize)) * kPageSize + position % kPageSize));
  }
  void Sample(int32_t slot, int32_t position) {
    uint64_t history = 0;
    for (int32_t i = 0; i <= position; ++i) history = Extend(history, At(slot, i));
    Slot& state = slots_[static_cast<size_t>(slot)];
    const auto [id, logprob] = Next(history, state.seed, state.count);
    outputs_[static_cast<size_t>(slot)].ids.push_back(id);
    outputs_[static_cast<size_t>(slot)].logprobs.push_back(logprob);
    state.token = id;
    state.position = position + 1;
    ++state.count;
    state.end = id == kStop ? SlotEnd::kStop : state.count == state.limit ? SlotEnd::kLength : SlotEnd::kNone;
  }

  SchedulerLimits limits_;
  std::vector<int32_t> cache_;
  std::vector<Slot> slots_;
  std::vector<std::vector<int32_t>> pages_;
  std::vector<Completion> outputs_;
};

struct Load {
  int32_t slots, pages, rows_a_read, steps;
  bool whole_prompts = false;
};

class GenerationSchedulerTest : public ::testing::TestWithParam<Load> {};

TEST_P(GenerationSchedulerTest, ThousandRequestsInAnyOrderAndLoad) {
  const SchedulerLimits limits = {GetParam().slots,       GetParam().pages, kContext,
                                  GetParam().rows_a_read, GetParam().steps, GetParam().whole_prompts};
  std::mt19937_64 random(static_cast<uint64_t>(limits.slots));
  const auto draw = [&](size_t size) {
    std::vector<int32_t> ids(size);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 3);  // common beginnings by chance too
    return ids;
  };
  const std::vector<int32_t> common = draw(70);
  std::vector<GenerationRequest> requests(1000);
  std::vector<SamplingOptions> options(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i % 4 == 1) {
      requests[i].prompt = requests[i - 1].prompt;
    } else {
      if (i % 2 == 0) requests[i].prompt.assign(common.begin(), common.begin() + static_cast<ptrdiff_t>(random() % 70));
      const std::vector<int32_t> rest = draw(1 + random() % 100);
      requests[i].prompt.insert(requests[i].prompt.end(), rest.begin(), rest.end());
    }
    requests[i].seed = random() % 500;
    options[i].max_new_tokens = static_cast<int64_t>(1 + random() % 60);
  }
  std::vector<size_t> order(requests.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random);

  FakeDevice device(limits);
  GenerationScheduler scheduler(device, limits);
  std::vector<int> finished(requests.size());
  size_t submitted = 0, done = 0;
  while (done < requests.size()) {
    // Bursts, with pauses in which everything may end.
    if (random() % 4 == 0) {
      for (uint64_t n = random() % 60; n > 0 && submitted < order.size(); --n, ++submitted) {
        scheduler.Submit(order[submitted], requests[order[submitted]], options[order[submitted]]);
      }
    }
    scheduler.Turn([&](const Completion& completion) {
      const size_t i = completion.request;
      const Completion expected = Expect(requests[i], options[i]);
      EXPECT_EQ(completion.ids, expected.ids) << i;
      EXPECT_EQ(completion.logprobs, expected.logprobs) << i;
      EXPECT_EQ(completion.ended, expected.ended) << i;
      ++finished[i];
      ++done;
    });
  }
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(std::ranges::count(finished, 1), 1000);
}

INSTANTIATE_TEST_SUITE_P(Loads, GenerationSchedulerTest,
                         ::testing::Values(Load{1, 13, 7, 8}, Load{3, 30, 64, 1}, Load{16, 60, 33, 8},
                                           Load{64, 400, 512, 5}, Load{64, 40, 512, 8}, Load{3, 30, 1, 1, true},
                                           Load{64, 400, 1, 1, true}));

TEST(GenerationScheduler, PromptsThatBeginAlikeAreReadOnce) {
  const SchedulerLimits limits = {.slots = 16, .pages = 200, .context_length = kContext};
  FakeDevice device(limits);
  GenerationScheduler scheduler(device, limits);
  std::vector<int32_t> prompt(100);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i % 11);
  SamplingOptions options;
  options.max_new_tokens = 20;
  for (size_t i = 0; i < 16; ++i) scheduler.Submit(i, {prompt, i}, options);
  while (!scheduler.idle()) scheduler.Turn([](const Completion&) {});
  EXPECT_EQ(scheduler.rows_read(), 100 + 15 * 4);  // 96 tokens are six whole pages

  // Once nothing is under way the parameters may have changed.
  scheduler.Submit(0, {prompt, 1}, options);
  while (!scheduler.idle()) scheduler.Turn([](const Completion&) {});
  EXPECT_EQ(scheduler.rows_read(), 100 + 15 * 4 + 100);
}

TEST(GenerationScheduler, WholePromptsAreReadOnceBeforeAnyDecodes) {
  const SchedulerLimits limits = {.slots = 16, .pages = 200, .context_length = kContext, .whole_prompts = true};
  FakeDevice device(limits);
  GenerationScheduler scheduler(device, limits);
  SamplingOptions options;
  options.max_new_tokens = 20;
  for (size_t i = 0; i < 16; ++i) {
    const std::vector<int32_t> prompt(50 + i % 3, static_cast<int32_t>(i % 3));
    scheduler.Submit(i, {prompt, i}, options);
  }
  for (size_t turn = 1; turn <= 3; ++turn) {
    EXPECT_TRUE(device.decoded.empty());
    scheduler.Turn([](const Completion&) {});
    EXPECT_EQ(std::ranges::count(device.prompt_rows, 0, &StepRow::position), std::vector({0, 6, 11, 16})[turn]);
  }
  EXPECT_FALSE(device.decoded.empty());
  while (!scheduler.idle()) scheduler.Turn([](const Completion&) {});
}

// gpu_model.h: a token's role does not depend on sharing. The last token of a prompt is read as a prompt row although
// all of its pages are there, and sampled tokens are never prompt rows.
TEST(GenerationScheduler, PromptTokensArePromptRowsAndSampledTokensAreNot) {
  const SchedulerLimits limits = {.slots = 4, .pages = 40, .context_length = kContext, .rows_a_read = 20};
  FakeDevice device(limits);
  GenerationScheduler scheduler(device, limits);
  SamplingOptions options;
  options.max_new_tokens = 30;
  const std::vector<int32_t> prompt(2 * kPageSize, 3);
  for (size_t i = 0; i < 9; ++i) scheduler.Submit(i, {prompt, i}, options);
  while (!scheduler.idle()) scheduler.Turn([](const Completion&) {});
  EXPECT_EQ(std::ranges::count(device.prompt_rows, 2 * kPageSize - 1, &StepRow::position), 9);
  EXPECT_EQ(scheduler.rows_read(), 2 * kPageSize + 8 * kPageSize);  // the last page is never shared
  for (const StepRow& row : device.prompt_rows) EXPECT_LT(row.position, 2 * kPageSize);
  EXPECT_FALSE(device.decoded.empty());
  for (const StepRow& row : device.decoded) EXPECT_GE(row.position, 2 * kPageSize);
}

TEST(GenerationScheduler, RequestsThatNeverFitAreRefused) {
  const SchedulerLimits limits = {.slots = 2, .pages = 3, .context_length = kContext};
  FakeDevice device(limits);
  GenerationScheduler scheduler(device, limits);
  SamplingOptions options;
  options.max_new_tokens = 29;
  scheduler.Submit(0, {std::vector<int32_t>(20, 1), 0}, options);  // 48 positions
  options.max_new_tokens = 30;
  try {
    scheduler.Submit(1, {std::vector<int32_t>(20, 1), 0}, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("generation_memory_mib"), std::string::npos);
  }
  scheduler.Clear();
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(device.cleared, 1);
}

}  // namespace
}  // namespace kgrpo::policy
