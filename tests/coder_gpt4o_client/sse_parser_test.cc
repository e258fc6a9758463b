// Server-sent events, cut in every place.
#include "coder_gpt4o/client/sse_parser.h"

#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

std::vector<std::string> Parse(const std::vector<std::string>& pieces) {
  std::vector<std::string> events;
  SseParser parser([&](std::string_view data) { events.emplace_back(data); });
  for (const std::string& piece : pieces) parser.Feed(piece);
  parser.Finish();
  return events;
}

TEST(SseParser, PassesOverCommentsAndOtherFields) {
  EXPECT_THAT(Parse({": OPENROUTER PROCESSING\n\nevent: x\nid: 1\nretry: 5\ndata: a\ndatax: b\n\n: end\n\n"}),
              ElementsAre("a"));
}

TEST(SseParser, AnEventWithoutDataIsNone) { EXPECT_THAT(Parse({"event: ping\n\n\n\n"}), IsEmpty()); }

TEST(SseParser, TakesALastEventThatNothingEnds) {
  EXPECT_THAT(Parse({"data: a\n\ndata: [DONE]"}), ElementsAre("a", "[DONE]"));
}

// Every cut of a stream into three pieces gives the same: within a CRLF, a field's name, a UTF-8 character.
TEST(SseParser, DoesNotMindWhereThePiecesEnd) {
  const std::string stream =
      "\xEF\xBB\xBF: hi\r\n\r\ndata: {\"t\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"}\r\n\r\ndata: x\rdata: y\n\ndata: "
      "[DONE]\n\n";
  const std::vector<std::string> whole = Parse({stream});
  ASSERT_THAT(whole, ElementsAre("{\"t\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"}", "x\ny", "[DONE]"));
  for (size_t i = 0; i <= stream.size(); ++i) {
    for (size_t j = i; j <= stream.size(); ++j) {
      ASSERT_EQ(Parse({stream.substr(0, i), stream.substr(i, j - i), stream.substr(j)}), whole) << i << ", " << j;
    }
  }
  std::vector<std::string> bytes;
  for (const char c : stream) bytes.emplace_back(1, c);
  EXPECT_EQ(Parse(bytes), whole);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
