// The short way through a stream's chunks: taken only where the long way would say the same.
#include "coder_gpt4o/client/content_chunk.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "random/keyed.h"

namespace kgrpo::coder_gpt4o {
namespace {

TEST(ContentChunk, TakesAPlainChunk) {
  for (
      const char* chunk : {
          R"({"choices":[{"delta":{"content":"a\u00e9\n"}}]})",
          R"({"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00e9\n","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"error":null,"obfuscation":"xyz"})",
          R"({"choices":[{"logprobs":{"content":[{"token":"b","finish_reason":"stop"}],"error":1},"delta":{"content":"a\u00e9\n","x":{"content":"c"}}}],"extra":[{"delta":{"content":"d"}}]})",
      }) {
    std::string text = "before ";
    EXPECT_TRUE(TakeContentChunk(chunk, text)) << chunk;
    EXPECT_EQ(text, "before a\xC3\xA9\n");
  }
}

TEST(ContentChunk, LeavesEverythingElse) {
  for (const char* chunk : {
           "",
           "x",
           "[]",
           "\"content\"",
           "[[[[[[[[[[[[[[[[[[[[",
           "{}",
           R"({"choices":[]})",
           R"({"choices":[{}]})",
           R"({"choices":["a"]})",
           R"({"choices":[{"delta":{}}]})",
           R"({"choices":[{"delta":{"content":null}}]})",
           R"({"choices":[{"delta":{"content":["a"]}}]})",
           R"({"choices":[{"delta":{"content":{"a":"b"}}}]})",
           R"({"choices":[{"delta":{"content":"a","content":"b"}}]})",
           R"({"choices":[{"delta":{"content":"a","refusal":"no"}}]})",
           R"({"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]})",
           R"({"choices":[{"index":1,"delta":{"content":"a"}}]})",
           R"({"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]})",
           R"({"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}})",
           R"({"choices":[{"delta":{"content":"a"}}],"error":{"message":"b"}})",
           R"({"choices":[{"delta":{"content":"a"}}],"error":"b"})",
           R"({"choices":[{"delta":{"content":"a"}}])",
           R"({"choices":[{"delta":{"content":"a"}}]} {})",
           R"({"choices":[{"delta":{"content":"a"}}],"choices":[]})",
           R"({"choices":[{"delta":{"content":"a"},"delta":{}}]})",
           R"({"choices":[{"delta":{"content":"a"},"finish_re\u0061son":"stop"}]})",
           R"({"choices":[{"delta":{"content":"a"}}],"n":01})",
           R"({"choices":[{"delta":{"content":"a"}}],"n":1.})",
           R"({"choices":[{"delta":{"content":"a"}}],"n":1e999})",
           R"({"choices":[{"delta":{"content":"a"}}],"n":nullnull})",
           R"({"choices":[{"delta":{"content":"a\ud83d"}}]})",
           R"({"id":"a\ude00","choices":[{"delta":{"content":"b"}}]})",
           R"({"choices":[{"delta":{"content":"a\x"}}]})",
           R"({"choices":[{"delta":{"content":"a\u12"}}]})",
           "{\"choices\":[{\"delta\":{\"content\":\"a\nb\"}}]}",
           "{\"choices\":[{\"delta\":{\"content\":\"\xFF\"}}]}",
           "{\"choices\":[{\"delta\":{\"content\":\"\xC0\xAF\"}}]}",
           "{\"choices\":[{\"delta\":{\"content\":\"\xED\xA0\x80\"}}]}",
           "{\"choices\":[{\"delta\":{\"content\":\"\xF4\x90\x80\x80\"}}]}",
           "{\"choices\":[{\"delta\":{\"content\":\"\xE2\x82\"}}]}",
       }) {
    std::string text = "before";
    EXPECT_FALSE(TakeContentChunk(chunk, text)) << chunk;
    EXPECT_EQ(text, "before");
  }
}

TEST(ContentChunk, ResolvesEscapesAsAParserDoes) {
  std::string text;
  EXPECT_TRUE(
      TakeContentChunk(R"({"choices":[{"delta":{"content":"\u003c<<\"\\\/\b\f\n\r\t\u0000\u00df\u20ac€😀"}}]})", text));
  using namespace std::string_literals;
  EXPECT_EQ(text, "<<<\"\\/\b\f\n\r\t\0\xC3\x9F\xE2\x82\xAC\xE2\x82\xAC\xF0\x9F\x98\x80"s);
}

// What the long way makes of a chunk that the short way took: the same piece, and nothing beside it.
void ExpectTheSame(const std::string& chunk, const std::string& piece) {
  const nlohmann::json parsed = nlohmann::json::parse(chunk, nullptr, false);
  ASSERT_TRUE(parsed.is_object()) << chunk;
  for (const char* name : {"error", "usage"}) EXPECT_TRUE(parsed.value(name, nlohmann::json()).is_null()) << chunk;
  ASSERT_EQ(parsed["choices"].size(), 1u) << chunk;
  const nlohmann::json& choice = parsed["choices"][0];
  EXPECT_EQ(choice.value("index", 0), 0) << chunk;
  EXPECT_TRUE(choice.value("finish_reason", nlohmann::json()).is_null()) << chunk;
  EXPECT_TRUE(choice["delta"].value("refusal", nlohmann::json()).is_null()) << chunk;
  EXPECT_EQ(choice["delta"]["content"], piece) << chunk;
}

TEST(ContentChunk, NeverTakesWhatAParserWouldReadOtherwise) {
  const std::vector<std::string> good = {
      R"({"id":"x","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00e9\n","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null})",
      R"({ "choices" : [ { "delta" : { "content" : "€ \\ <" } , "index" : 0 } ] , "t" : [ -0.5, true, {} ] })"};
  const std::vector<std::string> bits = {"\"",
                                         "\\",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "0",
                                         "1",
                                         "-",
                                         ".",
                                         "e",
                                         "null",
                                         " ",
                                         "\n",
                                         "\xE2",
                                         "\x82",
                                         "\\u",
                                         "d8",
                                         "\"content\":\"b\"",
                                         "\"usage\":1",
                                         "\"error\":\"x\"",
                                         "\"index\":1",
                                         "\"delta\":{}",
                                         "\"finish_reason\":\"stop\""};
  size_t taken = 0, changed = 0;
  for (uint64_t i = 0; i < 40000; ++i) {
    KeyedStream random(1, "chunks", {i});
    std::string chunk = good[random.Below(good.size())];
    const std::string before = chunk;
    for (uint64_t edits = random.Below(4); edits > 0; --edits) {
      const size_t at = random.Below(chunk.size());
      const size_t length = random.Below(3);
      chunk.replace(at, length, random.Below(2) == 0 ? bits[random.Below(bits.size())] : "");
    }
    std::string text;
    if (!TakeContentChunk(chunk, text)) {
      EXPECT_EQ(text, "");
      continue;
    }
    ++taken;
    changed += chunk != before ? 1 : 0;
    ExpectTheSame(chunk, text);
  }
  EXPECT_GT(taken, 10000u);
  EXPECT_GT(changed, 1000u);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
