// Buckets of gradients: together they cover every element once, each reduction begins as soon as its bucket is final
// and not before, and the sums equal those of a single reduction.
#include "trainer_shared/gradient_reduction.h"

#include "fake_host.h"
#include "test.h"
#include "thread_ranks.h"

namespace kgrpo::trainer {
namespace {

using testing::FakeHost;
using testing::ThreadRanks;

// Spans of one or several groups, some of them empty, with a gradient each.
struct Layout {
  explicit Layout(std::mt19937_64& random) {
    for (size_t group = 0; group < 1 + random() % 3; ++group) {
      for (size_t span = 0; span < 1 + random() % 4; ++span) {
        gradients.emplace_back(random() % 40);
        set.spans.push_back({gradients.back().size(), ValueType::kFloat32, nullptr, nullptr, false, group});
      }
    }
    for (size_t i = 0; i < gradients.size(); ++i) set.spans[i].gradient = gradients[i].data();
  }
  std::vector<std::vector<float>> gradients;
  ParameterSet set;
};

ParameterSet OneSpan(std::vector<float>& gradient) {
  ParameterSet set;
  set.spans.push_back({gradient.size(), ValueType::kFloat32, nullptr, gradient.data(), false, 0});
  return set;
}

struct Piece {
  size_t span, begin, end;
};

// The elements of all spans as pieces in a random order, as a backward pass over any layers may end with them.
std::vector<Piece> RandomPieces(const ParameterSet& set, std::mt19937_64& random) {
  std::vector<Piece> pieces;
  for (size_t span = 0; span < set.spans.size(); ++span) {
    for (size_t begin = 0; begin < set.spans[span].count;) {
      const size_t end = std::min<size_t>(set.spans[span].count, begin + 1 + random() % 15);
      pieces.push_back({span, begin, end});
      begin = end;
    }
  }
  std::ranges::shuffle(pieces, random);
  return pieces;
}

void Tell(const GradientReduction& reduction, float* gradient, size_t count) {
  auto extent = static_cast<int64_t>(count);
  kgrpo_tensor piece{};
  piece.data = gradient;
  piece.device.type = KGRPO_DEVICE_CPU;
  piece.ndim = 1;
  piece.dtype = {KGRPO_DTYPE_FLOAT, 32, 1};
  piece.shape = &extent;
  reduction.sink()->ready(reduction.sink()->context, &piece);
}

float Value(uint32_t rank, size_t span, size_t element) {
  return static_cast<float>((rank * 7919 + span * 104729 + element * 31) % 1000) / 7.0F;
}

TEST(GradientBuckets, AreEveryElementOnceFromTheBackOfEachGroup) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const Layout layout(random);
    const size_t most = 1 + random() % 20;
    std::vector<std::vector<int>> covered;
    for (const ParameterSpan& span : layout.set.spans) covered.emplace_back(span.count, 0);
    const std::vector<GradientBucket> buckets = MakeBuckets(layout.set.spans, most);
    for (size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_GT(buckets[i].end, buckets[i].begin);
      EXPECT_LE(buckets[i].end - buckets[i].begin, most);
      for (size_t at = buckets[i].begin; at < buckets[i].end; ++at) ++covered[buckets[i].span][at];
      for (size_t before = 0; before < i; ++before) {
        if (layout.set.spans[buckets[before].span].group != layout.set.spans[buckets[i].span].group) continue;
        EXPECT_GE(std::pair(buckets[before].span, buckets[before].begin), std::pair(buckets[i].span, buckets[i].end));
      }
    }
    for (const std::vector<int>& span : covered)
      EXPECT_TRUE(std::ranges::all_of(span, [](int times) { return times == 1; }));
  }
}

// A model's two groups, of the sizes of its matrices and of its norms: the few norms, which are final when the first
// layer is, must not hold up the matrices of the others.
TEST(GradientBuckets, ASmallGroupDoesNotHoldUpALargeOne) {
  std::vector<ParameterSpan> spans(2);
  spans[0].count = 1000;
  spans[1].count = 10;
  spans[1].group = 1;
  const std::vector<GradientBucket> buckets = MakeBuckets(spans, 300);
  ASSERT_EQ(buckets.size(), 5U);
  EXPECT_EQ(buckets[0].end, 1000U);
  EXPECT_EQ(buckets[2].begin, 100U);
  EXPECT_EQ(buckets[3].begin, 0U);
  EXPECT_EQ(buckets[4].span, 1U);
}

TEST(GradientReduction, GivesTheSumsOfOneReductionInAnyOrderOfPieces) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 60; ++round) {
    const uint32_t size = 2 + round % 2;
    const uint64_t seed = random();
    const size_t most = 1 + random() % 30;
    for (const bool blocking : {false, true}) {
      ThreadRanks ranks(size);
      ranks.Run([&](uint32_t rank) {
        std::mt19937_64 shared(seed);
        Layout layout(shared);
        std::mt19937_64 own(seed + rank);
        FakeHost host;
        ranks.Join(host, rank, blocking);
        GradientReduction reduction(layout.set, Collective(host.get()), nullptr, most * sizeof(float));
        EXPECT_EQ(reduction.sink() == nullptr, blocking);
        for (int step = 0; step < 2; ++step) {
          reduction.Start();
          std::vector<Piece> pieces = RandomPieces(layout.set, own);
          // The last rank has no backward pass; another one forgets to tell of the end.
          const size_t told = blocking || rank + 1 == size ? 0 : pieces.size() - (rank % 2) * pieces.size() / 3;
          for (size_t i = 0; i < pieces.size(); ++i) {
            const auto [span, begin, end] = pieces[i];
            float* const gradient = layout.gradients[span].data();
            for (size_t at = begin; at < end; ++at) gradient[at] = Value(rank + step, span, at);
            if (i < told) Tell(reduction, gradient + begin, end - begin);
          }
          reduction.Finish();
          for (size_t span = 0; span < layout.gradients.size(); ++span) {
            const size_t count = layout.gradients[span].size();
            for (size_t at = Collective::SliceBegin(count, rank, size);
                 at < Collective::SliceBegin(count, rank + 1, size); ++at) {
              float sum = Value(step, span, at);
              for (uint32_t other = 1; other < size; ++other) sum += Value(other + step, span, at);
              EXPECT_EQ(layout.gradients[span][at], sum);
            }
          }
        }
      });
    }
  }
}

// Two layers of 20 behind an embedding of 30: what a bucket covers is final when its first layer is.
TEST(GradientReduction, ABucketBeginsAsSoonAsItIsFinal) {
  ThreadRanks ranks(2);
  ranks.Run([&](uint32_t rank) {
    std::vector<float> gradient(70, 1.0F);
    const ParameterSet set = OneSpan(gradient);
    FakeHost host;
    ranks.Join(host, rank);
    GradientReduction reduction(set, Collective(host.get()), nullptr, 25 * sizeof(float));
    std::vector<std::string>& log = ranks.logs[rank];
    if (rank == 1) return reduction.Finish();  // no sample
    for (const size_t begin : {50, 30, 0}) {
      log.push_back("layer at " + std::to_string(begin));
      Tell(reduction, gradient.data() + begin, (begin == 0 ? 30 : 20));
    }
    log.emplace_back("backward ends");
    reduction.Finish();
  });
  EXPECT_EQ(ranks.logs[0],
            (std::vector<std::string>{"layer at 50", "layer at 30", "begin 45 to 70 of 70", "layer at 0",
                                      "begin 20 to 45 of 70", "begin 0 to 20 of 70", "finish", "backward ends"}));
  EXPECT_EQ(ranks.logs[1], (std::vector<std::string>{"begin 45 to 70 of 70", "begin 20 to 45 of 70",
                                                     "begin 0 to 20 of 70", "finish"}));
}

// What was begun would have been reduced without what came later.
TEST(GradientReduction, APieceThatIsToldTwiceIsAnErrorOfThePolicy) {
  ThreadRanks ranks(2);
  ranks.Run([&](uint32_t rank) {
    std::vector<float> gradient(10, 1.0F);
    const ParameterSet set = OneSpan(gradient);
    FakeHost host;
    ranks.Join(host, rank);
    GradientReduction reduction(set, Collective(host.get()), nullptr, 4 * sizeof(float));
    for (int i = 0; i < 2; ++i) Tell(reduction, gradient.data() + 6, 4);
    EXPECT_EQ(test::MessageOf([&] { reduction.Finish(); }, KGRPO_ERROR_INTERNAL),
              "the policy's backward_in_pieces told of a piece of the gradients more than once");
    EXPECT_EQ(ranks.logs[rank].back(), "finish");  // the other ranks are not left waiting
  });
}

}  // namespace
}  // namespace kgrpo::trainer
