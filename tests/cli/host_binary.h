// Runs build/bin/kgrpo-host in a folder through a shell, as a user would. Used by the tests of this folder.
#ifndef KGRPO_TESTS_CLI_HOST_BINARY_H
#define KGRPO_TESTS_CLI_HOST_BINARY_H

#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <kgrpo/support/sqlite.h>

namespace kgrpo::test {

struct Result {
  int code = 0;  // the exit code; 128 + the signal's number if a signal ended the process
  std::string out, err;
};

inline std::string Read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void Write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

// Every file and folder below a folder, with its content. Empty if the folder does not exist.
inline std::map<std::string, std::string> Tree(const std::filesystem::path& folder) {
  std::map<std::string, std::string> tree;
  if (!std::filesystem::exists(folder)) return tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    tree[entry.path().lexically_relative(folder).string()] =
        entry.is_regular_file() ? Read(entry.path()) : "(not a file)";
  }
  return tree;
}

// The last step of training with recorded rounds; 0 without one. Cheap enough to be asked again and again.
inline int64_t RecordedStep(const std::filesystem::path& run) {
  const std::filesystem::path file = run / "run.sqlite";
  if (!std::filesystem::exists(file)) return 0;
  Database database(file, Database::ToRead(file));
  if (!database.HasTable("rounds")) return 0;
  Statement select(database, "SELECT max(step) FROM rounds WHERE purpose = 'train'");
  return select.Step() ? select.Integer(0) : 0;
}

// The recorded rounds of training, a text for each step, without times and costs: equal runs have equal texts. Empty
// without a database, or while it has no tables.
inline std::map<int64_t, std::string> StepSamples(const std::filesystem::path& run) {
  std::map<int64_t, std::string> steps;
  const std::filesystem::path file = run / "run.sqlite";
  if (!std::filesystem::exists(file)) return steps;
  Database database(file, Database::ToRead(file));
  if (!database.HasTable("rounds")) return steps;
  Statement select(database,
                   "SELECT step, trajectory, round, prompt, suggestion, hex(prompt_ids), hex(completion_ids), "
                   "hex(logprobs), truncated, code_a, code_b, code_c, coder_outcome, coder_summary, coder_message, "
                   "unchanged, applied, speedup, reward, idle_reward, return, advantage, verdict, correct, seconds, "
                   "diagnosis FROM rounds WHERE purpose = 'train' ORDER BY step, trajectory, round");
  while (select.Step()) {
    std::string& text = steps[select.Integer(0)];
    for (int column = 1; column <= 25; ++column) text += select.Text(column) + '|';
    text += '\n';
  }
  return steps;
}

// Runs a program of the build in `directory`, which also holds its caches and its output, with the plugin of
// tests/fixtures/plugins beside those of the build.
inline Result RunProgram(const std::string& program, const std::filesystem::path& directory,
                         const std::string& arguments, const std::string& input) {
  Write(directory / "stdin", input);
  const std::string command = "cd '" + directory.string() + "' && KGRPO_CACHE_DIR=cache KGRPO_PLUGIN_PATH='" +
                              KGRPO_BINARY_DIR "/tests/plugins' '" KGRPO_BINARY_DIR "/" + program + "' " + arguments +
                              " < stdin > out 2> err";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Read(directory / "out"),
          Read(directory / "err")};
}

inline Result RunHost(const std::filesystem::path& directory, const std::string& arguments,
                      const std::string& input = "") {
  return RunProgram("bin/kgrpo-host", directory, arguments, input);
}

// The program of tests/model.
inline Result RunModel(const std::filesystem::path& directory, const std::string& arguments,
                       const std::string& input = "") {
  return RunProgram("tests/kgrpo-model", directory, arguments, input);
}

}  // namespace kgrpo::test
#endif
