// The kernels of each instruction set that this processor has: correct numbers, and a row's bits do not depend on the
// other rows.
#include "policy_qwen/model/row_kernels.h"

#include <bit>
#include <tuple>

#include "policy_qwen/model/random.h"
#include "test.h"

namespace kgrpo::policy {
namespace {

std::vector<const RowKernels*> Available() {
  std::vector<const RowKernels*> all = {&kGenericRowKernels};
#ifdef KGRPO_X86_ROW_KERNELS
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&kAvx2RowKernels);
  if (BestRowKernels().name == kAvx512RowKernels.name) all.push_back(&kAvx512RowKernels);
#endif
  return all;
}

class RowKernelsTest : public ::testing::TestWithParam<const RowKernels*> {};

std::vector<float> Random(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(RandomNormal(seed, i));
  return values;
}

// bfloat16 by cutting, and the numbers that are left.
std::vector<uint16_t> Cut(std::vector<float>& values) {
  std::vector<uint16_t> cut;
  for (float& value : values) {
    cut.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    value = std::bit_cast<float>(static_cast<uint32_t>(cut.back()) << 16);
  }
  return cut;
}

TEST_P(RowKernelsTest, ProductsAreDotProductsWhateverTheOtherRows) {
  for (const auto& [rows, inputs, outputs] : {std::tuple{31, 70, 131}, {1, 5, 3}, {9, 1536, 66}}) {
    const std::vector<float> x = Random(rows * inputs, 1);
    std::vector<float> weight = Random(outputs * inputs, 2);
    const std::vector<uint16_t> cut = Cut(weight);
    for (const Format format : {Format::kFloat32, Format::kBfloat16}) {
      const void* data = format == Format::kFloat32 ? static_cast<const void*>(weight.data()) : cut.data();
      std::vector<float> all(static_cast<size_t>(rows * outputs)), one(static_cast<size_t>(outputs));
      GetParam()->products(x.data(), rows, inputs, data, format, 0, outputs, outputs, all.data());
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t begin = 0; begin < outputs; begin += 7) {
          GetParam()->products(x.data() + i * inputs, 1, inputs, data, format, begin,
                               std::min<int64_t>(begin + 7, outputs), outputs, one.data());
        }
        for (int64_t j = 0; j < outputs; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < inputs; ++k) {
            sum += static_cast<double>(x[static_cast<size_t>(i * inputs + k)]) *
                   static_cast<double>(weight[static_cast<size_t>(j * inputs + k)]);
          }
          const float value = all[static_cast<size_t>(i * outputs + j)];
          ASSERT_NEAR(value, sum, 1e-6 * static_cast<double>(inputs)) << i << ", " << j;
          ASSERT_EQ(value, one[static_cast<size_t>(j)]) << i << ", " << j;
        }
      }
    }
  }
}

TEST_P(RowKernelsTest, WeightedSumsAreThose) {
  const int64_t rows = 3, count = 37, size = 101;
  const std::vector<float> weights = Random(rows * count, 3);
  std::vector<float> values = Random(count * size, 4);
  const std::vector<uint16_t> cut = Cut(values);
  for (const Format format : {Format::kFloat32, Format::kBfloat16}) {
    std::vector<float> out(static_cast<size_t>(rows * size));
    GetParam()->weighted_sums(weights.data(), rows, count,
                              format == Format::kFloat32 ? static_cast<const void*>(values.data()) : cut.data(), format,
                              size, out.data());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t d = 0; d < size; ++d) {
        double sum = 0;
        for (int64_t j = 0; j < count; ++j) {
          sum += static_cast<double>(weights[static_cast<size_t>(i * count + j)]) *
                 static_cast<double>(values[static_cast<size_t>(j * size + d)]);
        }
        ASSERT_NEAR(out[static_cast<size_t>(i * size + d)], sum, 1e-4);
      }
    }
  }
}

TEST_P(RowKernelsTest, FunctionsOfSingleNumbers) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0, -infinity, -200, -87, -1e-6F, 3, -3};
  for (int i = 0; i < 3000; ++i) x.push_back(-90 + 0.03F * static_cast<float>(i));
  std::vector<float> e(x.size());
  double sum = 0;
  for (const float value : x) sum += std::exp(static_cast<double>(value) - 3);
  EXPECT_NEAR(GetParam()->exponentials(x.data(), static_cast<int64_t>(x.size()), 3, e.data()), sum, 1e-5 * sum);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i] - 3.0F));
    EXPECT_NEAR(e[i], exact, x[i] - 3 < -87.3F ? 2e-38 : 3e-7 * exact) << x[i];
  }
  EXPECT_EQ(e[1], 0) << "what cannot be drawn";
  EXPECT_EQ(GetParam()->maximum(x.data(), static_cast<int64_t>(x.size())), 3);
  const std::vector<float> y = Random(45, 5);
  double squares = 0;
  for (const float value : y) squares += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(GetParam()->sum_of_squares(y.data(), 45), squares, 1e-5 * squares);
  std::vector<float> silu = y;
  silu[7] = -100;
  silu[44] = 100;
  GetParam()->silu(silu.data(), 45);
  for (size_t i = 0; i < silu.size(); ++i) {
    const double from = i == 7 ? -100 : i == 44 ? 100 : static_cast<double>(y[i]);
    EXPECT_NEAR(silu[i], from / (1 + std::exp(-from)), 1e-6 * std::max(1.0, from)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RowKernelsTest, ::testing::ValuesIn(Available()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace kgrpo::policy
