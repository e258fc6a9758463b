// Secrets in messages.
#include "coder_gpt4o/client/redaction.h"

#include <gtest/gtest.h>

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

TEST(Redaction, HidesTheLongerOfTwo) {
  Redaction redaction;
  redaction.Hide("12345678");
  redaction.Hide("1234567890");
  EXPECT_EQ(Redacted(redaction, "1234567890"), "[hidden]");
}

TEST(Redaction, DropsASecretsBeginningWhereATextWasCut) {
  Redaction redaction;
  redaction.Hide("sk-secret-key");
  std::string text = "sk-secret-key and sk-secr";
  redaction.ApplyToCut(text);
  EXPECT_EQ(text, "[hidden] and ");
  text = "all of sk-secret-key";
  redaction.ApplyToCut(text);
  EXPECT_EQ(text, "all of [hidden]");
}

TEST(Redaction, LeavesWordsAlone) {
  Redaction redaction;
  redaction.Hide("");
  redaction.Hide("beta");
  EXPECT_EQ(Redacted(redaction, "a beta"), "a beta");
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
