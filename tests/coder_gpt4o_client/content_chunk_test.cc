// The short way through a stream's chunks: taken only where the long way would say the same.
#include "coder_gpt4o/client/content_chunk.h"

#include <gtest/gtest.h>

#include <string>

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
           "{\"choices\":[{\"delta\":{\"content\":\"\xFF\"}}]}",
       }) {
    std::string text = "before";
    EXPECT_FALSE(TakeContentChunk(chunk, text)) << chunk;
    EXPECT_EQ(text, "before");
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
