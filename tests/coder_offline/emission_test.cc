// The text of a few kernels, compared with committed files that were compiled by nvcc and judged correct: any change of
// the skeletons' output fails here. To accept a change: run with KGRPO_UPDATE_GOLDEN=1, judge the kernels again, and
// run tests/golden/pack.py coder_offline build/test_data/coder_offline/golden.
#include "coder_offline/coder.h"
#include "shipped.h"
#include "test.h"

namespace kgrpo::coder_offline {
namespace {

struct Emission {
  const char* file;
  const char* problem;
  std::vector<std::string> suggestions;
};

void PrintTo(const Emission& emission, std::ostream* out) { *out << emission.file; }

class Golden : public testing::TestWithParam<Emission> {};

TEST_P(Golden, TextIsUnchanged) {
  std::string source = Reference(GetParam().problem);
  for (const std::string& suggestion : GetParam().suggestions) {
    const Answer answer = Implement(source, suggestion);
    ASSERT_EQ(answer.status, Status::kOk) << suggestion << ": " << answer.message;
    source = answer.source;
  }
  const auto path = std::filesystem::path(KGRPO_BINARY_DIR) / "test_data/coder_offline/golden" / GetParam().file;
  if (std::getenv("KGRPO_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << source;
  EXPECT_EQ(source, ReadText(path));
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, Golden,
    testing::Values(
        Emission{
            "bias_gelu_residual.cu", "bias_gelu_residual", {"fuse kernels", "vectorize loads 4", "fast intrinsics"}},
        Emission{
            "dot_product.cu", "dot_product", {"grid stride loop", "warp shuffle reduction", "single pass", "unroll 4"}},
        Emission{"softmax_long.cu", "softmax_long", {"one block per row", "single pass", "vectorize loads 4"}},
        Emission{"matmul.cu", "matmul", {"tile in shared memory 16", "register blocking 4", "prefetch next tile"}},
        Emission{"transpose.cu", "transpose", {"tile in shared memory 32", "pad shared memory", "register blocking 8"}},
        Emission{"prefix_sum.cu", "prefix_sum", {"one block per row", "vectorize loads 4"}},
        Emission{"level_histogram.cu", "level_histogram", {"privatize histogram", "grid stride loop"}},
        Emission{"max_pool.cu",
                 "max_pool",
                 {"coalesce by loop interchange", "tile in shared memory 32", "register blocking 4"}},
        Emission{"embedding_bag.cu", "embedding_bag", {"coalesce by loop interchange", "vectorize loads 4"}},
        Emission{"attention.cu", "attention", {"single pass", "tile in shared memory 32", "vectorize loads 4"}}),
    [](const testing::TestParamInfo<Emission>& info) { return std::string(info.param.problem); });

}  // namespace
}  // namespace kgrpo::coder_offline
