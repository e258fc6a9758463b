// Bodies of answers, streamed and whole, as real servers write them.
#include "coder_gpt4o/client/response_reader.h"

#include <tuple>

#include "coder_gpt4o/client/excerpt.h"
#include "coder_gpt4o/client/redaction.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

std::unique_ptr<ResponseReader> Read(const std::string& body, int status = 200, uint64_t most = 1 << 20,
                                     const Redaction* secrets = nullptr) {
  static const Redaction kNone;
  auto reader = std::make_unique<ResponseReader>(most, secrets == nullptr ? kNone : *secrets);
  // Byte by byte: what can be cut is cut.
  for (const char c : body) {
    if (!reader->Feed({&c, 1}, status)) break;
  }
  reader->Finish();
  return reader;
}

std::string Chunk(const std::string& delta, const std::string& finish = "null") {
  return R"(data: {"id":"c","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":)" + delta +
         R"(,"finish_reason":)" + finish + "}]}\n\n";
}

constexpr char kUsage[] =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18}}\n\n";
constexpr char kDone[] = "data: [DONE]\n\n";

TEST(ResponseReader, AnEscapedHalfOfACharacterIsReplaced) {
  const auto text = [](const char* first, const char* second) {
    const auto content = [](const char* piece) { return Chunk(std::string("{\"content\":\"") + piece + "\"}"); };
    const auto reader = Read(content(first) + content(second) + Chunk("{}", "\"stop\"") + kDone);
    EXPECT_TRUE(reader->Complete());
    return reader->Result().text;
  };
  const std::string face = "\xF0\x9F\x98\x80", unknown = "\xEF\xBF\xBD";
  EXPECT_EQ(text(R"(a\ud83d\ude00b)", ""), "a" + face + "b");
  EXPECT_EQ(text(R"(a\ud83d)", R"(\ude00b)"), "a" + unknown + unknown + "b");
  EXPECT_EQ(text(R"(\\ud83d \u00e9 \ud83d)", ""), "\\ud83d \xC3\xA9 " + unknown);
  EXPECT_EQ(text("a\xF0\x9F",
                 "\x98\x80"
                 "b"),
            "a????b");
}

TEST(ResponseReader, AStreamIsWholeOnceItSaysWhyItEnds) {
  const auto without_done = Read(Chunk(R"({"content":"all"})", "\"stop\""));
  EXPECT_TRUE(without_done->Complete());
  EXPECT_FALSE(without_done->Ended());
  EXPECT_FALSE(without_done->Result().usage_known);
  const auto without_reason = Read(Chunk(R"({"content":"all"})") + kDone);
  EXPECT_TRUE(without_reason->Complete());
  EXPECT_EQ(without_reason->Result().finish_reason, "");
}

TEST(ResponseReader, AWholeAnswerStaysWhole) {
  const std::string answer = Chunk(R"({"content":"all"})") + Chunk("{}", "\"stop\"");
  for (const std::string& after :
       {std::string("data: {\"error\":{\"message\":\"late\"}}\n\n"), std::string("data: {oops\n\n"),
        std::string("data: [DONE] \n\n"), std::string("data: \n\n"), std::string("data: oops\n\n") + kUsage + kDone}) {
    const auto reader = Read(answer + after);
    EXPECT_TRUE(reader->Complete()) << after;
    EXPECT_FALSE(reader->HasError()) << after;
    EXPECT_EQ(reader->Result().text, "all") << after;
    EXPECT_EQ(reader->Result().usage_known, after.find("usage") != std::string::npos) << after;
  }
  const auto long_after = Read(answer + ": " + std::string(2000, 'x'), 200, 1000);
  EXPECT_FALSE(long_after->TooLong());
  EXPECT_TRUE(long_after->Complete());
}

TEST(ResponseReader, EmptyEventsAndBlanksAreNoHarm) {
  const auto reader = Read("data:\n\n" + Chunk(R"({"content":"a"})") + "data: \n\ndata:\t\n\n" +
                           Chunk(R"({"content":"b"})") + "data:  [DONE] \n\n");
  ASSERT_TRUE(reader->Complete());
  EXPECT_TRUE(reader->Ended());
  EXPECT_EQ(reader->Result().text, "ab");
}

TEST(ResponseReader, CountsThatAreNoneAreUnknown) {
  const std::string answer = R"({"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":)";
  const std::tuple<const char*, uint64_t, uint64_t> kUsages[] = {
      {R"({"prompt_tokens":0,"completion_tokens":0})", 0, 0},
      {R"({"prompt_tokens":5})", 5, 0},  // the part that is stated counts
      {R"({"prompt_tokens":5,"completion_tokens":0})", 5, 0},
      {R"({"completion_tokens":2})", 0, 2},
      {R"({"prompt_tokens":"5","completion_tokens":2})", 0, 2},
      {R"({"prompt_tokens":5,"completion_tokens":-2})", 5, 0},
      {R"({"prompt_tokens":5,"completion_tokens":2.5})", 5, 0},
      {R"({"prompt_tokens":18446744073709551615,"completion_tokens":2})", 0, 0},
      {R"({"prompt_tokens":5,"completion_tokens":100000001})", 0, 0},
      {"{}", 0, 0},
      {"null", 0, 0},
      {"7", 0, 0}};
  for (const auto& [usage, prompt, completion] : kUsages) {
    const auto reader = Read(answer + usage + "}");
    ASSERT_TRUE(reader->Complete()) << usage;
    EXPECT_FALSE(reader->Result().usage_known) << usage;
    EXPECT_EQ(reader->Result().prompt_tokens, prompt) << usage;
    EXPECT_EQ(reader->Result().completion_tokens, completion) << usage;
  }
  EXPECT_EQ(Read(answer + R"({"total_tokens":1500}})")->Result().total_tokens, 1500U);
  // No text takes no tokens; and counts may come before their text.
  EXPECT_TRUE(Read(R"({"choices":[{"message":{"content":""},"finish_reason":"length"}],)"
                   R"("usage":{"prompt_tokens":5,"completion_tokens":0}})")
                  ->Result()
                  .usage_known);
  EXPECT_FALSE(Read("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":0}}\n\n" +
                    Chunk(R"({"content":"x"})", "\"stop\"") + kDone)
                   ->Result()
                   .usage_known);
}

// A secret that an excerpt's end, or the end of what is kept of a stream, would cut in two must not show its beginning.
TEST(ResponseReader, SecretsAreHiddenBeforeExcerptsAreCut) {
  Redaction secrets;
  secrets.Hide("sk-secret-0123456789");
  for (size_t filler = 270; filler < 310; ++filler) {
    const std::string echo = std::string(filler, 'x') + "sk-secret-0123456789 and so on";
    for (const std::string& body :
         {R"({"error":{"message":")" + echo + "\"}}", R"({"error":")" + echo + "\"}", R"({"detail":")" + echo + "\"}",
          R"({"other":")" + echo + "\"}", echo, "data: " + echo + "\n\n", ": " + echo + "\n\n"}) {
      for (const int status : {200, 500}) {
        const auto reader = Read(body, status, 1 << 20, &secrets);
        EXPECT_THAT(reader->Error().message + reader->Problem(), Not(HasSubstr("sk-"))) << filler << body;
      }
    }
  }
  // Of a stream only the beginning is kept; white space makes an excerpt reach its end.
  for (size_t filler = 3900; filler < 4040; ++filler) {
    const auto reader = Read(": " + std::string(filler, ' ') + "sk-secret-0123456789\n\n", 200, 1 << 20, &secrets);
    EXPECT_THAT(reader->Problem(), Not(HasSubstr("sk-"))) << filler;
  }
}

TEST(ResponseReader, DeepNestingIsNoHarm) {
  EXPECT_FALSE(Read("{\"choices\":" + std::string(200000, '['))->Complete());
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  for (const std::string& body : {"{\"choices\":" + deep + "}", "{\"error\":" + deep + "}", "{\"detail\":" + deep + "}",
                                  "{\"error\":{\"message\":" + deep + "}}", "{\"error\":{\"code\":" + deep + "}}",
                                  "data: {\"error\":" + deep + "}\n\n"}) {
    for (const int status : {200, 400}) {
      const auto reader = Read(body, status);
      EXPECT_FALSE(reader->Complete());
      EXPECT_LT(reader->Error().message.size(), 500U);
      EXPECT_LT(reader->Error().code.size(), 500U);
    }
  }
}

TEST(Excerpt, IsOneShortCleanLine) {
  EXPECT_EQ(Excerpt("  a\n\t b <i>c</i> \x01"), "a b c");
  EXPECT_EQ(Excerpt("a\xFF"
                    "b\xC3"),
            "a?b?");
  EXPECT_EQ(Excerpt("1 < 2 and a<b <br> c </p> <x"), "1 < 2 and a<b c <x");
  EXPECT_EQ(Excerpt("\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 4), "\xE2\x82\xAC\xE2\x82\xAC...");
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
