// config/quotes.h: finding the quote of a file that is never closed.
#include "config/quotes.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace kgrpo {
namespace {

// As text in quotes may look that is closed all the same.
TEST(LastQuotedText, TellsWhetherItIsClosed) {
  const auto closed = [](const std::string& yaml) {
    const std::optional<QuotedText> text = LastQuotedText(yaml);
    return !text ? "none" : text->closed ? "closed" : "open";
  };
  EXPECT_STREQ(closed("a: b"), "none");
  EXPECT_STREQ(closed("a: don't # \"\n"), "none");
  EXPECT_STREQ(closed("a: |\n  \"b\n"), "none");
  EXPECT_STREQ(closed("a: \"b\""), "closed");
  EXPECT_STREQ(closed("a: 'it''s'\nb: don't\n"), "closed");
  EXPECT_STREQ(closed("a: 'it''s\n"), "open");
  EXPECT_STREQ(closed("a: \"b\\\"\n"), "open");
  EXPECT_STREQ(closed("a: \"b \\\n  c\"\n"), "closed");
  EXPECT_STREQ(closed("\xEF\xBB\xBF{a: \"b\", c: 'd'}"), "closed");
  EXPECT_STREQ(closed("\"a: b\n"), "open");
  EXPECT_STREQ(closed("a: 'b'\r\nc: \"d\r\n"), "open");
  EXPECT_STREQ(closed("a: [b, 'c]\n"), "open");
}

}  // namespace
}  // namespace kgrpo
