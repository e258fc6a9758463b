// Shared by the tokenizer's tests: golden files and temporary folders.
#ifndef KGRPO_TESTS_TOKENIZER_TEST_FILES_H_
#define KGRPO_TESTS_TOKENIZER_TEST_FILES_H_
#include <stdlib.h>
#include "test.h"

#include <stdexcept>

namespace kgrpo::tokenizer {

inline std::filesystem::path GoldenFolder() { return KGRPO_BINARY_DIR "/test_data/tokenizer"; }

inline std::filesystem::path TemplatesFolder() { return GoldenFolder() / "templates"; }

inline std::vector<std::string> ReadLines(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("no golden file " + file.string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A folder for one test, removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kgrpo_tokenizer_test.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& name, std::string_view text) const {
    std::ofstream stream(path_ / name, std::ios::binary);
    stream << text;
    ASSERT_TRUE(stream.flush()) << name;
  }

 private:
  std::filesystem::path path_;
};

// The message of the Error that `action` throws, with `folder` written as "DIR" in it.
template <typename Action>
std::string MessageOf(Action&& action, const std::filesystem::path& folder = {}) {
  try {
    action();
  } catch (const Error& error) {
    std::string message = error.what();
    if (folder.empty()) return message;
    for (size_t at; (at = message.find(folder.string())) != std::string::npos;)
      message.replace(at, folder.string().size(), "DIR");
    return message;
  }
  return "(no error)";
}

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_TESTS_TOKENIZER_TEST_FILES_H_
