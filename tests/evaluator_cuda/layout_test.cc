#include "evaluator_cuda/layout.h"

#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

const evaluator::Problem& Affine() {
  static const evaluator::Problem problem =
      evaluator::LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
  return problem;
}

TEST(Layout, KeepsGuardsAndAlignment) {
  for (const evaluator::Bindings& size : Affine().hidden) {
    const Layout layout(Affine(), size, 4096);
    ASSERT_EQ(layout.tensors().size(), 3u);
    uint64_t end = 0;
    for (const Layout::Tensor& tensor : layout.tensors()) {
      EXPECT_EQ(tensor.offset % Layout::kAlignment, 0u);
      EXPECT_GE(tensor.offset, end + 4096);
      EXPECT_EQ(tensor.bytes, 4 * static_cast<uint64_t>(tensor.elements));
      end = tensor.offset + tensor.bytes;
    }
    EXPECT_GE(layout.bytes(), end + 4096);
    EXPECT_EQ(layout.bytes() % Layout::kAlignment, 0u);
  }
}

TEST(Layout, ArgumentsAreOffsetsAndScalarsAndThenExtents) {
  const Layout layout(Affine(), Affine().visible[0], 0);
  const std::vector<Plan::Value> values = layout.Arguments(2, 1 << 20);
  ASSERT_EQ(values.size(), 4u + 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(values[i].memory, 2u);
    EXPECT_EQ(values[i].value, (1u << 20) + layout.tensors()[i].offset);
  }
  int32_t n = 0;
  std::memcpy(&n, &values[3].value, sizeof n);
  EXPECT_EQ(values[3].memory, 0u);
  EXPECT_EQ(n, 1000);
  for (size_t i = 4; i < 7; ++i) {
    EXPECT_EQ(values[i].memory, 0u);
    EXPECT_EQ(values[i].value, 1000u);
  }
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
