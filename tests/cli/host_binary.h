// build/bin/kgrpo-host as a person would start it: in a folder, through a shell. Used by the tests of this folder.
#ifndef KGRPO_TESTS_CLI_HOST_BINARY_H
#define KGRPO_TESTS_CLI_HOST_BINARY_H

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace kgrpo::test {

struct Result {
  int code = 0;  // the exit code; 128 + the signal's number for a process that died of one
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

// Every file and folder below, with what is in it. Empty where there is no such folder.
inline std::map<std::string, std::string> Tree(const std::filesystem::path& folder) {
  std::map<std::string, std::string> tree;
  if (!std::filesystem::exists(folder)) return tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    tree[entry.path().lexically_relative(folder).string()] =
        entry.is_regular_file() ? Read(entry.path()) : "(not a file)";
  }
  return tree;
}

// Runs it with `directory` as working directory, where caches and what it prints go too, and the plugin of
// tests/fixtures/plugins beside those of the build.
inline Result RunHost(const std::filesystem::path& directory, const std::string& arguments,
                      const std::string& input = "") {
  Write(directory / "stdin", input);
  const std::string command = "cd '" + directory.string() + "' && KGRPO_CACHE_DIR=cache KGRPO_PLUGIN_PATH='" +
                              KGRPO_BINARY_DIR "/tests/plugins' '" KGRPO_BINARY_DIR "/bin/kgrpo-host' " + arguments +
                              " < stdin > out 2> err";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Read(directory / "out"),
          Read(directory / "err")};
}

}  // namespace kgrpo::test
#endif
