// coder_gpt4o/coder.h: two processes share a cache; one asks and the other waits, with a scripted service. Two coders
// in one process stand for them, since each opens its own lock file.
#include "coder_gpt4o/coder.h"

#include "bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

namespace kgrpo::coder_gpt4o {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Waits for the outcome of a request.
struct Awaited {
  Awaited() : outcome(promise.get_future()) {}
  kgrpo_coder_done done() {
    return {this, [](void* context, const kgrpo_coder_answer* answer, kgrpo_error* error) {
              auto* self = static_cast<Awaited*>(context);
              if (answer == nullptr) return self->promise.set_value(MessageOf(error));
              self->cost = answer->cost;
              self->promise.set_value(answer->outcome == KGRPO_CODER_OK ? Copy(answer->source) : Copy(answer->message));
            }};
  }
  static std::string MessageOf(kgrpo_error* error) {
    try {
      Check(error);
    } catch (const Error& thrown) {
      return thrown.what();
    }
    return "";
  }
  bool IsThere() const { return outcome.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  std::promise<std::string> promise;
  std::future<std::string> outcome;
  double cost = -1;
};

class SharedCacheTest : public testing::Test {
 protected:
  std::unique_ptr<Bench> Process(const char* name) const {
    return std::make_unique<Bench>(json{{"mode", "cache"}, {"prices", kPrices}},
                                   RecordedIn(folder_ / name, folder_ / "cache.sqlite"));
  }
  // Both ask it, the first before the second.
  void BothAsk() {
    first_->coder.Implement(asked_.request(), answered_.done());
    ASSERT_EQ(first_->service.sent, 1u);
    second_->on_send = [this] { sent_.set_value(); };
    second_->coder.Implement(same_.request(), waited_.done());
    ASSERT_EQ(second_->service.sent, 0u);
    EXPECT_THAT(second_->warnings, testing::ElementsAre(HasSubstr("another process with the same cache")));
  }

  const std::filesystem::path folder_ = TestFolder(testing::UnitTest::GetInstance()->current_test_info()->name());
  Asked asked_, same_{"use one warp", 2};
  Awaited answered_, waited_;
  std::promise<void> sent_;  // by the second
  std::unique_ptr<Bench> first_ = Process("first"), second_ = Process("second");
};

TEST_F(SharedCacheTest, WhatOneAsksTheOtherDoesNotPayFor) {
  ASSERT_NO_FATAL_FAILURE(BothAsk());
  Asked other("use two warps", 3);  // another question goes out
  second_->on_send = nullptr;
  Answered paid;
  second_->Ask(other, paid);
  EXPECT_EQ(second_->service.sent, 1u);
  EXPECT_FALSE(waited_.IsThere());
  first_->service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(waited_.outcome.get(), kKernelC);
  EXPECT_EQ(waited_.cost, 0);
  EXPECT_EQ(answered_.outcome.get(), kKernelC);
  EXPECT_DOUBLE_EQ(answered_.cost, 0.0045);
  EXPECT_EQ(second_->service.sent, 1u);
  EXPECT_DOUBLE_EQ(first_->coder.Spending().cost, 0.0045);
  EXPECT_EQ(second_->coder.Spending().cost, 0);
}

TEST_F(SharedCacheTest, WhatFailsForOneTheOtherTries) {
  ASSERT_NO_FATAL_FAILURE(BothAsk());
  first_->service.Answer(Failed());
  sent_.get_future().wait();
  second_->on_send = nullptr;
  // Now it is the second's to ask: the first waits for it.
  Awaited again;
  first_->coder.Implement(asked_.request(), again.done());
  EXPECT_EQ(first_->service.sent, 1u);
  second_->service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(waited_.outcome.get(), kKernelC);
  EXPECT_EQ(again.outcome.get(), kKernelC);
  EXPECT_EQ(first_->service.sent, 1u);
}

// The one's cache is the other's own recording: what it waits for comes to it as its own.
TEST_F(SharedCacheTest, AnAnswerInTheRunsOwnRecordingIsForAllThatWait) {
  std::filesystem::create_directories(folder_ / "own");
  const auto process = [&](const char* name) {
    return std::make_unique<Bench>(json{{"mode", "cache"}, {"prices", kPrices}},
                                   RecordedIn(folder_ / name, folder_ / "own" / kRecordingName));
  };
  const std::unique_ptr<Bench> asking = process("guest"), waiting = process("own");
  Asked again;
  asking->coder.Implement(asked_.request(), answered_.done());
  ASSERT_EQ(asking->service.sent, 1u);
  Awaited others[2];
  waiting->coder.Implement(again.request(), others[0].done());
  waiting->coder.Implement(same_.request(), others[1].done());
  ASSERT_EQ(waiting->service.sent, 0u);
  asking->service.Answer(AnswerOf(Fenced(kKernelC)));
  for (Awaited& other : others) {
    ASSERT_EQ(other.outcome.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_EQ(other.outcome.get(), kKernelC);
  }
}

TEST_F(SharedCacheTest, AProcessThatEndsLeavesItsQuestions) {
  ASSERT_NO_FATAL_FAILURE(BothAsk());
  first_ = nullptr;  // as the kernel does it: what it had open is closed
  sent_.get_future().wait();
  second_->coder.Cancel();
  waited_.outcome.wait();
}

TEST_F(SharedCacheTest, WhoWaitsCanBeCancelled) {
  ASSERT_NO_FATAL_FAILURE(BothAsk());
  second_->coder.Cancel();
  EXPECT_EQ(waited_.outcome.get(), "cancelled");
  EXPECT_EQ(second_->service.sent, 0u);
  second_ = nullptr;  // with a watcher that has nothing to watch
  first_->service.Answer(AnswerOf(Fenced(kKernelC)));
  EXPECT_EQ(answered_.outcome.get(), kKernelC);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
