// Copies that work correctly: order, concurrency, large answers, cancelling, and the plugins with the Python kit.
#include <condition_variable>

#include "faulty.h"
#include "program_shared/options.h"
#include "test.h"

namespace kgrpo::program {
namespace {

class PoolTest : public ProgramTest {};

TEST_F(PoolTest, DefaultsOfTheProgramsOptionsAreFilledIn) {
  Pool pool(host(), "reward", Faulty("echo"));
  EXPECT_EQ(pool.Call("options", nullptr), json({{"cap", 8}}));
}

TEST_F(PoolTest, AProgramMayStateItsProtocolAndRolesAlone) {
  PoolOptions options = Faulty("terse");
  options.options = {{"any", "thing"}};
  Pool pool(host(), "reward", options);
  EXPECT_EQ(pool.Call("options", nullptr), json({{"any", "thing"}}));
  EXPECT_EQ(pool.hello().concurrency, 1U);
}

TEST_F(PoolTest, ItsDescriptionIsTheCommandAndWhatTheProgramSaysOfItself) {
  const auto described = [&](const std::string& how) {
    const PoolOptions faulty = Faulty(how);
    const std::string text = Pool(host(), "reward", faulty).description(),
                      command = "a program: " + Joined(faulty.command);
    EXPECT_THAT(text, testing::StartsWith(command));
    return text.substr(command.size());
  };
  EXPECT_EQ(described("versioned"), " (mine, version 1.2)");
  EXPECT_EQ(described("echo"), " (echo)");
  EXPECT_EQ(described("terse"), "");
}

TEST_F(PoolTest, AnswersComeInAnyOrder) {
  Pool pool(host(), "reward", Faulty("unordered"));
  std::vector<std::future<json>> answers;
  for (int i = 0; i < 8; ++i)
    answers.push_back(std::async(std::launch::async, [&, i] { return pool.Call("echo", i); }));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(answers[static_cast<size_t>(i)].get(), i);
}

TEST_F(PoolTest, ManyThreadsAndCopiesGetTheirOwnAnswers) {
  PoolOptions options = Faulty("echo");
  options.copies = 3;
  Pool pool(host(), "reward", options);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) wrong += pool.Call("echo", t * 1000 + i) != t * 1000 + i;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(PoolTest, LargeRequestsAndAnswersDoNotBlockEachOther) {
  Pool pool(host(), "reward", Faulty("large"));
  const json params = {{"size", 8 << 20}, {"padding", std::string(8 << 20, 'p')}};
  EXPECT_EQ(pool.Call("echo", params).get<std::string>().size(), size_t{8} << 20);
}

// All four that were in flight are asked once more, and answered with an error: none is lost.
TEST_F(PoolTest, EveryRequestInFlightIsAnsweredWhenACopyDies) {
  Pool pool(host(), "reward", Faulty("dies_with_four"));
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 6; ++i) answers.push_back(std::async(std::launch::async, [&] { return Failing(pool); }));
  for (auto& answer : answers) EXPECT_THAT(answer.get(), HasSubstr("ended with exit code 5"));
}

TEST_F(PoolTest, CancelAnswersWhatWaitsAndWhatIsInFlight) {
  Pool pool(host(), "reward", Faulty("never"));
  std::mutex mutex;
  std::condition_variable changed;
  int cancelled = 0;
  for (int i = 0; i < 3; ++i) {
    pool.Submit("fail", nullptr, [&](json, std::exception_ptr error) {
      const std::lock_guard lock(mutex);
      try {
        std::rethrow_exception(error);
      } catch (const Error& failure) {
        cancelled += failure.code() == KGRPO_ERROR_CANCELLED;
      }
      changed.notify_one();
    });
  }
  pool.Cancel();
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return cancelled == 3; }));
}

// The real host with a script of the kit: `plugins validate` calls every function of the interface.
class KitTest : public ProgramTest {
 protected:
  std::string Validate(const std::string& plugin, const std::string& script) {
    const std::string at = directory_.path().string();
    std::ofstream(at + "/mine.py") << script;
    std::ofstream(at + "/options.json") << R"({"command": ["python3", "mine.py"]})";
    const std::string command = "cd '" + at + "' && cp '" KGRPO_SOURCE_DIR "/python/kgrpo_plugin.py' . && '" +
                                KGRPO_BINARY_DIR "/bin/kgrpo-host' plugins validate " + plugin +
                                " --options options.json > out 2>&1";
    const int status = std::system(command.c_str());
    std::ifstream stream(at + "/out");
    const std::string out((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    EXPECT_EQ(status, 0) << out;
    return out;
  }
};

TEST_F(KitTest, Reward) {
  EXPECT_THAT(Validate("reward_program",
                       "from kgrpo_plugin import reward, run\n"
                       "@reward\n"
                       "def mine(round, *, cap: float = 8.0):\n"
                       "    print('this is not an answer')\n"
                       "    return min(round.speedup, cap) if round.correct else -1\n"
                       "run()\n"),
              HasSubstr(" 0 failed, 0 warnings"));
}

TEST_F(KitTest, Coder) {
  EXPECT_THAT(Validate("coder_program",
                       "from kgrpo_plugin import coder, run, NotApplicable\n"
                       "@coder(concurrency=4)\n"
                       "def mine(request):\n"
                       "    if 'float4' not in request.suggestion:\n"
                       "        raise NotApplicable('only float4')\n"
                       "    return '// float4\\n' + request.code_b\n"
                       "run()\n"),
              HasSubstr(" 0 failed, 0 warnings"));
}

TEST_F(KitTest, Evaluator) {
  EXPECT_THAT(Validate("evaluator_program",
                       "from kgrpo_plugin import evaluator, run\n"
                       "@evaluator\n"
                       "def mine(kernel):\n"
                       "    return {'correct': True, 'seconds': 1e-6 * len(kernel.source)}\n"
                       "run()\n"),
              HasSubstr(" 0 failed, 0 warnings"));
}

}  // namespace
}  // namespace kgrpo::program
