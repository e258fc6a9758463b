// Regex: patterns have the meaning that they have in Hugging Face's tokenizers, whatever Unicode version our Oniguruma
// has, or are refused by name.
#include "policy_qwen/tokenizer/regex.h"

#include <dlfcn.h>

#include "test.h"
#include "test_files.h"

namespace kgrpo::tokenizer {
namespace {

std::vector<std::string> Matches(const std::string& pattern, std::string_view text) {
  std::vector<std::string> found;
  for (const auto& [start, end] : Regex(pattern).FindAll(text)) found.emplace_back(text.substr(start, end - start));
  return found;
}

TEST(RegexTest, FindsLeftmostWithoutOverlap) {
  EXPECT_THAT(Matches("aa|b", "aaabaab"), ElementsAre("aa", "b", "aa", "b"));
  EXPECT_THAT(Matches("\\s+(?!\\S)|\\s+", "a  b \n c  "), ElementsAre(" ", " ", " \n", " ", "  "));
}

TEST(RegexTest, PassesOverEmptyMatches) {
  const std::vector<Span> found = Regex("x*").FindAll("axé");
  EXPECT_THAT(found, ElementsAre(Span(0, 0), Span(1, 2), Span(4, 4)));
  EXPECT_THAT(Regex("x*").FindAll("").size(), 1u);
}

TEST(RegexTest, WhiteSpaceIsUnicodes) {
  for (const char* space :
       {" ", "\t", "\v", "\f", "\r", "\n", "\xC2\x85", "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\xA8", "\xE3\x80\x80"}) {
    EXPECT_THAT(Matches("\\s", space), ElementsAre(space));
    EXPECT_THAT(Matches("[^\\s]|\\S", space), IsEmpty());
  }
  // The Mongolian vowel separator, the zero-width space and the file separator are none.
  for (const char* other : {"\xE1\xA0\x8E", "\xE2\x80\x8B", "\x1C"}) EXPECT_THAT(Matches("\\s", other), IsEmpty());
}

// U+31350, a Han letter, and U+11F50, a digit, are of Unicode 15; U+10D40, a digit, of Unicode 16.
TEST(RegexTest, KnowsCharactersOfLaterUnicodeVersions) {
  for (const char* letter : {"\U00031350", "\U00016D63"}) {
    for (const char* pattern : {"\\p{L}", "[\\p{L}\\p{N}]", "\\p{Lo}", "\\w", "[\\w]", "[^\\W]"})
      EXPECT_THAT(Matches(pattern, letter), ElementsAre(letter)) << pattern;
    for (const char* pattern : {"\\P{L}", "\\p{^L}", "[^\\p{L}]", "\\W", "[\\W]", "\\d"})
      EXPECT_THAT(Matches(pattern, letter), IsEmpty()) << pattern;
  }
  EXPECT_THAT(Matches("\\p{Han}", "\U00031350"), ElementsAre("\U00031350"));
  for (const char* digit : {"\U00011F50", "\U00010D40"}) {
    for (const char* pattern : {"\\d", "[\\d]", "\\p{N}", "\\p{Nd}", "\\w", "[^\\D]"})
      EXPECT_THAT(Matches(pattern, digit), ElementsAre(digit)) << pattern;
    for (const char* pattern : {"\\D", "[\\D]", "\\W", "\\p{L}"})
      EXPECT_THAT(Matches(pattern, digit), IsEmpty()) << pattern;
  }
  // Outside a class, `\w` has the superscript digits and the fractions of Latin-1.
  EXPECT_THAT(Matches("\\w", "\u00B2\u00BD"), ElementsAre("\u00B2", "\u00BD"));
  EXPECT_THAT(Matches("[\\w]|\\W", "\u00B2\u00BD"), IsEmpty());
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
  EXPECT_THAT(Regex("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+").FindAll(spaces), ElementsAre(Span(0, spaces.size())));
  std::string mixed;
  for (int i = 0; i < 200'000; ++i) mixed += "a1";
  EXPECT_EQ(Regex("(?:\\p{L}|\\p{N})+").FindAll(mixed).size(), 1u);
}

TEST(RegexTest, HasOnigurumasSyntax) {
  EXPECT_THAT(Matches("\\p{N}{1,3}+", "1234567"), ElementsAre("1234567"));  // repeats the interval
  EXPECT_THAT(Matches("\\p{N}{1,3}", "1234567"), ElementsAre("123", "456", "7"));
  EXPECT_THAT(Matches("a++a|ab", "aaab"), ElementsAre("ab"));  // possessive
  EXPECT_THAT(Matches("\\h+", "\tx0fG"), ElementsAre("0f"));   // hexadecimal digits
  EXPECT_THAT(Matches("\\X", "e\u0301\r\n"), ElementsAre("e\u0301", "\r\n"));
  EXPECT_THAT(Matches("[a-z&&[^aeiou]]+", "abcdef"), ElementsAre("bcd", "f"));
  EXPECT_THAT(Matches("^b|c$", "a\nbc\nc"), ElementsAre("b", "c", "c"));  // anchors are of lines
  EXPECT_THAT(Matches("(?<=a)b|(?<!a)c", "abacc"), ElementsAre("b", "c"));
  EXPECT_THAT(Matches("[\\x{4E00}-\\x{9FFF}]+|\\u3042|\\x41", "A一丁あ"), ElementsAre("A", "一丁", "あ"));
  EXPECT_THAT(Matches("\\v", "\v\n\f"), ElementsAre("\v"));
}

TEST(RegexTest, ReplacesAllMatches) {
  EXPECT_EQ(Regex(" ").ReplaceAll(" a  b", "\u2581"), "\u2581a\u2581\u2581b");
  EXPECT_EQ(Regex("x*").ReplaceAll("axb", "-"), "-a-b-");
  EXPECT_EQ(Regex("a").ReplaceAll("", "-"), "");
}

TEST(RegexTest, NamesTheWrongPattern) {
  const auto message = [](const std::string& pattern) { return MessageOf([&] { Regex regex(pattern); }); };
  EXPECT_EQ(message("(a"), "the pattern (a is not a regular expression: end pattern with unmatched parenthesis");
  EXPECT_EQ(message("[abc"), "the pattern [abc is not a regular expression: premature end of char-class");
  EXPECT_EQ(message("a\\"), "the pattern a\\ is not a regular expression: end pattern at escape");
  EXPECT_EQ(message("\\p{Klingon}"),
            "the pattern \\p{Klingon} is not a regular expression: invalid character property name {Klingon}");
  EXPECT_EQ(message("x[[:punct:]]"),
            "the pattern x[[:punct:]] uses [:punct:] (at byte 2), which differs between Oniguruma's versions");
  EXPECT_EQ(message("\\p{Cn}"),
            "the pattern \\p{Cn} uses \\p{Cn} (at byte 0), which differs between Oniguruma's versions");
}

// Debian's libonig exports functions of these names, too. A program that links it must still get libc's.
TEST(RegexTest, LeavesThePosixFunctionsAlone) {
  for (const char* name : {"regcomp", "regexec", "regfree", "regerror"}) {
    Dl_info found{};
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, name), &found), 0) << name;
    EXPECT_THAT(found.dli_fname, testing::HasSubstr("libc.so")) << name;
  }
}

TEST(RegexTest, ThreadsCompileAndSearch) {
  const Regex shared("\\p{L}+|\\p{N}{1,3}");
  std::vector<size_t> found(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        found[t] += shared.FindAll("one 1234 two").size() + Regex("a{" + std::to_string(i) + "}b").FindAll("ab").size();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(found, testing::Each(200u * 4 + 2));
}

}  // namespace
}  // namespace kgrpo::tokenizer
