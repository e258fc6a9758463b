// Each kind of failure of a program has its own message, loses no request, and leaves no process behind.
#include <csignal>

#include "faulty.h"
#include "test.h"

namespace kgrpo::program {
namespace {

using testing::EndsWith;

class Faults : public ProgramTest {};

TEST_F(Faults, GarbageIsQuoted) {
  EXPECT_THAT(Failing("garbage"), HasSubstr("wrote a line that is not JSON: \"Traceback (most recent call last):\"; "
                                            "standard output is for answers alone: print to standard error"));
  EXPECT_THAT(Failing("array"), HasSubstr("is not an answer (expected an object with an \"id\"): \"[1, 2]\""));
  EXPECT_THAT(Failing("both"), HasSubstr("needs either \"result\" or \"error\""));
}

TEST_F(Faults, BytesThatAreNoTextAreNotJson) {
  EXPECT_THAT(Failing("not_utf8"), HasSubstr("is not JSON: \"{\"id\": 2, \"result\": \"??\"}\""));
}

TEST_F(Faults, AnEndlessLineIsCut) {
  EXPECT_THAT(Failing("too_much"), HasSubstr("wrote a line of more than 16 MiB, which begins \"xxx"));
}

TEST_F(Faults, DeepNestingIsNotParsed) {
  EXPECT_THAT(Failing("deep"), HasSubstr("nested 10001 deep; at most 64 is read"));
}

TEST_F(Faults, TheSecondAnswerEndsItAndTheFirstCounts) { EXPECT_EQ(Failing("twice"), "1"); }

TEST_F(Faults, DeathIsToldWithItsLastWords) {
  EXPECT_THAT(Failing("exits"),
              HasSubstr("ended with exit code 9; the last it said: \"I am out of memory\", at the second attempt"));
}

TEST_F(Faults, WhatDiedOnceIsAskedAgain) { EXPECT_EQ(Failing("dies_once"), "\"at last\""); }

TEST_F(Faults, AnErrorOfTheProgramIsPassedOnAndItLives) {
  EXPECT_THAT(Failing("says_error"), HasSubstr("failed at \"fail\": no such GPU"));
}

TEST_F(Faults, ALateAnswerEndsTheCopyAndIsNotAskedAgain) {
  PoolOptions options = Faulty("never");
  options.request_seconds = 2;  // for the program to start and to read the request on a busy machine
  Pool pool(host(), "reward", options);
  EXPECT_THAT(Failing(pool), EndsWith("did not answer \"fail\" within 2 s (request_seconds)"));
  std::ostringstream asked;
  asked << std::ifstream(state()).rdbuf();
  EXPECT_EQ(asked.str(), "asked\n");
}

TEST_F(Faults, WhatItForkedEndsWithIt) {
  EXPECT_THAT(Failing("forks"), HasSubstr("ended with exit code 4"));
  pid_t child = 0;
  std::ifstream(state()) >> child;
  ASSERT_GT(child, 0);
  // The process is nobody's we could wait for; a container's first process may leave it a zombie.
  const auto lives = [&] {
    std::string stat;
    std::getline(std::ifstream("/proc/" + std::to_string(child) + "/stat"), stat);
    return !stat.empty() && stat[stat.rfind(')') + 2] != 'Z';
  };
  for (int i = 0; i < 200 && lives(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(lives());
}

TEST_F(Faults, AStartThatFailsSaysWhy) {
  PoolOptions absent = Faulty("");
  absent.command = {"/no/such/program"};
  EXPECT_THAT(Starting(absent), HasSubstr("/no/such/program: cannot be started: No such file or directory"));
  EXPECT_THAT(Starting(Faulty("garbage_hello")), HasSubstr("is not JSON: \"Hello! I am a reward.\""));
  EXPECT_THAT(Starting(Faulty("dies_at_once")),
              HasSubstr("ended with exit code 3; the last it said: \"no module named torch\""));
  EXPECT_THAT(Starting(Faulty("ends_at_once")),
              EndsWith("ended with exit code 0 before it answered; does its last line call run()?"));
  EXPECT_THAT(Starting(Faulty("dies_at_length")),
              AllOf(HasSubstr("ended with exit code 2; the last it said: ...\""),
                    HasSubstr("/folder/mine.py: no such file\""), Not(HasSubstr("Error: "))));
  EXPECT_THAT(Starting(Faulty("other_protocol")), HasSubstr("speaks protocol 2, this plugin protocol 1"));
  EXPECT_THAT(Starting(Faulty("other_role")), HasSubstr("the program is no reward: it offers \"[\"coder\"]\""));
  EXPECT_THAT(Starting(Faulty("refuses")), HasSubstr("refused: cap must be even"));
  PoolOptions late = Faulty("late");
  late.start_seconds = 0.3;
  EXPECT_THAT(Starting(late), HasSubstr("did not answer \"initialize\" within 0.3 s (start_seconds)"));
}

TEST_F(Faults, OptionsAreHeldAgainstTheSchemaOfTheProgram) {
  PoolOptions options = Faulty("echo");
  options.options = {{"cap", "eight"}};
  EXPECT_THAT(Starting(options), HasSubstr("options.options.cap: expected a number, found \"eight\""));
  options.options = {{"cop", 8}};
  EXPECT_THAT(Starting(options), HasSubstr("options.options.cop: unknown key; did you mean \"cap\"?"));
}

// A program's schema has the keywords that a plugin's has.
TEST_F(Faults, ASchemaThatCannotBeCheckedIsRefused) {
  EXPECT_THAT(
      Starting(Faulty("odd_schema")),
      HasSubstr("cap: unknown keyword \"formt\" (docs/plugins.md lists the keywords of JSON Schema that count)"));
}

TEST_F(Faults, ARequestOf100MegabytesIsRefusedBeforeItIsSent) {
  Pool pool(host(), "reward", Faulty("echo"));
  EXPECT_EQ(test::MessageOf([&] { pool.Call("echo", std::string(100 << 20, 'x')); }),
            "a request of 100 MiB is too long for a program: at most 16 MiB are sent");
  EXPECT_EQ(pool.Call("echo", 7), 7);
}

}  // namespace
}  // namespace kgrpo::program
