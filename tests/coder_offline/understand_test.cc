// Parsing of free texts: techniques by their words, parameters, several techniques, rejections. Tests techniques.cc and
// phrases.cc.
#include "coder_offline/coder.h"
#include "coder_offline/techniques.h"
#include "test.h"

namespace kgrpo::coder_offline {
namespace {

struct Case {
  const char* text;
  std::vector<Ask> asks;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.text; }

class Understanding : public testing::TestWithParam<Case> {};

TEST_P(Understanding, FindsTheTechniquesAndTheirParameters) {
  const std::vector<Ask> asks = Understand(GetParam().text);
  ASSERT_EQ(asks.size(), GetParam().asks.size());
  for (size_t i = 0; i < asks.size(); ++i) {
    EXPECT_EQ(NameOf(asks[i].technique), NameOf(GetParam().asks[i].technique));
    EXPECT_EQ(asks[i].value, GetParam().asks[i].value);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Synonyms, Understanding,
    testing::Values(
        Case{"Tile the matrices in shared memory", {{Technique::kTile, 0}}},
        Case{"use SMEM tiles of 16x16", {{Technique::kTile, 16}}}, Case{"cache blocking", {{Technique::kTile, 0}}},
        Case{"Stage a 32 x 32 tile in shared memory.", {{Technique::kTile, 32}}},
        Case{"register tiling with 8 outputs", {{Technique::kRegister, 8}}},
        Case{"compute 4 outputs per thread", {{Technique::kRegister, 4}}},
        Case{"coarsen the threads", {{Technique::kRegister, 0}}},
        Case{"vectorised loads", {{Technique::kVectorize, 0}}}, Case{"Load with float4", {{Technique::kVectorize, 4}}},
        Case{"use float2 vectorized loads", {{Technique::kVectorize, 2}}},
        Case{"128-bit loads", {{Technique::kVectorize, 4}}},
        Case{"unroll the inner loop 8 times", {{Technique::kUnroll, 8}}},
        Case{"#pragma unroll 4", {{Technique::kUnroll, 4}}}, Case{"grid-stride loop", {{Technique::kGridStride, 0}}},
        Case{"make the accesses coalesced", {{Technique::kCoalesce, 0}}},
        Case{"interchange the loops", {{Technique::kCoalesce, 0}}},
        Case{"fuse the kernels into one", {{Technique::kFuse, 0}}},
        Case{"reduce with __shfl_down_sync", {{Technique::kShuffle, 0}}},
        Case{"a warp-level reduction", {{Technique::kShuffle, 0}}},
        Case{"let one block per row do the work", {{Technique::kCooperate, 0}}},
        Case{"online softmax", {{Technique::kOnePass, 0}}}, Case{"merge the passes", {{Technique::kOnePass, 0}}},
        Case{"const __restrict__ pointers", {{Technique::kRestrict, 0}}},
        Case{"read through the read-only cache", {{Technique::kRestrict, 0}}},
        Case{"a block of 512 threads", {{Technique::kBlock, 512}}},
        Case{"128 threads per block", {{Technique::kBlock, 128}}},
        Case{"hoist the loop-invariant computation", {{Technique::kHoist, 0}}},
        Case{"remove warp divergence", {{Technique::kBranchless, 0}}},
        Case{"avoid branches", {{Technique::kBranchless, 0}}},
        Case{"avoid shared memory bank conflicts", {{Technique::kPad, 0}}},
        Case{"pad the shared tile by one column", {{Technique::kPad, 0}}},
        Case{"fast-math intrinsics", {{Technique::kFast, 0}}}, Case{"accumulate in FP16", {{Technique::kHalf, 0}}},
        Case{"half2 arithmetic", {{Technique::kHalf, 0}}},
        Case{"privatize the histogram in shared memory", {{Technique::kPrivatize, 0}}},
        Case{"double-buffer the tiles", {{Technique::kPrefetch, 0}, {Technique::kTile, 0}}},
        Case{"prefetch the next tile", {{Technique::kPrefetch, 0}}}));

INSTANTIATE_TEST_SUITE_P(
    Several, Understanding,
    testing::Values(
        Case{"tile in shared memory 32, then vectorize loads 4", {{Technique::kTile, 32}, {Technique::kVectorize, 4}}},
        Case{"tile 16 and unroll 8 and pad", {{Technique::kTile, 16}, {Technique::kUnroll, 8}, {Technique::kPad, 0}}},
        Case{"use 256 threads per block; unroll by 4", {{Technique::kBlock, 256}, {Technique::kUnroll, 4}}},
        Case{"Tile it. A tile of 32 would do.", {{Technique::kTile, 32}}},
        Case{"kernel: matmul; technique: register blocking 8; where: inner loop", {{Technique::kRegister, 8}}}));

INSTANTIATE_TEST_SUITE_P(Rejections, Understanding,
                         testing::Values(Case{"do not tile; vectorize", {{Technique::kVectorize, 0}}},
                                         Case{"fuse without unrolling", {{Technique::kFuse, 0}}},
                                         Case{"don't use half precision", {}}, Case{"never unroll", {}},
                                         Case{"use warp shuffles instead of shared memory", {{Technique::kShuffle, 0}}},
                                         Case{"no bank conflicts, please", {{Technique::kPad, 0}}}));

INSTANTIATE_TEST_SUITE_P(Nothing, Understanding,
                         testing::Values(Case{"", {}}, Case{"make it faster", {}}, Case{"42", {}},
                                         Case{"the the the", {}}, Case{"versatile fertile reptiles", {}},
                                         Case{"\xff\xfe\x00garbage", {}}));

TEST(Suggestions, AreShortFixedAndUnderstoodAsOneTechniqueEach) {
  std::set<std::string> seen;
  std::set<Technique> techniques;
  for (const std::string& suggestion : Suggestions()) {
    EXPECT_TRUE(seen.insert(suggestion).second) << suggestion;
    const std::vector<Ask> asks = Understand(suggestion);
    ASSERT_EQ(asks.size(), 1u) << suggestion;
    techniques.insert(asks[0].technique);
    EXPECT_LE(std::count(suggestion.begin(), suggestion.end(), ' '), 5) << suggestion;
    const size_t last = suggestion.find_last_of(' ');
    const bool ends_in_number = suggestion.find_first_not_of("0123456789", last + 1) == std::string::npos;
    EXPECT_EQ(asks[0].value, ends_in_number ? std::stoi(suggestion.substr(last + 1)) : 0) << suggestion;
  }
  EXPECT_GE(techniques.size(), 16u);
  EXPECT_EQ(Suggestions().front(), "tile in shared memory 16");
}

TEST(Understand, HugeTextsAndNumbersAreHarmless) {
  EXPECT_TRUE(Understand(std::string(1 << 20, 'x')).empty());
  EXPECT_EQ(Understand("tile 99999999999999999999").at(0).value, 0);
  EXPECT_EQ(Understand("tile 9999").at(0).value, 4096);
  std::string many;
  for (int i = 0; i < 10000; ++i) many += "tile ";
  EXPECT_EQ(Understand(many).size(), 1u);
}

TEST(Implement, ATextWithoutATechniqueIsUnclear) {
  const Answer answer = Implement("", "make it go fast");
  EXPECT_EQ(answer.status, Status::kUnclear);
  EXPECT_TRUE(answer.source.empty());
  EXPECT_NE(answer.message.find("names no technique"), std::string::npos);
}

// The changes that evaluator_sim's findings name (simt/time/advice.cc) are suggestions.
TEST(Understand, TheChangesThatFindingsName) {
  const std::pair<const char*, Technique> advice[] = {
      {"Let neighbouring threads read neighbouring 16 bytes of x: about 3.1 times as fast", Technique::kCoalesce},
      {"Let neighbouring threads access neighbouring 16 bytes of x and y", Technique::kCoalesce},
      {"Add up within each warp, for one atomic a warp instead of one a thread", Technique::kPrivatize},
      {"Add up within each block before atomics to global memory", Technique::kPrivatize},
      {"Give each block more elements, for fewer atomics", Technique::kPrivatize},
      {"Lay out shared memory without bank conflicts", Technique::kPad},
  };
  for (const auto& [text, technique] : advice) {
    const std::vector<Ask> asks = Understand(text);
    ASSERT_FALSE(asks.empty()) << text;
    EXPECT_EQ(asks[0].technique, technique) << text;
  }
}

}  // namespace
}  // namespace kgrpo::coder_offline
