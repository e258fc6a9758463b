// The kernels of training on a GPU compute their formulas, in both dtypes and at sizes that are no multiple of a
// vector; on the PTX interpreter, with its checks for races, bounds and unset memory.
#include "policy_qwen/gpu/kernels.h"

#include <bit>

#include "fixtures/interpreted_gpu.h"
#include "test.h"

namespace kgrpo::policy {
namespace {

uint16_t ToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
float FromBfloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// An array of the dtype under test, on the interpreted GPU.
class Array {
 public:
  Array(InterpretedGpu& gpu, Element type, size_t count)
      : type_(type), bytes_(gpu, count * (type == Element::kBfloat16 ? 2 : 4)), count_(count) {}
  Array(InterpretedGpu& gpu, Element type, const std::vector<float>& values) : Array(gpu, type, values.size()) {
    std::vector<uint8_t> bytes(count_ * size());
    for (size_t i = 0; i < count_; ++i) {
      if (type == Element::kBfloat16) {
        const uint16_t narrow = ToBfloat16(values[i]);
        std::memcpy(bytes.data() + i * sizeof narrow, &narrow, sizeof narrow);
      } else {
        std::memcpy(bytes.data() + i * sizeof values[i], &values[i], sizeof values[i]);
      }
    }
    bytes_.Write(bytes);
  }

  void* data() const { return bytes_.data(); }
  size_t size() const { return type_ == Element::kBfloat16 ? 2 : 4; }
  bool AllWritten() const { return bytes_.AllWritten(); }

  // As the kernels see them: rounded to the dtype.
  std::vector<double> Values() const {
    const std::vector<uint8_t> bytes = bytes_.Read();
    std::vector<double> values(count_);
    for (size_t i = 0; i < count_; ++i) {
      if (type_ == Element::kBfloat16) {
        uint16_t narrow;
        std::memcpy(&narrow, bytes.data() + i * sizeof narrow, sizeof narrow);
        values[i] = FromBfloat16(narrow);
      } else {
        float wide;
        std::memcpy(&wide, bytes.data() + i * sizeof wide, sizeof wide);
        values[i] = wide;
      }
    }
    return values;
  }

 private:
  Element type_;
  GpuArray<uint8_t> bytes_;
  size_t count_;
};

constexpr GpuStream kStream = {1, nullptr};

struct Case {
  Element type;
  bool wide;  // sizes that are multiples of 16 bytes
};

class GpuKernelsTest : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { shared_gpu = std::make_unique<InterpretedGpu>(KGRPO_GPU_LIBRARY); }
  static void TearDownTestSuite() { shared_gpu.reset(); }
  GpuKernelsTest()
      : gpu_(*shared_gpu),
        kernels_(*gpu_.Symbol<const GpuKernels* (*)()>(GpuKernels::kEntry)()),
        launches_before_(gpu_.launches()) {}
  void TearDown() override {
    gpu_.BeCard({9, 0});
    EXPECT_EQ(gpu_.TakeFindings(), "");
    EXPECT_GT(gpu_.launches(), launches_before_);
    EXPECT_EQ(gpu_.devices(), std::set<int>{kStream.device}) << "the stream's, not the one that is current";
  }

  Element type() const { return GetParam().type; }
  int64_t Size(int64_t wide, int64_t narrow) const { return GetParam().wide ? wide : narrow; }
  // Relative error of one rounding to the dtype.
  double epsilon() const { return type() == Element::kBfloat16 ? 1.0 / 256 : 2e-6; }

  std::vector<float> Random(int64_t count, float scale = 1) {
    std::vector<float> values(static_cast<size_t>(count));
    std::normal_distribution<float> normal(0, scale);
    for (float& value : values) value = normal(random_);
    return values;
  }
  Array OnGpu(const std::vector<float>& values) { return {gpu_, type(), values}; }
  Array OnGpu(int64_t count) { return {gpu_, type(), static_cast<size_t>(count)}; }

  // Element by element within `roundings` of the dtype, relative to the element or to `scale`.
  void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected, double roundings,
                  double scale) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], roundings * epsilon() * (std::abs(expected[i]) + scale)) << i;
    }
  }

  static inline std::unique_ptr<InterpretedGpu> shared_gpu;  // reading the library takes longer than most tests
  InterpretedGpu& gpu_;
  const GpuKernels& kernels_;
  const uint64_t launches_before_;
  std::mt19937 random_{7};
};

TEST_P(GpuKernelsTest, RmsNormAndItsDerivatives) {
  const int64_t rows = 37, columns = Size(96, 75);
  const float norm_epsilon = 1e-6F;
  const Array x = OnGpu(Random(rows * columns)), weight = OnGpu(Random(columns)), dy = OnGpu(Random(rows * columns));
  const Array y = OnGpu(rows * columns);
  GpuArray<float> scale(gpu_, static_cast<size_t>(rows));
  EXPECT_EQ(kernels_.rms_norm(type(), x.data(), columns, weight.data(), norm_epsilon, rows, columns, y.data(),
                              scale.data(), kStream),
            nullptr);
  Array dx = OnGpu(Random(rows * columns));  // also what is added
  const std::vector<double> add = dx.Values();
  EXPECT_EQ(kernels_.rms_norm_backward(type(), dy.data(), x.data(), columns, weight.data(), scale.data(), dx.data(),
                                       rows, columns, dx.data(), kStream),
            nullptr);
  GpuArray<float> partial(gpu_, static_cast<size_t>(kNormSlices * columns));
  GpuArray<float> gradient(gpu_, std::vector<float>(static_cast<size_t>(columns), 0.5F));
  EXPECT_EQ(kernels_.rms_norm_weight_gradient(type(), dy.data(), x.data(), columns, scale.data(), rows, columns,
                                              partial.data(), gradient.data(), kStream),
            nullptr);

  const auto xs = x.Values(), ws = weight.Values(), dys = dy.Values();
  std::vector<double> ys(xs.size()), dxs(xs.size()), dws(ws.size(), 0.5);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const size_t n = ws.size(), first = row * n;
    double squares = 0, mean = 0;
    for (size_t i = 0; i < n; ++i) squares += xs[first + i] * xs[first + i];
    const double r = 1 / std::sqrt(squares / static_cast<double>(n) + norm_epsilon);
    for (size_t i = 0; i < n; ++i) mean += dys[first + i] * ws[i] * xs[first + i] * r / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) {
      ys[first + i] = xs[first + i] * r * ws[i];
      dxs[first + i] = add[first + i] + r * (dys[first + i] * ws[i] - xs[first + i] * r * mean);
      dws[i] += dys[first + i] * xs[first + i] * r;
    }
  }
  ExpectNear(y.Values(), ys, 2, 0.01);
  ExpectNear(dx.Values(), dxs, 1, 0.1);
  const std::vector<float> found = gradient.Read();
  for (size_t i = 0; i < dws.size(); ++i) ASSERT_NEAR(found[i], dws[i], 1e-5 * (1 + std::abs(dws[i]))) << i;
}

// Heads that lie inside longer rows, turned in place; and back again.
TEST_P(GpuKernelsTest, RotateTurnsPairsOfEachHead) {
  const int64_t rows = 9, heads = 3, size = Size(32, 20), half = size / 2, stride = (heads + 2) * size;
  const std::vector<float> angles = Random(rows * half);
  std::vector<float> cos(angles.size()), sin(angles.size());
  for (size_t i = 0; i < angles.size(); ++i) {
    cos[i] = std::cos(angles[i]);
    sin[i] = std::sin(angles[i]);
  }
  GpuArray<float> cosines(gpu_, cos), sines(gpu_, sin);
  Array x = OnGpu(Random(rows * stride));
  const std::vector<double> before = x.Values();
  const Array back = OnGpu(rows * heads * size);
  EXPECT_EQ(kernels_.rotate(type(), x.data(), stride, x.data(), stride, rows, heads, size, cosines.data(), sines.data(),
                            1, kStream),
            nullptr);
  EXPECT_EQ(kernels_.rotate(type(), x.data(), stride, back.data(), heads * size, rows, heads, size, cosines.data(),
                            sines.data(), -1, kStream),
            nullptr);
  std::vector<double> expected = before, unrotated;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < half; ++i) {
        const auto first = static_cast<size_t>(row * stride + head * size + i),
                   second = first + static_cast<size_t>(half);
        const double c = cos[static_cast<size_t>(row * half + i)], s = sin[static_cast<size_t>(row * half + i)];
        expected[first] = before[first] * c - before[second] * s;
        expected[second] = before[second] * c + before[first] * s;
      }
    }
    const auto begin = before.begin() + row * stride;
    unrotated.insert(unrotated.end(), begin, begin + heads * size);
  }
  ExpectNear(x.Values(), expected, 1, 0.01);
  ExpectNear(back.Values(), unrotated, 3, 1);
}

TEST_P(GpuKernelsTest, SwiGluAndItsDerivative) {
  const int64_t rows = 13, columns = Size(40, 27);
  Array x = OnGpu(Random(rows * 2 * columns, 2));
  const Array dy = OnGpu(Random(rows * columns)), y = OnGpu(rows * columns);
  const auto xs = x.Values(), dys = dy.Values();
  EXPECT_EQ(kernels_.swiglu(type(), x.data(), rows, columns, y.data(), kStream), nullptr);
  EXPECT_EQ(kernels_.swiglu_backward(type(), dy.data(), x.data(), rows, columns, x.data(), kStream), nullptr);
  std::vector<double> ys(dys.size()), dxs(xs.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) {
      const auto gate = static_cast<size_t>(row * 2 * columns + i), up = gate + static_cast<size_t>(columns);
      const auto out = static_cast<size_t>(row * columns + i);
      const double s = 1 / (1 + std::exp(-xs[gate]));
      ys[out] = xs[gate] * s * xs[up];
      dxs[gate] = dys[out] * xs[up] * s * (1 + xs[gate] * (1 - s));
      dxs[up] = dys[out] * xs[gate] * s;
    }
  }
  ExpectNear(y.Values(), ys, 2, 0.01);
  ExpectNear(x.Values(), dxs, 1, 0.1);
}

TEST_P(GpuKernelsTest, TokenLogprobsAndTheirDerivative) {
  const int64_t rows = 5, vocabulary = Size(9000, 4999);
  const double temperature = 0.7;
  Array logits = OnGpu(Random(rows * vocabulary, 4));
  const auto z = logits.Values();
  const std::vector<int64_t> targets = {0, vocabulary - 1, 17, 2048, 513};
  const std::vector<float> d = {1, -2, 0.5F, 0, 3};
  GpuArray<int64_t> target_ids(gpu_, targets);
  GpuArray<float> logprobs(gpu_, 5), normalizers(gpu_, 5), entropies(gpu_, 5), d_logprobs(gpu_, d);
  EXPECT_EQ(kernels_.token_logprobs(type(), logits.data(), target_ids.data(), static_cast<float>(temperature), rows,
                                    vocabulary, logprobs.data(), normalizers.data(), entropies.data(), kStream),
            nullptr);
  EXPECT_EQ(
      kernels_.token_logprobs_backward(type(), logits.data(), target_ids.data(), normalizers.data(), d_logprobs.data(),
                                       static_cast<float>(temperature), rows, vocabulary, kStream),
      nullptr);
  const auto found_logprobs = logprobs.Read(), found_normalizers = normalizers.Read(),
             found_entropies = entropies.Read();
  std::vector<double> d_logits(z.size());
  for (size_t row = 0; row < 5; ++row) {
    const auto n = static_cast<size_t>(vocabulary), first = row * n;
    double sum = 0, entropy = 0;
    for (size_t i = 0; i < n; ++i) sum += std::exp(z[first + i] / temperature);
    const double normalizer = std::log(sum);
    for (size_t i = 0; i < n; ++i) {
      const double logprob = z[first + i] / temperature - normalizer, p = std::exp(logprob);
      entropy -= p * logprob;
      d_logits[first + i] = d[row] / temperature * ((static_cast<int64_t>(i) == targets[row] ? 1 : 0) - p);
    }
    EXPECT_NEAR(found_normalizers[row], normalizer, 1e-4) << row;
    EXPECT_NEAR(found_logprobs[row], z[first + static_cast<size_t>(targets[row])] / temperature - normalizer, 1e-4);
    EXPECT_NEAR(found_entropies[row], entropy, 1e-4) << row;
  }
  ExpectNear(logits.Values(), d_logits, type() == Element::kBfloat16 ? 1 : 50, 1e-4);
}

// A row whose logits are all alike, one that is nearly certain, and one with logits that are -inf.
TEST_P(GpuKernelsTest, TokenLogprobsOfExtremeRows) {
  const int64_t vocabulary = Size(1024, 1003);
  const auto n = static_cast<size_t>(vocabulary);
  std::vector<float> z(3 * n, 2.0F);
  std::fill(z.begin() + static_cast<ptrdiff_t>(n), z.begin() + static_cast<ptrdiff_t>(2 * n), -80.0F);
  z[n + 5] = 80;
  std::fill(z.begin() + static_cast<ptrdiff_t>(2 * n), z.end(), -INFINITY);
  z[2 * n + 1] = z[2 * n + 2] = 0;
  const Array logits = OnGpu(z);
  GpuArray<int64_t> targets(gpu_, std::vector<int64_t>{3, 5, 2});
  GpuArray<float> logprobs(gpu_, 3), normalizers(gpu_, 3), entropies(gpu_, 3);
  EXPECT_EQ(kernels_.token_logprobs(type(), logits.data(), targets.data(), 1, 3, vocabulary, logprobs.data(),
                                    normalizers.data(), entropies.data(), kStream),
            nullptr);
  const auto found = logprobs.Read(), found_entropies = entropies.Read();
  EXPECT_NEAR(found[0], -std::log(static_cast<double>(vocabulary)), 1e-5);
  EXPECT_NEAR(found_entropies[0], std::log(static_cast<double>(vocabulary)), 1e-5);
  EXPECT_NEAR(found[1], 0, 1e-6);
  EXPECT_NEAR(found_entropies[1], 0, 1e-5);
  EXPECT_NEAR(found[2], -std::log(2.0), 1e-6);
  EXPECT_NEAR(found_entropies[2], std::log(2.0), 1e-6);
}

// Every launch of more rows than a grid's y and z may count is one that a GPU takes.
TEST_P(GpuKernelsTest, AnyNumberOfRows) {
  const int64_t rows = 70'000, columns = Size(96, 75), vocabulary = Size(8192, 8191);
  void* const x = OnGpu(1).data();  // nothing runs: the launches become a graph
  GpuArray<float> floats(gpu_, 1);
  GpuArray<int64_t> targets(gpu_, 1);
  float* const f = floats.data();
  gpu_.BeginGraph();
  EXPECT_EQ(kernels_.rms_norm(type(), x, columns, x, 0, rows, columns, x, f, kStream), nullptr);
  EXPECT_EQ(kernels_.rms_norm_backward(type(), x, x, columns, x, f, x, rows, columns, x, kStream), nullptr);
  EXPECT_EQ(kernels_.rms_norm_weight_gradient(type(), x, x, columns, f, rows, columns, f, f, kStream), nullptr);
  EXPECT_EQ(kernels_.rotate(type(), x, columns, x, columns, rows, 3, 32, f, f, 1, kStream), nullptr);
  EXPECT_EQ(kernels_.swiglu(type(), x, rows, columns, x, kStream), nullptr);
  EXPECT_EQ(kernels_.swiglu_backward(type(), x, x, rows, columns, x, kStream), nullptr);
  EXPECT_EQ(kernels_.token_logprobs(type(), x, targets.data(), 1, rows, vocabulary, f, f, f, kStream), nullptr);
  EXPECT_EQ(kernels_.token_logprobs_backward(type(), x, targets.data(), f, f, 1, rows, vocabulary, kStream), nullptr);
  EXPECT_EQ(gpu_.EndGraph().size(), 9U);
}

// In Launch of launch.cuh, by which every entry of the table is made. The next launch is not blamed.
TEST_P(GpuKernelsTest, EveryKernelReportsARefusedLaunchOnceWithItsName) {
  const int64_t rows = int64_t{1} << 40;
  void* const x = OnGpu(1).data();
  GpuArray<float> floats(gpu_, 1);
  float* const f = floats.data();
  const HeadShape heads = {2, 1, 64};
  const LayerCache cache = {};
  gpu_.BeginGraph();
  const std::pair<std::string, std::string> refused[] = {
      // copies: a text is valid until the next call
      {kernels_.rms_norm(type(), x, 64, x, 0, rows, 64, x, f, kStream), "rms_norm"},
      {kernels_.rms_norm_backward(type(), x, x, 64, x, f, x, rows, 64, x, kStream), "rms_norm_backward"},
      {kernels_.rms_norm_weight_gradient(type(), x, x, 64, f, 8, rows, f, f, kStream), "rms_norm_weight_gradient"},
      {kernels_.rotate(type(), x, 64, x, 64, rows, 3, 32, f, f, 1, kStream), "rotate"},
      {kernels_.swiglu(type(), x, rows, 64, x, kStream), "swiglu"},
      {kernels_.swiglu_backward(type(), x, x, rows, 64, x, kStream), "swiglu_backward"},
      {kernels_.token_logprobs(type(), x, nullptr, 1, rows, 64, f, f, f, kStream), "token_logprobs"},
      {kernels_.token_logprobs_backward(type(), x, nullptr, f, f, 1, rows, 64, kStream), "token_logprobs_backward"},
      {kernels_.embed(type(), nullptr, nullptr, x, rows, 64, x, nullptr, kStream), "embed"},
      {kernels_.add_norm(type(), f, 1, x, x, x, 0, rows, 64, nullptr, rows, x, kStream), "add_norm"},
      {kernels_.product(type(), ProductMode::kPlain, x, x, x, rows, 64, 64, x, kStream), "product"},
      {kernels_.finish_query_key_value(type(), {f, 1, x, x, x, 0, x, x}, nullptr, rows, heads, cache, x, kStream),
       "finish_query_key_value"},
      {kernels_.gather(type(), cache, nullptr, nullptr, rows, 16, heads, x, x, kStream), "gather"},
      {kernels_.attention(type(), {f, 1, x, x, x, 0, x, x}, cache, nullptr, rows, heads, 1, f, f, nullptr, x, kStream),
       "attention"},
      {kernels_.sample(type(), x, rows, 64, nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, f, 4, kStream),
       "sample"}};
  EXPECT_EQ(kernels_.swiglu(type(), x, 1, 1, x, kStream), nullptr);
  EXPECT_NE(kernels_.swiglu(type(), x, 8, 8, x, {7, nullptr}), nullptr) << "there is no such device";
  EXPECT_EQ(gpu_.EndGraph().size(), 1U);
  // Besides its size, the table has check_card and product_splits.
  EXPECT_EQ(std::size(refused) + 2, sizeof(GpuKernels) / sizeof(void*) - 1);
  for (const auto& [failure, name] : refused) EXPECT_EQ(failure, name + ": invalid configuration argument");
}

TEST_P(GpuKernelsTest, CardIsAskedForItsCode) {
  gpu_.BeginGraph();
  EXPECT_EQ(kernels_.check_card(1), nullptr);
  gpu_.BeCard({7, 5, 209});
  EXPECT_STREQ(kernels_.check_card(1),
               "compute capability 7.5: no kernel image is available for execution on the device");
  gpu_.BeCard({12, 0});  // newer than the machine code: the driver compiles the PTX
  EXPECT_EQ(kernels_.check_card(1), nullptr);
  EXPECT_EQ(kernels_.swiglu(type(), OnGpu(1).data(), 1, 1, OnGpu(1).data(), kStream), nullptr);
  static_cast<void>(gpu_.EndGraph());
}

INSTANTIATE_TEST_SUITE_P(All, GpuKernelsTest,
                         ::testing::Values(Case{Element::kFloat32, true}, Case{Element::kFloat32, false},
                                           Case{Element::kBfloat16, true}, Case{Element::kBfloat16, false}),
                         [](const auto& info) {
                           return std::string(info.param.type == Element::kBfloat16 ? "Bfloat16" : "Float32") +
                                  (info.param.wide ? "" : "Narrow");
                         });

}  // namespace
}  // namespace kgrpo::policy
