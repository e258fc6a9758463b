// The collectives of transport_torch among threads as ranks: by Gloo on the CPU, and by fake_nccl.cc in place of NCCL
// and GPUs. Expected results are computed here element by element.
#include <kgrpo/sdk/collective.h>
#include <unistd.h>

#include "test.h"
#include "transport_torch/torch_transport.h"

namespace kgrpo::transport {
namespace {

// Runs `work` on each of `size` ranks that have met, and returns what each threw, or "".
std::vector<std::string> OnRanks(uint32_t size, const std::function<void(TorchTransport&)>& work) {
  // c10d notes collectives in one recorder of the process, which threads with a group each do not share safely.
  setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", "0", /*overwrite=*/1);
  static std::atomic<int> runs{0};
  Options options;
  options.size = options.local_size = size;
  options.address = "127.0.0.1";
  options.port = static_cast<uint16_t>(20000 + (getpid() * 16 + ++runs) % 12000);
  options.run = "test";
  options.patience = 20;
  options.nccl = options.cudart = KGRPO_BINARY_DIR "/tests/libfake_nccl.so";
  std::vector<std::string> thrown(size);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      Options own = options;
      own.rank = own.local_rank = rank;
      try {
        TorchTransport transport(own);
        work(transport);
      } catch (const Error& error) {
        thrown[rank] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return thrown;
}

template <typename Value>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr uint8_t kCode = KGRPO_DTYPE_FLOAT;
};
template <>
struct TypeOf<double> {
  static constexpr uint8_t kCode = KGRPO_DTYPE_FLOAT;
};
template <>
struct TypeOf<uint8_t> {
  static constexpr uint8_t kCode = KGRPO_DTYPE_UINT;
};
template <>
struct TypeOf<uint16_t> {  // the bits of a bfloat16
  static constexpr uint8_t kCode = KGRPO_DTYPE_BFLOAT;
};
template <>
struct TypeOf<int64_t> {
  static constexpr uint8_t kCode = KGRPO_DTYPE_INT;
};

// The values that rank `rank` begins with.
template <typename Value>
std::vector<Value> Mine(uint32_t rank, size_t count) {
  std::vector<Value> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<Value>((i * 7 + rank * 31) % 50);
  return values;
}

class Collectives : public ::testing::TestWithParam<bool> {
 protected:
  template <typename Value>
  ArrayTensor Tensor(std::vector<Value>& values, uint32_t rank) const {
    return {values.data(),
            values.size(),
            TypeOf<Value>::kCode,
            static_cast<uint8_t>(sizeof(Value) * 8),
            GetParam() ? KGRPO_DEVICE_CUDA : KGRPO_DEVICE_CPU,
            GetParam() ? static_cast<int32_t>(rank) : 0};
  }

  template <typename Value>
  void Reduce(TorchTransport& transport, size_t count) const {
    const uint32_t rank = transport.info().rank, size = transport.info().size;
    for (const kgrpo_reduction reduction : {KGRPO_REDUCTION_SUM, KGRPO_REDUCTION_MIN, KGRPO_REDUCTION_MAX}) {
      std::vector<Value> values = Mine<Value>(rank, count), expected = Mine<Value>(0, count);
      for (uint32_t other = 1; other < size; ++other) {
        const std::vector<Value> theirs = Mine<Value>(other, count);
        for (size_t i = 0; i < count; ++i) {
          expected[i] = reduction == KGRPO_REDUCTION_SUM   ? expected[i] + theirs[i]
                        : reduction == KGRPO_REDUCTION_MIN ? std::min(expected[i], theirs[i])
                                                           : std::max(expected[i], theirs[i]);
        }
      }
      transport.AllReduce(*Tensor(values, rank).c(), reduction);
      EXPECT_EQ(values, expected);
      if (reduction != KGRPO_REDUCTION_SUM || sizeof(Value) != 4) continue;
      std::vector<Value> scattered = Mine<Value>(rank, count);
      transport.ReduceScatter(*Tensor(scattered, rank).c());
      for (size_t i = Collective::SliceBegin(count, rank, size); i < Collective::SliceBegin(count, rank + 1, size); ++i)
        EXPECT_EQ(scattered[i], expected[i]) << i;
    }
  }

  template <typename Value>
  void Move(TorchTransport& transport, size_t count) const {
    const uint32_t rank = transport.info().rank, size = transport.info().size;
    std::vector<Value> gathered = Mine<Value>(rank, count), expected(count);
    for (uint32_t other = 0; other < size; ++other) {
      const std::vector<Value> theirs = Mine<Value>(other, count);
      for (size_t i = Collective::SliceBegin(count, other, size); i < Collective::SliceBegin(count, other + 1, size);
           ++i)
        expected[i] = theirs[i];
    }
    transport.AllGather(*Tensor(gathered, rank).c());
    EXPECT_EQ(gathered, expected);
    for (uint32_t root = 0; root < size; ++root) {
      std::vector<Value> values = Mine<Value>(rank, count);
      transport.Broadcast(*Tensor(values, rank).c(), root);
      EXPECT_EQ(values, Mine<Value>(root, count));
    }
  }
};

TEST_P(Collectives, DoWhatTheyPromise) {
  for (const uint32_t size : {2U, 3U}) {
    const auto thrown = OnRanks(size, [&](TorchTransport& transport) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{6}, size_t{1000}, size_t{1003}}) {
        Reduce<float>(transport, count);
        Reduce<double>(transport, count);
        Move<float>(transport, count);
        Move<uint8_t>(transport, count);
        Move<uint16_t>(transport, count);
        Move<int64_t>(transport, count);
      }
    });
    EXPECT_EQ(thrown, std::vector<std::string>(size));
  }
}

TEST_P(Collectives, PartsThatAreBegunBecomeTheSumsOfTheirSlices) {
  for (const uint32_t size : {2U, 3U}) {
    const auto thrown = OnRanks(size, [&](TorchTransport& transport) {
      const uint32_t rank = transport.info().rank;
      for (const size_t count : {size_t{0}, size_t{1}, size_t{6}, size_t{1003}}) {
        for (const size_t part : {size_t{1003}, size_t{250}, size_t{101}}) {
          std::vector<float> values = Mine<float>(rank, count), expected = Mine<float>(0, count);
          for (uint32_t other = 1; other < size; ++other) {
            const std::vector<float> theirs = Mine<float>(other, count);
            for (size_t i = 0; i < count; ++i) expected[i] += theirs[i];
          }
          for (size_t end = count; end > 0; end -= std::min(end, part))
            transport.BeginReduceScatter(*Tensor(values, rank).c(), end - std::min(end, part), end, nullptr);
          transport.BeginReduceScatter(*Tensor(values, rank).c(), count, count, nullptr);
          transport.FinishReductions();
          for (size_t i = Collective::SliceBegin(count, rank, size); i < Collective::SliceBegin(count, rank + 1, size);
               ++i)
            EXPECT_EQ(values[i], expected[i]) << i;
        }
      }
    });
    EXPECT_EQ(thrown, std::vector<std::string>(size));
  }
}

INSTANTIATE_TEST_SUITE_P(Device, Collectives, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "Gpu" : "Cpu"; });

// Rank 1 begins once rank 0 has gone on: a begun reduction waits for nobody until it is finished.
TEST(GlooGroup, BeginReturnsBeforeTheOthersCome) {
  std::atomic<bool> went_on{false};
  const auto thrown = OnRanks(2, [&](TorchTransport& transport) {
    const uint32_t rank = transport.info().rank;
    while (rank == 1 && !went_on) std::this_thread::yield();
    std::vector<float> values(1000, 1.0F);
    const ArrayTensor tensor(values.data(), values.size(), KGRPO_DTYPE_FLOAT, 32);
    transport.BeginReduceScatter(*tensor.c(), 500, 1000, nullptr);
    transport.BeginReduceScatter(*tensor.c(), 0, 500, nullptr);
    went_on = true;
    double other_work = rank;
    transport.AllReduce(*ArrayTensor(&other_work, 1).c(), KGRPO_REDUCTION_SUM);
    EXPECT_EQ(other_work, 1);
    transport.FinishReductions();
    EXPECT_EQ(values[rank * 500], 2.0F);
  });
  EXPECT_EQ(thrown, std::vector<std::string>(2));
}

// The memory is the caller's again once FinishReductions has failed.
TEST(GlooGroup, ALostRankEndsWhatWasBegun) {
  std::atomic<bool> connected{false};
  const auto thrown = OnRanks(2, [&](TorchTransport& transport) {
    while (transport.info().rank == 1 && !connected) std::this_thread::yield();
    if (transport.info().rank == 1) return;  // it ends
    connected = true;
    std::vector<float> values(1000, 1.0F);
    const ArrayTensor tensor(values.data(), values.size(), KGRPO_DTYPE_FLOAT, 32);
    for (int i = 0; i < 3; ++i) transport.BeginReduceScatter(*tensor.c(), 0, 1000, nullptr);
    transport.FinishReductions();
  });
  EXPECT_THAT(thrown[0], HasSubstr("another rank was lost in reduce_scatter"));
}

// A rank whose meeting place nobody opens, and one that waits there alone.
TEST(Rendezvous, WhoDoesNotComeIsNamedAfterThePatience) {
  Options options;
  options.size = options.local_size = 2;
  options.address = "127.0.0.1";
  options.port = static_cast<uint16_t>(20000 + (getpid() * 16) % 12000);
  options.run = "test";
  options.patience = 1;
  const auto refusal = [&](uint32_t rank) -> std::string {
    options.rank = options.local_rank = rank;
    return test::MessageOf([&] { const TorchTransport transport(options); }, KGRPO_ERROR_UNAVAILABLE,
                           "it has met somebody");
  };
  const std::string place = "127.0.0.1:" + std::to_string(options.port);
  EXPECT_EQ(refusal(1), "nobody answered at " + place +
                            " within 1 s: is rank 0 running, and are MASTER_ADDR and MASTER_PORT its own?");
  EXPECT_EQ(refusal(0), "rank 1 of 2 did not come to " + place + " within 1 s");
}

TEST(Rendezvous, AHostThatCannotBeResolvedIsNamed) {
  Options options;
  options.size = options.local_size = 2;
  options.address = "rank-zero.invalid";  // RFC 6761: never a host
  options.port = 1;
  options.run = "test";
  for (const uint32_t rank : {0, 1}) {
    options.rank = options.local_rank = rank;
    EXPECT_THAT(test::MessageOf([&] { const TorchTransport transport(options); }, KGRPO_ERROR_UNAVAILABLE),
                ::testing::HasSubstr("rank-zero.invalid, cannot be resolved"));
  }
}

kgrpo_tensor OnGpu(std::vector<float>& values, int64_t* shape, int device) {
  kgrpo_tensor tensor{};
  tensor.data = values.data();
  tensor.device = {KGRPO_DEVICE_CUDA, device};
  tensor.ndim = 1;
  tensor.dtype = {KGRPO_DTYPE_FLOAT, 32, 1};
  *shape = static_cast<int64_t>(values.size());
  tensor.shape = shape;
  return tensor;
}

TEST(NcclGroup, TwoRanksOnOneGpuAreNamed) {
  const auto thrown = OnRanks(3, [&](TorchTransport& transport) {
    std::vector<float> values(4);
    int64_t shape = 0;
    transport.AllReduce(OnGpu(values, &shape, transport.info().rank == 0 ? 0 : 1), KGRPO_REDUCTION_SUM);
  });
  for (const std::string& one : thrown) EXPECT_THAT(one, HasSubstr("ranks 1 and 2 are both on GPU 0000:01:00.0 of "));
}

TEST(NcclGroup, ItsErrorsAreToldWithItsWords) {
  const auto thrown = OnRanks(2, [&](TorchTransport& transport) {
    std::vector<float> values(1313);
    int64_t shape = 0;
    transport.AllReduce(OnGpu(values, &shape, static_cast<int>(transport.info().rank)), KGRPO_REDUCTION_SUM);
  });
  for (const std::string& one : thrown)
    EXPECT_THAT(one, HasSubstr("NCCL failed in all_reduce: invalid usage (as the test asked)"));
}

TEST(NcclGroup, ARanksTensorsAreOnOneGpu) {
  const auto thrown = OnRanks(2, [&](TorchTransport& transport) {
    std::vector<float> values(4);
    int64_t shape = 0;
    const int own = static_cast<int>(transport.info().rank);
    transport.AllReduce(OnGpu(values, &shape, own), KGRPO_REDUCTION_SUM);
    transport.AllReduce(OnGpu(values, &shape, own + 2), KGRPO_REDUCTION_SUM);
  });
  for (const std::string& one : thrown) EXPECT_THAT(one, HasSubstr("on another GPU"));
}

}  // namespace
}  // namespace kgrpo::transport
