// Odd values on the device: drawn as the host draws them, and compared as it compares. Skipped where there is no GPU.
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_cuda/device.h"
#include "evaluator_shared/inputs.h"
#include "evaluator_shared/random.h"
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

  void ExpectSameAsOnTheHost(const Distribution& distribution, const Draw& draw) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
      evaluator::Parameter parameter;
      parameter.dtype = dtype;
      parameter.shape = {evaluator::Expression(kCount)};
      parameter.distribution = distribution;
      const std::vector<uint8_t> host = evaluator::DrawTensor(parameter, {}, kKey, 0).bytes;
      device_->DrawInto(draw, dtype, got_, kCount);
      device_->Wait();
      std::vector<uint8_t> drawn(host.size());
      device_->Read(drawn.data(), got_, drawn.size());
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
  EXPECT_EQ(device_->Mismatches(DType::kFloat32, got_, want_, count, 1e-6, 1e-30), 4u);
  EXPECT_EQ(device_->Mismatches(DType::kFloat32, got_, want_, count, 1e-6, 0), 5u);
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
