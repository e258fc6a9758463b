// The optimiser's parts: schedule, AdamW over large tensors, norms, checksums, batching.
#include <bit>

#include "bigram_policy.h"
#include "fake_host.h"
#include "recorded_sink.h"
#include "test.h"
#include "trainer_shared/adamw.h"
#include "trainer_shared/batching.h"
#include "trainer_shared/metrics.h"
#include "trainer_shared/optimizer.h"
#include "trainer_shared/parallel.h"
#include "trainer_shared/schedule.h"
#include "trainer_shared/state_stream.h"
#include "trainer_shared/tensor_math.h"

namespace kgrpo::trainer {
namespace {

using kgrpo::testing::BigramPolicy;
using kgrpo::testing::FakeHost;
using kgrpo::testing::MemoryStream;

TEST(Schedule, WarmsUpThenFallsToTheEndOfTheStage) {
  ScheduleOptions options{ScheduleType::kLinear, 1.0, 4};
  std::vector<double> rates;
  for (uint64_t update = 0; update < 10; ++update) {
    for (uint64_t step = 0; step < 2; ++step) rates.push_back(LearningRate(options, {update, 10, step, 2}));
  }
  EXPECT_NEAR(rates[0], 1.0 / 8, 1e-12);  // the first step moves
  EXPECT_NEAR(rates[6], 7.0 / 8, 1e-12);
  EXPECT_EQ(rates[7], 1.0);  // the warm-up's last step has the peak
  EXPECT_EQ(rates[8], 1.0);
  EXPECT_NEAR(rates[19], 0.5 / 6, 1e-12);  // half an update before the end
  for (size_t i = 9; i < rates.size(); ++i) EXPECT_LT(rates[i], rates[i - 1]);

  options.type = ScheduleType::kCosine;
  EXPECT_NEAR(LearningRate(options, {7, 10, 0, 1}), 0.5, 1e-12);
  options.type = ScheduleType::kConstant;
  EXPECT_EQ(LearningRate(options, {9, 10, 0, 1}), 1.0);
  EXPECT_EQ(LearningRate({ScheduleType::kCosine, 1.0, 0}, {12, 10, 0, 1}), 0.0) << "past the end of the stage";
  EXPECT_EQ(LearningRate({ScheduleType::kLinear, 1.0, 10}, {9, 10, 0, 1}), 1.0) << "nothing but warm-up";
}

// tests/golden/trainer/make_best_of.py asks transformers.
TEST(Schedule, EqualsTransformers) {
  const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(KGRPO_BINARY_DIR "/test_data/trainer/schedules.json"));
  const std::map<std::string, ScheduleType> types = {{"cosine", ScheduleType::kCosine},
                                                     {"cosine_with_restarts", ScheduleType::kCosineWithRestarts},
                                                     {"warmup_stable_decay", ScheduleType::kWarmupStableDecay}};
  for (const nlohmann::json& c : golden) {
    ScheduleOptions options{types.at(c.at("type")), 1.0};
    options.min_lr_ratio = c.value("min_lr_ratio", 0.0);
    options.num_cycles = c.value("num_cycles", 1U);
    options.decay_steps = c.value("decay_steps", 0.0);
    const auto rates = c.at("rates").get<std::vector<double>>();
    for (size_t i = 0; i < rates.size(); ++i)
      EXPECT_NEAR(LearningRate(options, {i, rates.size(), 0, 1}), rates[i], 1e-12) << c.at("type") << " " << i;
  }
}

TEST(CpuTensorMath, NormsOfLargeTensorsAreThoseOfAPlainSum) {
  std::mt19937_64 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(1'300'007);
  for (float& value : values) value = normal(engine);
  double expected = 0;
  for (float value : values) expected += static_cast<double>(value) * static_cast<double>(value);
  const auto math = MakeCpuTensorMath();
  const double sum = math->SumOfSquares(values.data(), values.size());
  EXPECT_NEAR(sum, expected, 1e-9 * expected);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(math->SumOfSquares(values.data(), values.size()), sum) << "not deterministic";
  values[777'777] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(math->SumOfSquares(values.data(), values.size())));
  values[777'777] = 1e30f;  // its square is no float
  EXPECT_TRUE(std::isfinite(math->SumOfSquares(values.data(), values.size())));
}

TEST(CpuTensorMath, AdamWIsThatOfTheFormulaInEveryElement) {
  const size_t count = 500'003;
  std::mt19937_64 engine(2);
  std::normal_distribution<float> normal;
  std::vector<float> value(count), gradient(count), first(count), second(count);
  std::vector<double> p(count), m(count, 0.0), v(count, 0.0);
  for (size_t i = 0; i < count; ++i) p[i] = value[i] = normal(engine);
  const auto math = MakeCpuTensorMath();
  for (uint64_t step = 1; step <= 3; ++step) {
    for (float& g : gradient) g = normal(engine);
    AdamWScalars s{1e-2, 0.9, 0.99, 1e-8, 0.1, step, 0.5};
    math->AdamWStep({value.data(), ValueType::kFloat32, nullptr, gradient.data(), first.data(), second.data(), count},
                    s);
    for (size_t i = 0; i < count; ++i) {
      const double g = 0.5 * static_cast<double>(gradient[i]);
      p[i] -= 1e-2 * 0.1 * p[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.99 * v[i] + 0.01 * g * g;
      const double t = static_cast<double>(step);
      p[i] -= 1e-2 * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.99, t))) + 1e-8);
    }
  }
  for (size_t i = 0; i < count; ++i) ASSERT_NEAR(value[i], p[i], 1e-5) << i;
}

TEST(CpuTensorMath, Bfloat16ValuesAreTheirMastersRoundedToNearestEven) {
  // Masters that lie exactly between two bfloat16 numbers, just beside, and beyond the largest.
  const std::vector<float> masters = {1.0f,      1.00390625f, 1.01171875f,
                                      1.003907f, 3.4e38f,     std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> master = masters, zero(6), first(6), second(6);
  std::vector<uint16_t> value(6);
  MakeCpuTensorMath()->AdamWStep(
      {value.data(), ValueType::kBfloat16, master.data(), zero.data(), first.data(), second.data(), 6}, {0.0});
  EXPECT_EQ(value, (std::vector<uint16_t>{0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x7FC0}));
}

TEST(CpuTensorMath, SmallChangesAccumulateInTheMaster) {
  uint16_t value = 0x3F80;  // 1, whose neighbours are 0.004 and 0.008 away
  float master = 1, gradient = 1, first = 0, second = 0;
  const auto math = MakeCpuTensorMath();
  for (uint64_t step = 1; step <= 100; ++step) {
    math->AdamWStep({&value, ValueType::kBfloat16, &master, &gradient, &first, &second, 1},
                    {1e-3, 0.9, 0.999, 1e-8, 0, step});
  }
  EXPECT_NEAR(master, 0.9, 1e-4);
  EXPECT_NEAR(std::bit_cast<float>(static_cast<uint32_t>(value) << 16), 0.9, 0.004);
}

TEST(AdamW, AThousandTinyStepsOfABfloat16PolicyAreThoseOfPyTorchsMasters) {
  const auto golden = nlohmann::json::parse(std::ifstream(KGRPO_BINARY_DIR "/test_data/trainer/small_steps.json"));
  const auto floats = [&](const char* name) { return golden.at(name).get<std::vector<float>>(); };
  ASSERT_EQ(floats("without_masters"), floats("before")) << "each step alone is lost in the rounding";
  std::vector<float> gradient = floats("gradient"), summed(gradient.size());
  std::vector<uint16_t> value;
  for (const float start : floats("before")) {
    value.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(start) >> 16));
  }
  ParameterSet set;
  set.parameters.push_back({"w", {64}, 64, ValueType::kBfloat16, value.data(), summed.data()});
  set.spans.push_back({64, ValueType::kBfloat16, value.data(), summed.data(), true});
  AdamWOptions options;
  options.weight_decay = golden.at("weight_decay").get<double>();
  auto optimizer = std::make_unique<AdamW>(set, options, nullptr);
  const auto steps = golden.at("steps").get<uint64_t>();
  for (uint64_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < summed.size(); ++i) summed[i] = gradient[i] * (0.5F * static_cast<float>(step % 3 + 1));
    if (step == steps / 2) {  // the masters survive a checkpoint: another optimiser goes on
      MemoryStream stream;
      StateWriter writer(stream.writer(), "test");
      optimizer->Save(writer);
      writer.Finish();
      optimizer = std::make_unique<AdamW>(set, options, nullptr);
      StateReader reader(stream.reader(), "test");
      const auto loaded = optimizer->Load(reader);
      reader.Finish();
      optimizer->Commit(loaded);
    }
    optimizer->Step(golden.at("learning_rate").get<double>(), 1.0);
  }
  const std::vector<float> before = floats("before"), after = floats("after");
  size_t as_rounded = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const float weight = std::bit_cast<float>(static_cast<uint32_t>(value[i]) << 16);
    EXPECT_NE(weight, before[i]) << i;
    EXPECT_NEAR(weight, after[i], 0.0040) << "half the distance of neighbours between 1 and 2, " << i;
    as_rounded += weight == floats("rounded")[i];
  }
  EXPECT_GE(as_rounded, value.size() - 1) << "only a master that lies halfway may round otherwise";
}

TEST(Optimizer, LocksTheDeviceWhileItSteps) {
  FakeHost host;
  BigramPolicy policy(5);
  OptimizerOptions options;
  Optimizer optimizer(options, host.get(), BigramPolicy::Api(), policy.get(), nullptr);
  const std::vector<std::string> once = {"lock cpu", "unlock cpu"};
  optimizer.Step(1.0, {0, 1, 0, 1});
  EXPECT_EQ(host.locks, once);
  host.locks.clear();
  optimizer.Step(std::numeric_limits<double>::quiet_NaN(), {0, 1, 0, 1});
  EXPECT_EQ(host.locks, once) << "skipped";
  host.locks.clear();
  MemoryStream stream;
  StateWriter writer(stream.writer(), "test");
  optimizer.Save(writer);
  EXPECT_EQ(host.locks, once);
}

TEST(ParallelFor, VisitsEveryBlockOnce) {
  for (size_t blocks : {0, 1, 7, 1000}) {
    std::vector<int> visits(blocks);
    ParallelFor(blocks, [&](size_t block) { ++visits[block]; });
    EXPECT_EQ(visits, std::vector<int>(blocks, 1));
  }
}

TEST(Checksum, DependsOnTheBytesAndNotOnThePieces) {
  std::vector<unsigned char> bytes(1000);
  std::iota(bytes.begin(), bytes.end(), 0);
  Checksum whole;
  whole.Add(bytes.data(), bytes.size());
  Checksum pieces;
  for (size_t begin = 0, size = 1; begin < bytes.size(); begin += size, size = size % 29 + 1) {
    size = std::min(size, bytes.size() - begin);
    pieces.Add(bytes.data() + begin, size);
  }
  EXPECT_EQ(pieces.value(), whole.value());
  std::set<uint64_t> values = {whole.value()};
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<unsigned char>(1 << bit);
      Checksum changed;
      changed.Add(bytes.data(), bytes.size());
      values.insert(changed.value());
      bytes[i] ^= static_cast<unsigned char>(1 << bit);
    }
  }
  EXPECT_EQ(values.size(), 1 + bytes.size() * 8);
  const unsigned char zeros[16] = {};
  std::set<uint64_t> lengths;
  for (size_t size = 0; size <= 16; ++size) {
    Checksum of_zeros;
    of_zeros.Add(zeros, size);
    lengths.insert(of_zeros.value());
  }
  EXPECT_EQ(lengths.size(), 17u);
}

TEST(StateStream, GivesBackWhatWasWritten) {
  kgrpo::testing::MemoryStream stream;
  std::vector<double> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0.5);
  StateWriter writer(stream.writer(), "someone");
  writer.U64(~0ull);
  writer.Text("a name");
  writer.Bytes(numbers.data(), numbers.size() * sizeof(double));
  writer.Finish();
  StateReader reader(stream.reader(), "someone");
  EXPECT_EQ(reader.U64(), ~0ull);
  EXPECT_EQ(reader.Text(), "a name");
  std::vector<double> read(1000);
  reader.Bytes(read.data(), read.size() * sizeof(double));
  EXPECT_EQ(read, numbers);
  reader.Finish();
}

TEST(Batching, ShufflesArePermutationsOfTheirKey) {
  kgrpo::testing::FakeHost host(7);
  const auto order = ShuffledOrder(host.get(), {1, 2, 3}, 50);
  EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), 50u);
  EXPECT_EQ(order, ShuffledOrder(host.get(), {1, 2, 3}, 50));
  EXPECT_NE(order, ShuffledOrder(host.get(), {1, 2, 4}, 50));
  kgrpo::testing::FakeHost other(8);
  EXPECT_NE(order, ShuffledOrder(other.get(), {1, 2, 3}, 50));
  // Every element is about equally often first: 20 for each of 50.
  std::vector<int> first(50);
  for (uint64_t key = 0; key < 1000; ++key) ++first[ShuffledOrder(host.get(), {key}, 50)[0]];
  double chi_square = 0;
  for (int count : first) chi_square += std::pow(count - 20.0, 2) / 20.0;
  EXPECT_LT(chi_square, 85.4);  // 99.9% of chi-square with 49 degrees of freedom
}

TEST(Batching, PiecesKeepToTheLimit) {
  const std::vector<size_t> tokens = {3, 4, 5, 20, 1, 1};
  EXPECT_EQ(PieceEnds(tokens, 0), (std::vector<size_t>{6}));
  EXPECT_EQ(PieceEnds(tokens, 8), (std::vector<size_t>{2, 3, 4, 6}));
  EXPECT_EQ(PieceEnds(tokens, 1), (std::vector<size_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(PieceEnds({}, 8), std::vector<size_t>{});
}

TEST(Summary, HasMeanExtremesAndSpread) {
  Summary summary;
  for (double value : {1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 6}) summary.Add(value);
  EXPECT_DOUBLE_EQ(summary.mean(), 1e9 + 3);
  EXPECT_EQ(summary.min(), 1e9 + 1);
  EXPECT_EQ(summary.max(), 1e9 + 6);
  EXPECT_NEAR(summary.standard_deviation(), std::sqrt(14.0 / 3), 1e-6);
  Summary one;
  one.Add(5);
  EXPECT_EQ(one.standard_deviation(), 0);
}

}  // namespace
}  // namespace kgrpo::trainer
