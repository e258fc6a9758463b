// Odd values on the device: drawn as the host draws them, and compared as it compares. Skipped where there is no GPU.
#include "evaluator_cuda/device.h"
#include "judge/inputs/inputs.h"
#include "judge/problem/random.h"
#include "test.h"
#include "test_device.h"

namespace kgrpo::evaluator_cuda {
namespace {

using evaluator::Distribution;
using evaluator::DType;

constexpr int64_t kCount = 10000;
constexpr uint64_t kKey = 77;

class DrawGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_ = std::make_unique<Device>(TestDevice());
      device_->Start();
    } catch (const Error& error) {
      if (std::string(error.what()).find("needs an NVIDIA GPU") == std::string::npos) FAIL() << error.what();
      GTEST_SKIP() << error.what();
    }
    ASSERT_EQ(cudaMalloc(&got_, kCount * sizeof(double)), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&want_, kCount * sizeof(double)), cudaSuccess);
  }
  void TearDown() override {
    cudaFree(got_);
    cudaFree(want_);
  }

  void ExpectSameAsOnTheHost(const Distribution& distribution, const Draw& draw,
                             const std::vector<DType>& dtypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                                                 DType::kBfloat16}) {
    for (const DType dtype : dtypes) {
      evaluator::Parameter parameter;
      parameter.dtype = dtype;
      parameter.shape = {evaluator::Expression(kCount)};
      parameter.distribution = distribution;
      const std::vector<uint8_t> host = evaluator::DrawTensor(parameter, {}, kKey, 0).bytes;
      device_->Draw({{draw, dtype, got_, kCount}});
      device_->Wait();
      std::vector<uint8_t> drawn(host.size());
      device_->Read(drawn.data(), got_, drawn.size());
      if (!evaluator::Info(dtype).is_floating) {
        ASSERT_EQ(drawn, host) << evaluator::Info(dtype).name;
        continue;
      }
      const size_t size = evaluator::Info(dtype).size;
      for (size_t at = 0; at < host.size(); at += size) {
        const double wanted = evaluator::LoadDouble(dtype, host.data() + at),
                     value = evaluator::LoadDouble(dtype, drawn.data() + at);
        ASSERT_TRUE(value == wanted || (std::isnan(value) && std::isnan(wanted)))
            << evaluator::Info(dtype).name << " element " << at / size << ": " << value << ", on the host " << wanted;
      }
    }
  }

  std::unique_ptr<Device> device_;
  void *got_ = nullptr, *want_ = nullptr;
};

TEST_F(DrawGpuTest, Denormals) {
  Distribution distribution;
  distribution.kind = Distribution::Kind::kDenormals;
  Draw draw;
  draw.kind = Draw::Kind::kDenormals;
  draw.a = distribution.ordinary;
  draw.key = kKey;
  draw.chosen = evaluator::SubKey(kKey, 1);
  ExpectSameAsOnTheHost(distribution, draw);
}

TEST_F(DrawGpuTest, Extremes) {
  Distribution distribution;
  distribution.kind = Distribution::Kind::kExtremes;
  distribution.infinities = distribution.nans = true;
  Draw draw;
  draw.kind = Draw::Kind::kExtremes;
  draw.infinities = draw.nans = true;
  draw.key = kKey;
  ExpectSameAsOnTheHost(distribution, draw);
}

TEST_F(DrawGpuTest, ComparesInfinitiesAndNans) {
  const float highest = 3.4028235e38f;
  const std::vector<float> want = {INFINITY, -INFINITY, NAN, 1, 1, INFINITY, INFINITY, highest, 1e-40f},
                           got = {INFINITY, -INFINITY, NAN, NAN, INFINITY, 1, -INFINITY, INFINITY, 0};
  device_->Write(got_, got.data(), got.size() * sizeof(float));
  device_->Write(want_, want.data(), want.size() * sizeof(float));
  // Of these the fourth to the seventh are wrong, and the last where nothing absolute is allowed.
  const auto count = static_cast<int64_t>(want.size());
  EXPECT_THAT(device_->Mismatches({{DType::kFloat32, got_, want_, count, 1e-6, 1e-30},
                                   {DType::kFloat32, got_, want_, count, 1e-6, 0},
                                   {DType::kFloat32, got_, want_, 3, 0, 0}}),
              ElementsAre(4, 5, 0));
}

TEST_F(DrawGpuTest, WholeNumbers) {
  Distribution distribution;
  distribution.kind = Distribution::Kind::kIntegers;
  distribution.low = evaluator::Expression(-100);
  distribution.high = evaluator::Expression(27);
  Draw draw;
  draw.kind = Draw::Kind::kWhole;
  draw.low = -100;
  draw.range = 128;
  draw.key = kKey;
  ExpectSameAsOnTheHost(distribution, draw, {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64});
  distribution.low = evaluator::Expression(0);
  draw.low = 0;
  draw.range = 28;
  ExpectSameAsOnTheHost(distribution, draw, {DType::kUint8, DType::kUint16, DType::kUint32});
}

// A double holds no whole number of more than 53 bits.
TEST_F(DrawGpuTest, ComparesLargeWholeNumbersExactly) {
  constexpr int64_t kLarge = int64_t{1} << 53;
  const std::vector<int64_t> want = {kLarge, -kLarge, INT64_MAX, INT64_MIN, INT64_MIN, kLarge, 7},
                             got = {kLarge + 1, -kLarge - 1, INT64_MAX - 1, INT64_MIN, INT64_MAX, kLarge, 8};
  device_->Write(got_, got.data(), got.size() * sizeof(int64_t));
  device_->Write(want_, want.data(), want.size() * sizeof(int64_t));
  const auto count = static_cast<int64_t>(want.size());
  EXPECT_THAT(
      device_->Mismatches({{DType::kInt64, got_, want_, count, 0, 0}, {DType::kInt64, got_, want_, count, 0, 1}}),
      ElementsAre(5, 1));

  Distribution distribution;
  distribution.kind = Distribution::Kind::kIntegers;
  distribution.low = evaluator::Expression(kLarge);
  distribution.high = evaluator::Expression(kLarge + 1000);
  Draw draw;
  draw.kind = Draw::Kind::kWhole;
  draw.low = kLarge;
  draw.range = 1001;
  draw.key = kKey;
  ExpectSameAsOnTheHost(distribution, draw, {DType::kInt64});
}

// Many pieces of different sizes and kinds in one launch: each has its own values, and nothing is written beside it.
TEST_F(DrawGpuTest, DrawsManyPiecesAtOnce) {
  std::vector<uint8_t> before(kCount * sizeof(double), 0x11);
  device_->Write(got_, before.data(), before.size());
  std::vector<uint8_t> source(96);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i);
  device_->Write(want_, source.data(), source.size());
  auto* const memory = static_cast<uint8_t*>(got_);
  std::vector<DrawTask> tasks;
  Draw constant;
  constant.kind = Draw::Kind::kConstant;
  constexpr int64_t kPieces = 30;
  for (int64_t i = 0; i < kPieces; ++i) {  // piece i has i elements, from a multiple of 256 bytes
    constant.a = static_cast<double>(i);
    tasks.push_back({constant, DType::kFloat32, memory + 256 * i, i});
  }
  Draw byte, copy;
  byte.kind = Draw::Kind::kByte;
  byte.low = 0xff;
  copy.kind = Draw::Kind::kCopy;
  copy.source = want_;
  tasks.push_back({byte, DType::kUint8, memory + 32768, 40001});
  tasks.push_back({copy, DType::kUint8, memory + 256 * kPieces, 91});
  device_->Draw(tasks);
  device_->Wait();
  std::vector<uint8_t> after(before.size());
  device_->Read(after.data(), got_, after.size());
  for (int64_t i = 0; i < kPieces; ++i) {
    const std::vector<float> values(static_cast<size_t>(i), static_cast<float>(i));
    if (i > 0) std::memcpy(before.data() + 256 * i, values.data(), values.size() * sizeof(float));
  }
  std::memset(before.data() + 32768, 0xff, 40001);
  std::memcpy(before.data() + 256 * kPieces, source.data(), 91);
  EXPECT_EQ(after, before);
  // One byte of the many is found.
  ASSERT_EQ(cudaMemset(memory + 32768 + 40000, 0, 1), cudaSuccess);
  device_->Write(want_, before.data(), before.size());
  EXPECT_THAT(device_->Mismatches({{DType::kUint8, got_, want_, 32768, 0, 0},
                                   {DType::kUint8, memory + 32768, static_cast<uint8_t*>(want_) + 32768, 40001, 0, 0}}),
              ElementsAre(0, 1));
}

TEST_F(DrawGpuTest, FindsTheWorstElement) {
  std::vector<float> want(kCount, 2.0f), got = want;
  got[7001] = 2.5f;   // 0.5 / 0.3
  got[9000] = 2.55f;  // the largest, and again
  got[9007] = 2.55f;
  want[9999] = 200, got[9999] = 201;  // within the bound
  device_->Write(got_, got.data(), got.size() * sizeof(float));
  device_->Write(want_, want.data(), want.size() * sizeof(float));
  EXPECT_THAT(device_->Mismatches({{DType::kFloat32, got_, want_, kCount, 0.1, 0.1}}), ElementsAre(3));
  EXPECT_EQ(device_->Worst({DType::kFloat32, got_, want_, kCount, 0.1, 0.1}), 9000);
  // As whole numbers, without a bound: the first that differs.
  EXPECT_EQ(device_->Worst({DType::kInt32, got_, want_, kCount, 0, 0}), 7001);
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
