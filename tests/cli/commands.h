// A folder with two problems and a pipeline, and the real binary run in it, with the small plugin of
// tests/fixtures/plugins in every part. Used by the tests of this folder, which has a file for each kind of command.
#ifndef KGRPO_TESTS_CLI_COMMANDS_H
#define KGRPO_TESTS_CLI_COMMANDS_H

#include "base/directories.h"
#include "host_binary.h"
#include "test.h"

namespace kgrpo {

// Runs commands in a new folder with two problems and a pipeline.
class CliTest : public testing::Test {
 protected:
  CliTest() {
    Write("problems/one/reference.cu", "void launch() {}\n");
    Write("problems/two/reference.cu", "void launch() {} // two\n");
    Write("p.yaml",
          "seed: 5\n"
          "policy: {plugin: fakes, options: {model: random}}\n"
          "coder: {plugin: fakes}\nevaluator: {plugin: fakes}\nreward: {plugin: fakes}\n"
          "trainer: {plugin: fakes}\n"
          "problems: {train: ['problems/*'], heldout: [problems/two]}\n"
          "loop: {max_steps: 3, batch_size: 4, rounds: 2, sampling: {max_new_tokens: 6}}\n"
          "prompt: {user: 'improve {{problem.name}}'}\n");
  }

  void Write(const std::string& file, const std::string& text) { test::Write(directory_.path() / file, text); }

  // `arguments` are interpreted by a shell.
  test::Result Run(const std::string& arguments, const std::string& input = "") {
    return test::RunHost(directory_.path(), arguments, input);
  }

  test::Result Model(const std::string& arguments, const std::string& input = "") {
    return test::RunModel(directory_.path(), arguments, input);
  }

  static std::vector<nlohmann::json> Lines(const std::string& text) {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  TemporaryDirectory directory_;
};

}  // namespace kgrpo
#endif
