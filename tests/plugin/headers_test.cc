// Each header of the ABI stands alone, in every language version that a plugin may be written in, with each compiler
// that is installed; and includes no other header without need.
#include "base/directories.h"
#include "plugin/library.h"
#include "test.h"

namespace kgrpo {
namespace {

const fs::path kAbi = fs::path(KGRPO_SOURCE_DIR) / "core/abi", kSdk = fs::path(KGRPO_SOURCE_DIR) / "core/sdk";

std::string Read(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> Headers(const fs::path& folder) {
  std::vector<fs::path> headers;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) headers.push_back(entry.path());
  return headers;
}

bool Installed(const std::string& compiler) {
  return std::system((compiler + " --version > /dev/null 2>&1").c_str()) == 0;
}

// The name of a header as an include names it below kgrpo/.
std::string NameOf(const fs::path& header) { return fs::relative(header, kAbi / "kgrpo").string(); }

// Compiles one file that includes the headers of kgrpo/, each twice, and nothing else.
void ExpectCompiles(const std::string& compiler, const std::string& language, const std::string& standard,
                    const std::vector<std::string>& headers) {
  const TemporaryDirectory directory;
  const fs::path source = directory.path() / "alone", log = directory.path() / "log";
  std::string text;
  for (const std::string& header : headers) text += "#include <kgrpo/" + header + ">\n";
  std::ofstream(source) << text << text;
  const std::string command = compiler + " -x " + language + " -std=" + standard +
                              " -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I'" + kAbi.string() + "' -I'" +
                              kSdk.string() + "' '" + source.string() + "' > '" + log.string() + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command << "\n" << Read(log);
}

class Compiler : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!Installed(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  }
};

TEST_P(Compiler, TakesEachHeaderOfTheAbiAlone) {
  for (const fs::path& header : Headers(kAbi / "kgrpo")) {
    for (const char* standard : {"c11", "c17"}) ExpectCompiles(GetParam(), "c", standard, {NameOf(header)});
    for (const char* standard : {"c++17", "c++20", "c++2b"})
      ExpectCompiles(GetParam(), "c++", standard, {NameOf(header)});
  }
}

TEST_P(Compiler, TakesEachHeaderOfTheSdkAlone) {
  std::vector<std::string> all;
  for (const fs::path& header : Headers(kSdk / "kgrpo/sdk")) {
    all.push_back("sdk/" + header.filename().string());
    ExpectCompiles(GetParam(), "c++", "c++2b", {all.back()});  // the newest: its standard headers include least
  }
  for (const char* standard : {"c++17", "c++20"}) ExpectCompiles(GetParam(), "c++", standard, all);
}

INSTANTIATE_TEST_SUITE_P(Installed, Compiler, testing::Values("gcc", "clang"),
                         [](const auto& info) { return std::string(info.param); });

std::string WithoutComments(const std::string& text) {
  return std::regex_replace(text, std::regex("/\\*[^]*?\\*/"), "");
}

std::set<std::string> Words(const std::string& text) {
  const std::regex word("\\w+");
  return {std::sregex_token_iterator(text.begin(), text.end(), word), std::sregex_token_iterator()};
}

// The names that a header defines: types and macros.
std::set<std::string> Defined(const std::string& text) {
  std::set<std::string> names;
  for (const char* pattern : {"#define (\\w+)", "typedef (?:struct|enum) (\\w+)"}) {
    const std::regex definition(pattern);
    for (std::sregex_iterator match(text.begin(), text.end(), definition), end; match != end; ++match)
      names.insert((*match)[1]);
  }
  return names;
}

TEST(Headers, IncludeNothingWithoutNeed) {
  for (const fs::path& header : Headers(kAbi / "kgrpo")) {
    const std::string text = WithoutComments(Read(header));
    const std::set<std::string> used = Words(text);
    const std::regex include("#include \"((?:\\.\\./)?\\w+\\.h)\"");
    for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match) {
      const std::string name = (*match)[1];
      bool needed = name.ends_with("abi.h") && std::regex_search(text, std::regex("\\bu?int\\d+_t\\b|\\bsize_t\\b"));
      for (const std::string& defined : Defined(WithoutComments(Read(header.parent_path() / name))))
        needed = needed || used.contains(defined);
      EXPECT_TRUE(needed) << header.filename() << " includes " << name;
    }
  }
}

// The lines of a header and of all that it includes.
void AddLines(const std::string& header, std::map<std::string, size_t>* lines) {
  if (lines->contains(header)) return;
  const std::string text = Read(kAbi / "kgrpo" / header);
  (*lines)[header] = static_cast<size_t>(std::ranges::count(text, '\n'));
  const std::regex include("#include \"(\\w+\\.h)\"");
  for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end; ++match)
    AddLines((*match)[1], lines);
}

TEST(Headers, OfARoleAreReadInAFewMinutes) {
  for (const auto& [role, most] : {std::pair("reward.h", 360U), std::pair("coder.h", 360U)}) {
    std::map<std::string, size_t> lines;
    AddLines(role, &lines);
    size_t all = 0;
    for (const auto& [header, count] : lines) all += count;
    EXPECT_LE(all, most) << role;
  }
}

// The declaration in abi.h exports the entry of a plugin whose other symbols are hidden.
TEST(Headers, ExportThePluginsEntryWithoutCMake) {
  const TemporaryDirectory directory;
  const std::string library = (directory.path() / "reward_c.so").string(), log = library + ".log";
  const std::string command = "gcc -std=c11 -shared -fPIC -fvisibility=hidden -Wall -Wextra -Werror -Wl,-z,defs -I'" +
                              kAbi.string() + "' -o '" + library +
                              "' '" KGRPO_SOURCE_DIR "/examples/reward_c/reward_c.c' > '" + log + "' 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << command << "\n" << Read(log);
  EXPECT_EQ(PluginLibrary(library).name(), "reward_c");
  EXPECT_EQ(std::system(("nm -D --defined-only '" + library + "' > '" + log + "'").c_str()), 0);
  EXPECT_TRUE(std::regex_match(Read(log), std::regex("[0-9a-f]+ T kgrpo_plugin_entry\n"))) << Read(log);
}

TEST(Headers, BeginWithTheirLicence) {
  for (const fs::path& folder : {kAbi / "kgrpo", kSdk / "kgrpo/sdk"}) {
    for (const fs::path& header : Headers(folder))
      EXPECT_TRUE(Read(header).substr(0, 60).find("SPDX-License-Identifier: Apache-2.0") != std::string::npos)
          << header;
  }
}

// Each says what it takes from a header that it includes: a comment that names what is no longer used is stale.
TEST(Headers, SayTrulyWhatTheyIncludeOthersFor) {
  for (const fs::path& header : Headers(kAbi / "kgrpo")) {
    const std::string whole = Read(header), text = WithoutComments(whole);
    const std::set<std::string> used = Words(text);
    const std::regex include("#include \"\\w+\\.h\" */\\* ([^*]*) \\*/");
    for (std::sregex_iterator match(whole.begin(), whole.end(), include), end; match != end; ++match) {
      for (const std::string& word : Words((*match)[1])) {
        if (word.starts_with("kgrpo_")) {
          EXPECT_TRUE(used.contains(word)) << header.filename() << " uses no " << word;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kgrpo
