// Runs build/bin/kgrpo-host in a folder through a shell, as a user would. Used by the tests of this folder.
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

// Runs kgrpo-host in `directory`, which also holds its caches and its output, with the plugin of tests/fixtures/plugins
// beside those of the build.
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
