// Runs of two ranks, each with a coder of its own, and a service on this machine: paid answers are kept, the cost limit
// holds for the whole run, and no answer is paid for that no rank needs any more.
#include "run_with_service.h"

#include "test.h"

#include <unistd.h>

namespace kgrpo::coder_gpt4o {
namespace {

using test::Result;
using ::testing::ContainsRegex;

const char* const kExchanges = "SELECT count(*) FROM exchanges";

class CoderRanksTest : public RunWithServiceTest {
 protected:
  fs::path Recording(const std::string& run, size_t rank) const {
    const fs::path artifacts = directory_.path() / run / "artifacts";
    return (rank == 0 ? artifacts : artifacts / ("rank-" + std::to_string(rank))) / "coder/exchanges.sqlite";
  }
  double OfBoth(const std::string& run, const char* sql) const {
    return Number(Recording(run, 0), sql) + Number(Recording(run, 1), sql);
  }
};

TEST_F(CoderRanksTest, AStoppedRunPaysForNothingTwice) {
  const std::string word = "ranks-" + std::to_string(getpid());
  std::atomic<int> calls{0};
  Server server([&](const auto& request, auto& response, int) {
    if (++calls == 7) StopHost(word);
    AnswerKernel(request, response);
  });
  WritePipeline(server.Url(), "    max_concurrency: 1\n");
  const Result stopped = Host("p.yaml --ranks 2 --set output_dir=" + word);
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  const double kept = OfBoth(word, kExchanges);
  EXPECT_GT(Number(Recording(word, 1), kExchanges), 0);
  calls = 100;  // nobody stops the rest
  const Result resumed = Host("resume --ranks 2 " + word);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(kept + calls - 100, OfBoth(word, kExchanges));
  const Result whole = Host("p.yaml --ranks 2 --set output_dir=whole");
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(OfBoth("whole", kExchanges), OfBoth(word, kExchanges));
  EXPECT_EQ(Samples("whole"), Samples(word));
  EXPECT_NEAR(Number(directory_.path() / "whole/run.sqlite",
                     "SELECT value FROM metrics WHERE name = 'coder/cost_total' AND step = 3"),
              OfBoth("whole", "SELECT cost FROM spending"), 1e-9);
}

TEST_F(CoderRanksTest, TheLimitOfTheCostIsOfAllRanks) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url(), "    max_tokens: 20\n");
  const Result stopped = Host("p.yaml --ranks 2 --set output_dir=run --set coder.options.max_cost=1.2");
  EXPECT_EQ(stopped.code, 1) << stopped.err;
  EXPECT_THAT(stopped.err, ContainsRegex("the coder has cost .* of max_cost \\$0.6 \\(a rank's share of \\$1.2\\)"));
  EXPECT_LE(OfBoth("run", "SELECT cost FROM spending"), 1.2);
  const Result none = Host("p.yaml --ranks 2 --set output_dir=none --set coder.options.max_cost=0.06");
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("max_cost: a rank's equal share of it has room for no call"));
}

TEST_F(CoderRanksTest, FewerRanksCountWhatTheOthersHaveSpent) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url(), "    max_tokens: 20\n");
  ASSERT_EQ(Host("p.yaml --ranks 2 --set output_dir=run --set coder.options.max_cost=1.2").code, 1);
  const double other = Number(Recording("run", 1), "SELECT cost FROM spending");
  ASSERT_GT(other, 0);
  // Alone it would be enough for the rest of the run.
  const Result alone = Host("resume run --set coder.options.max_cost=1");
  EXPECT_EQ(alone.code, 1);
  EXPECT_THAT(alone.err, HasSubstr("of max_cost $1"));
  EXPECT_EQ(Number(Recording("run", 1), "SELECT cost FROM spending"), other);
}

// One rank's coder fails for good. The other's calls are answered when the test is over: it must not wait for them.
TEST_F(CoderRanksTest, OneRanksFailureEndsTheOthersCalls) {
  std::promise<void> end;
  const std::shared_future<void> over(end.get_future());
  std::atomic<int> calls{0};
  Server server([&](const auto&, auto& response, int) {
    if (++calls == 1) return AnswerError(response, 401, ErrorBody("no such key"));
    over.wait();
  });
  WritePipeline(server.Url(), "    max_concurrency: 1\n");
  const Result result = Host("p.yaml --ranks 2 --set output_dir=run");
  end.set_value();
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, HasSubstr("no such key"));
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
