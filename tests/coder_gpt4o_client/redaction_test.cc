// Secrets in messages.
#include "coder_gpt4o/client/redaction.h"

#include "../processor_time.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

std::string Redacted(const Redaction& redaction, std::string text) {
  redaction.Apply(text);
  return text;
}

TEST(Redaction, HidesEverySecretEverywhere) {
  Redaction redaction;
  redaction.Hide("sk-secret-key");
  redaction.Hide("p@ss word!");
  EXPECT_EQ(Redacted(redaction, "sk-secret-key is wrong: 'sk-secret-key'"), "[hidden] is wrong: '[hidden]'");
  EXPECT_EQ(Redacted(redaction, "http://u:p%40ss%20word%21@proxy and p@ss word!"),
            "http://u:[hidden]@proxy and [hidden]");
  EXPECT_EQ(Redacted(redaction, "nothing"), "nothing");
}

// As JSON, HTML and URLs write them, and JSON within JSON.
TEST(Redaction, HidesASecretInEachOfItsEscapedForms) {
  Redaction redaction;
  redaction.Hide("sk/a+b=c&d\"e<f");
  for (const char* form : {R"(sk/a+b=c&d"e<f)", R"(sk\/a+b=c&d\"e<f)", R"(sk\/a\u002bb\u003dc\u0026d\"e\u003Cf)",
                           R"(sk\\/a+b\\u003dc&d\\\"e<f)", "sk%2Fa%2Bb%3dc%26d%22e%3Cf",
                           "sk&#x2F;a&#43;b&#x3d;c&amp;d&quot;e&lt;f", "sk&#47;a+b=c&#38;d&#34;e&#60;f"}) {
    EXPECT_EQ(Redacted(redaction, std::string("a ") + form + " b"), "a [hidden] b") << form;
  }
  EXPECT_EQ(Redacted(redaction, R"(sk\u002fa % & \ sk/a+b)"), R"(sk\u002fa % & \ sk/a+b)");
}

TEST(Redaction, HidesTheLongerOfTwo) {
  Redaction redaction;
  redaction.Hide("12345678");
  redaction.Hide("1234567890");
  EXPECT_EQ(Redacted(redaction, "1234567890"), "[hidden]");
}

TEST(Redaction, LongTextsTakeLinearTime) {
  Redaction redaction;
  redaction.Hide("\\\\sk&secret%");
  for (const char* piece : {"\\", "&#", "&amp;", "%25", "%", "\\u005c", "s"}) {
    const auto apply = [&](size_t size) {
      std::string text;
      while (text.size() < size) text += piece;
      redaction.Apply(text);
    };
    test::ExpectLinear([&] { apply(1 << 18); }, [&] { apply(1 << 20); }, piece);
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
