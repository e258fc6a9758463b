// Regex: patterns have the same meaning in PCRE2 as in Oniguruma, or are refused by name.
#include "policy_qwen/tokenizer/regex.h"

#include <gmock/gmock.h>

#include "policy_qwen/tokenizer/unicode.h"
#include "test_files.h"

namespace kgrpo::tokenizer {
namespace {

std::vector<std::string> Matches(std::string_view pattern, std::string_view text) {
  std::vector<std::string> found;
  for (const auto& [start, end] : Regex(pattern).FindAll(text)) found.emplace_back(text.substr(start, end - start));
  return found;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RegexTest, FindsLeftmostWithoutOverlap) {
  EXPECT_THAT(Matches("aa|b", "aaabaab"), ElementsAre("aa", "b", "aa", "b"));
  EXPECT_THAT(Matches("\\s+(?!\\S)|\\s+", "a  b \n c  "), ElementsAre(" ", " ", " \n", " ", "  "));
}

TEST(RegexTest, PassesOverEmptyMatches) {
  const std::vector<std::pair<size_t, size_t>> found = Regex("x*").FindAll("axé");
  EXPECT_THAT(found, ElementsAre(std::pair<size_t, size_t>(0, 0), std::pair<size_t, size_t>(1, 2),
                                 std::pair<size_t, size_t>(4, 4)));
  EXPECT_THAT(Regex("x*").FindAll("").size(), 1u);
}

TEST(RegexTest, WhiteSpaceIsUnicodes) {
  for (const char* space :
       {" ", "\t", "\v", "\f", "\r", "\n", "\xC2\x85", "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\xA8", "\xE3\x80\x80"}) {
    EXPECT_THAT(Matches("\\s", space), ElementsAre(space));
    EXPECT_THAT(Matches("[^\\s]|\\S", space), IsEmpty());
  }
  // The Mongolian vowel separator, the zero-width space and the file separator are none; PCRE2's own \s has the first.
  for (const char* other : {"\xE1\xA0\x8E", "\xE2\x80\x8B", "\x1C"}) EXPECT_THAT(Matches("\\s", other), IsEmpty());
}

TEST(RegexTest, KnowsLettersOfLaterUnicodeVersions) {
  const std::string letter = "\xF0\xB1\x8D\x90";  // U+31350, Unicode 15
  EXPECT_THAT(Matches("\\p{L}", letter), ElementsAre(letter));
  EXPECT_THAT(Matches("[\\p{L}\\p{N}]", letter), ElementsAre(letter));
  EXPECT_THAT(Matches("\\P{L}|\\p{^L}|[^\\p{L}]", letter), IsEmpty());
}

TEST(RegexTest, CaseFoldsAsUnicodeDoes) {
  EXPECT_THAT(Matches("(?i:'s|'LL)", "'S 'ſ 'll 'lL"), ElementsAre("'S", "'ſ", "'ll", "'lL"));
}

TEST(RegexTest, ScriptsAreNotTheirExtensions) {
  // U+3001, the ideographic comma, is used with Han but is of no script.
  EXPECT_THAT(Matches("\\p{Han}", "、漢"), ElementsAre("漢"));
}

TEST(RegexTest, TakesLongTexts) {
  const std::string spaces(1'000'000, ' ');
  EXPECT_THAT(Regex("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+").FindAll(spaces),
              ElementsAre(std::pair<size_t, size_t>(0, spaces.size())));
  std::string mixed;
  for (int i = 0; i < 200'000; ++i) mixed += "a1";
  EXPECT_EQ(Regex("(?:\\p{L}|\\p{N})+").FindAll(mixed).size(), 1u);
}

TEST(RegexTest, RefusesWhatMeansSomethingElse) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"^a", "the anchor '^'"},
      {"a$", "the anchor '$'"},
      {"\\h", "the escape '\\h'"},
      {"\\R", "the escape '\\R'"},
      {"\\ba", "the escape '\\b'"},
      {"(a)\\1", "the escape '\\1'"},
      {"[\\W]", "the escape '\\W' inside a class"},
      {"[a[bc]]", "a class inside a class"},
      {"[a-z&&b]", "an intersection of classes"},
      {"[]a]", "an empty class"},
      {"[abc", "a class without an end"},
      {"(?<name>a)", "the group '(?<n'"},
      {"(?m:.)", "the group '(?m:'"},
      {"a{,3}", "a brace that is no"},
      {"a{2}+", "'+' after an interval"},
      {"\\pL", "a property without braces"},
      {"\\p{L", "a property without braces"},
      {"\\p{C}", "the unassigned code points"},
      {"\\xE9", "a byte above 0x7F"},
      {"\\x4", "an incomplete character code"},
      {"a\\", "a backslash at its end"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(MessageOf([&] { Regex regex(test.first); }),
                testing::AllOf(testing::HasSubstr(test.second), testing::HasSubstr("is not supported")))
        << test.first;
  }
  EXPECT_THAT(MessageOf([&] { Regex regex("(a"); }),
              testing::HasSubstr("the pattern (a is not a regular expression: missing"));
  EXPECT_THAT(MessageOf([&] { Regex regex("\\p{Klingon}"); }),
              testing::HasSubstr("is not a regular expression: unknown property"));
}

TEST(RegexTest, TranslatesCharacterCodes) {
  EXPECT_THAT(Matches("[\\x{4E00}-\\x{9FFF}]+|\\u3042|\\x41", "A一丁あ"), ElementsAre("A", "一丁", "あ"));
  EXPECT_THAT(Matches("\\v", "\v\n\f"), ElementsAre("\v"));
}

}  // namespace
}  // namespace kgrpo::tokenizer
