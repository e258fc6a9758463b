#include "evaluator_cuda/device_errors.h"

#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

TEST(WaitForMemory, TriesAgainUntilThereIsRoom) {
  int attempts = 0, waits = 0;
  const int got = WaitForMemory(
      60,
      [&](const OutOfMemory& error) {
        ++waits;
        EXPECT_STREQ(error.what(), "full");
      },
      [&] {
        if (++attempts < 3) throw OutOfMemory("full");
        return 7;
      });
  EXPECT_EQ(got, 7);
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(waits, 2);
}

TEST(WaitForMemory, GivesUpInTheEndWithTheLastError) {
  int attempts = 0;
  const auto never = [&]() -> int { throw OutOfMemory("full " + std::to_string(++attempts)); };
  try {
    WaitForMemory(
        0.1, [](const OutOfMemory&) {}, never);
    FAIL() << "it returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_UNAVAILABLE);
    EXPECT_EQ(std::string(error.what()), "full " + std::to_string(attempts));
  }
  EXPECT_GE(attempts, 2);
}

TEST(WaitForMemory, OtherErrorsAndAStopEndIt) {
  int attempts = 0;
  const auto lost = [&]() -> int {
    ++attempts;
    throw Error(KGRPO_ERROR_UNAVAILABLE, "the device is lost");
  };
  EXPECT_THROW(WaitForMemory(
                   60, [](const OutOfMemory&) {}, lost),
               Error);
  EXPECT_EQ(attempts, 1);
  const auto stop = [](const OutOfMemory&) { throw Error(KGRPO_ERROR_CANCELLED, "stopped"); };
  EXPECT_NE(test::MessageOf([&] { WaitForMemory(60, stop, [&]() -> int { throw OutOfMemory("full"); }); },
                            KGRPO_ERROR_CANCELLED),
            "nothing thrown");
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
