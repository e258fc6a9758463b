// Every file in tests/config/broken, loaded: the whole message must be that of the .expected file beside it. To write
// the expected files anew after a deliberate change of wording: KGRPO_WRITE_EXPECTED=1 config_broken_test, then read
// the diff.
#include "config/load.h"
#include "fake_schemas.h"
#include "test.h"

namespace kgrpo {
namespace {

const fs::path& Folder() {
  static const fs::path folder = fs::path(KGRPO_SOURCE_DIR) / "tests" / "config" / "broken";
  return folder;
}

std::vector<std::string> BrokenFiles() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(Folder())) {
    if (entry.path().extension() == ".yaml" && entry.path().stem() != "extends_circle_back") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Read(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

class Broken : public testing::TestWithParam<std::string> {};

TEST_P(Broken, HasItsExactMessage) {
  fs::current_path(Folder());  // messages name the file as it was given
  LoadRequest request;
  request.file = GetParam() + ".yaml";
  std::string message;
  try {
    LoadPipeline(request, test::FakeSchema);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
    message = error.what();
  }
  ASSERT_NE(message, "") << "the file was accepted";
  const std::string here = fs::current_path().string();
  for (size_t at; (at = message.find(here)) != std::string::npos;) message.replace(at, here.size(), "{CWD}");
  const fs::path expected = Folder() / (GetParam() + ".expected");
  if (std::getenv("KGRPO_WRITE_EXPECTED") != nullptr) std::ofstream(expected) << message << "\n";
  EXPECT_EQ(message + "\n", Read(expected));
}

INSTANTIATE_TEST_SUITE_P(All, Broken, testing::ValuesIn(BrokenFiles()), [](const auto& info) { return info.param; });

TEST(BrokenFiles, AreMany) { EXPECT_GE(BrokenFiles().size(), 50U); }

}  // namespace
}  // namespace kgrpo
