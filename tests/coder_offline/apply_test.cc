// Effects of a suggestion on a kernel: composition, parameters, reasons for refusing, sources of other styles. Tests
// coder.cc and the rules of the skeletons.
#include "coder_offline/coder.h"
#include "shipped.h"
#include "test.h"

namespace kgrpo::coder_offline {
namespace {

std::string Applied(std::string source, const std::vector<std::string>& suggestions) {
  for (const std::string& suggestion : suggestions) {
    const Answer answer = Implement(source, suggestion);
    EXPECT_EQ(answer.status, Status::kOk) << suggestion << ": " << answer.message;
    source = answer.source;
  }
  return source;
}

TEST(Apply, SaysWhatWasDone) {
  const Answer answer = Implement(Reference("matmul"), "tile in shared memory 32");
  EXPECT_EQ(answer.status, Status::kOk);
  EXPECT_EQ(answer.summary, "shared-memory tiling, tile 32");
  EXPECT_EQ(answer.message, "");
  EXPECT_EQ(ScheduleLineOf(answer.source), "// schedule: matmul coalesce tile=32");
}

// References that `problems import kernelbench` writes, for problems of a kind that is known here.
TEST(Apply, ReadsTheReferencesThatAnImportWrites) {
  const std::string folder = KGRPO_BINARY_DIR "/test_data/import_kernelbench/offline_style/";
  const auto applied = [&](const std::string& file, const std::string& suggestion) {
    const Answer answer = Implement(ReadText(folder + file), suggestion);
    EXPECT_EQ(answer.status, Status::kOk) << file << ": " << answer.message;
    return ScheduleLineOf(answer.source);
  };
  EXPECT_EQ(applied("021_row_softmax.cu", "one block per row"), "// schedule: softmax cooperate shuffle");
  EXPECT_EQ(applied("022_row_distances.cu", "vectorize loads 4"), "// schedule: rows shuffle vectorize=4");
  EXPECT_EQ(applied("023_prefix_products.cu", "one block per row"), "// schedule: scan cooperate shuffle");
  EXPECT_EQ(applied("024_hinge_loss.cu", "grid stride loop"), "// schedule: reduction grid_stride");
}

TEST(Apply, TheSameTechniquesGiveTheSameTextInAnyOrder) {
  std::vector<std::string> suggestions = {"single pass", "one block per row", "vectorize loads 4",
                                          "read only restrict"};
  const std::string expected = Applied(Reference("softmax_long"), suggestions);
  std::sort(suggestions.begin(), suggestions.end());
  do {
    EXPECT_EQ(Applied(Reference("softmax_long"), suggestions), expected);
  } while (std::next_permutation(suggestions.begin(), suggestions.end()));
}

TEST(Apply, SeveralTechniquesInOneTextEqualOneAfterTheOther) {
  // Register blocking needs the tile, whichever comes first in the text.
  const std::string expected = Applied(Reference("matmul"), {"tile 16", "register blocking 4", "pad"});
  const Answer answer = Implement(Reference("matmul"), "pad, use register blocking 4 and tile 16");
  ASSERT_EQ(answer.status, Status::kOk) << answer.message;
  EXPECT_EQ(answer.source, expected);
}

TEST(Apply, WhatDoesNotApplyInATextOfSeveralIsNamedAndLeftOut) {
  const Answer answer = Implement(Reference("transpose"), "tile 32 and fuse the kernels");
  ASSERT_EQ(answer.status, Status::kOk);
  EXPECT_EQ(answer.source, Applied(Reference("transpose"), {"tile 32"}));
  EXPECT_THAT(answer.summary, HasSubstr("shared-memory tiling, tile 32"));
  EXPECT_THAT(answer.summary, HasSubstr("fusion is not applicable: there is one kernel only"));
}

TEST(Apply, TheSameAgainIsNotApplicableAndAnotherValueIs) {
  const std::string tiled = Applied(Reference("matmul"), {"tile 32"});
  for (const char* again : {"tile 32", "tile in shared memory", "use a 30x30 tile"}) {
    const Answer answer = Implement(tiled, again);
    EXPECT_EQ(answer.status, Status::kNotApplicable) << again;
    EXPECT_THAT(answer.message, HasSubstr("already applied: shared-memory tiling, tile 32"));
    EXPECT_TRUE(answer.source.empty());
  }
  EXPECT_EQ(Applied(tiled, {"tile 16"}), Applied(Reference("matmul"), {"tile 16"}));
}

TEST(Apply, AValueThatIsNotWrittenBecomesTheNearest) {
  const Answer answer = Implement(Reference("matmul"), "tile of 24");
  EXPECT_EQ(answer.summary, "shared-memory tiling, tile 16 (the nearest to 24)");
}

struct Refusal {
  const char* problem;
  const char* suggestion;
  const char* reason;
};

TEST(Apply, RefusesWithAReasonOfTheKernelsNature) {
  const Refusal refusals[] = {
      {"bias_gelu_residual", "tile in shared memory", "every element is used once"},
      {"bias_gelu_residual", "coalesce", "neighbouring threads read neighbouring elements already"},
      {"bias_gelu_residual", "unroll 4", "no loop to unroll"},
      {"harmonic_sum", "fuse", "one kernel only"},
      {"matmul", "register blocking 4", "there is no shared-memory tile yet"},
      {"matmul", "warp shuffle reduction", "threads have nothing to combine"},
      {"matmul", "block size 512", "the block is the tile of outputs"},
      {"transpose", "vectorize loads 4", "a vector can't be stored whole"},
      {"dot_product", "tile", "every element is used once"},
      {"matvec", "coalesce", "access becomes coalesced when a block or a warp shares the row"},
      {"softmax_short", "tile", "give a block one row first"},
      {"prefix_sum", "half precision", "lose most of its digits"},
      {"level_histogram", "warp shuffle", "different bins"},
      {"max_pool", "vectorize", "would not be aligned"},
      {"max_pool", "pad", "there is no shared-memory tile yet"},
      {"embedding_lookup", "tile", "known at run time only"},
      {"attention", "coalesce", "which is one access"},
      {"transpose", "fast intrinsics", "no function that has a fast intrinsic"},
  };
  for (const Refusal& refusal : refusals) {
    const Answer answer = Implement(Reference(refusal.problem), refusal.suggestion);
    EXPECT_EQ(answer.status, Status::kNotApplicable) << refusal.problem << ", " << refusal.suggestion;
    EXPECT_THAT(answer.message, HasSubstr("not applicable: ")) << refusal.problem << ", " << refusal.suggestion;
    EXPECT_THAT(answer.message, HasSubstr(refusal.reason)) << refusal.problem << ", " << refusal.suggestion;
  }
}

TEST(Apply, AKernelOfOnesOwnInTheDocumentedStyleWorks) {
  const std::string own = R"(// Scaled difference.
// schedule: map
__device__ float stage_difference(float first, float second, float gain) { return gain * (first - second); }
// kernels: mine
__global__ void whatever(const float* first, const float* second, float* result, float gain, int n) {}
extern "C" void launch(const float* first, const float* second, float* result, float gain, int n) {
  whatever<<<(n + 255) / 256, 256>>>(first, second, result, gain, n);
}
)";
  const Answer answer = Implement(own, "vectorize loads 4");
  ASSERT_EQ(answer.status, Status::kOk) << answer.message;
  EXPECT_THAT(answer.source, HasSubstr("stage_difference(first_vector.w, second_vector.w, gain)"));
  EXPECT_THAT(answer.source, HasSubstr("// schedule: map vectorize=4\n"));
}

TEST(Apply, SaysWhyAKernelCantBeRead) {
  const std::string good = Reference("matmul");
  const auto without = [&](const std::string& text, const std::string& instead) {
    std::string changed = good;
    const size_t at = changed.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    return changed.replace(at, text.size(), instead);
  };
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "no __global__ function"},
      {"int main() {}", "no __global__ function"},
      {"// schedule: matmul\n", "no line '// kernels: ...'"},
      {without("// schedule: matmul coalesce", "// schedule:"), "names no kind"},
      {without("// schedule: matmul coalesce", "// schedule: sorting"),
       "of kind 'sorting', which this coder does not know"},
      {without("coalesce\n", "coalesce warp=4\n"), "'warp', which a kernel of kind 'matmul' does not have"},
      {without("coalesce\n", "coalesce tile=17\n"), "'tile=17', a value that is not supported"},
      {without("coalesce\n", "tile=\n"), "'tile=', which is neither a flag nor name=number"},
      {without("coalesce\n", "tile=16 tile=32\n"), "'tile' twice"},
      {without("b[k][n]", "b[k]"), "a layout line with b[k][n] or b[n][k]"},
      {without("b[k][n]", "b[k"), "not of the form name[axis][axis]"},
      {without("int m, int n, int k) {\n  const dim3", "int m, int n, int size) {\n  const dim3"),
       "a launch parameter k"},
      {without("extern \"C\" void launch", "void launch"), "no extern \"C\" void launch"},
      {without("const float* b, float* out, int m, int n, int k) {\n  const dim3",
               "float* b, float* out, int m, int n, int k) {\n  const dim3"),
       "exactly one output"},
  };
  for (const auto& [source, reason] : cases) {
    const Answer answer = Implement(source, "tile 32");
    EXPECT_EQ(answer.status, Status::kNotApplicable) << reason;
    EXPECT_THAT(answer.message, HasSubstr("can't read the kernel")) << reason;
    EXPECT_THAT(answer.message, HasSubstr(reason));
  }
}

}  // namespace
}  // namespace kgrpo::coder_offline
