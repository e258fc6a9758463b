// kgrpo-host with the plugin coder_gpt4o and a service on this machine; the other parts are the small ones of
// tests/fixtures/plugins. The key must not appear in any output or file. Used by the tests of this folder that run
// commands.
#ifndef KGRPO_TESTS_CODER_GPT4O_RUN_WITH_SERVICE_H
#define KGRPO_TESTS_CODER_GPT4O_RUN_WITH_SERVICE_H

#include "../cli/host_binary.h"
#include "../coder_gpt4o_client/server.h"
#include "base/directories.h"
#include "test.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/types.h>

#include <charconv>

namespace kgrpo::coder_gpt4o {

inline constexpr const char* kKey = "sk-test-1234567890abcdef";

// A kernel that depends on the prompt alone.
inline std::string KernelFor(const std::string& body) {
  const size_t number = std::hash<std::string>()(nlohmann::json::parse(body)["messages"].dump()) % 1000000;
  return "// a\nvoid launch() { int n" + std::to_string(number) + "; }\n";
}

inline void AnswerKernel(const httplib::Request& request, httplib::Response& response) {
  AnswerRight(request, response, "Done.\n```cuda\n" + KernelFor(request.body) + "```");
}

// The number that an SQL query returns from a run's database.
inline double Number(const std::filesystem::path& file, const char* sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
  const double number = sqlite3_column_double(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return number;
}

class RunWithServiceTest : public testing::Test {
 protected:
  RunWithServiceTest() {
    setenv("OPENAI_API_KEY", kKey, 1);
    for (const char* variable : {"http_proxy", "https_proxy", "all_proxy"}) unsetenv(variable);
    test::Write(directory_.path() / "problems/one/reference.cu", "void launch() {}\n");
    test::Write(directory_.path() / "problems/two/reference.cu", "void launch() {} // two\n");
  }

  void WritePipeline(const std::string& url, const std::string& options = "") {
    test::Write(directory_.path() / "p.yaml",
                "seed: 5\n"
                "policy: {plugin: fakes, options: {model: random}}\n"
                "coder:\n  plugin: coder_gpt4o\n  options:\n    base_url: " +
                    url + "\n    prices: {gpt-4o: {prompt: 1000, completion: 2000}}\n" + options +
                    "evaluator: {plugin: fakes}\nreward: {plugin: fakes}\ntrainer: {plugin: fakes}\n"
                    "problems: {train: ['problems/*'], heldout: [problems/two]}\n"
                    "loop: {max_steps: 3, batch_size: 4, rounds: 2, sampling: {max_new_tokens: 6}}\n"
                    "prompt: {user: 'improve {{problem.name}}'}\n");
  }

  // Fails the test if the key appears in any output or file of the folder.
  test::Result Host(const std::string& arguments) {
    const test::Result result = test::RunHost(directory_.path(), arguments);
    for (const auto& [file, text] : test::Tree(directory_.path()))
      EXPECT_EQ(text.find(kKey), std::string::npos) << "the key is in " << file;
    return result;
  }

  // The coder's part of a run's samples.
  std::string Samples(const std::string& run) {
    std::string all;
    for (const auto& [step, text] : test::StepSamples(directory_.path() / run)) all += text;
    return all;
  }

  TemporaryDirectory directory_;
};

// The folder in /proc of the kgrpo-host, or of the program that it became (kgrpo-eval), whose command line has the
// word; empty if there is none.
inline std::filesystem::path HostProcess(const std::string& word) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!test::Read(entry.path() / "comm").starts_with("kgrpo-")) continue;
    if (test::Read(entry.path() / "cmdline").find(word) != std::string::npos) return entry.path();
  }
  return {};
}

// Sends a signal to that kgrpo-host, by default the signal of Ctrl-C. If there is no such process, fails the test and
// returns false; the caller must not wait for the stop then.
inline bool StopHost(const std::string& word, int with = SIGINT) {
  const std::string pid = HostProcess(word).filename().string();
  pid_t number = 0;
  std::from_chars(pid.data(), pid.data() + pid.size(), number);
  if (number > 0 && kill(number, with) == 0) return true;
  ADD_FAILURE() << "no kgrpo-host runs with " << word;
  return false;
}

}  // namespace kgrpo::coder_gpt4o
#endif
