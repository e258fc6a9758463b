// config/hidden_keys.h: keys in messages, and texts that only resemble keys.
#include "config/hidden_keys.h"

#include <stdlib.h>

#include "config/diagnostic.h"
#include "config/node.h"
#include "test.h"

namespace kgrpo {
namespace {

std::string Hidden(std::string text) {
  HideKeys(&text);
  return text;
}

TEST(HideKeys, KnowsTheKeysOfServices) {
  EXPECT_EQ(Hidden("found \"sk-test-0123456789abcdef\", twice: sk-test-0123456789abcdef."),
            "found \"[hidden]\", twice: [hidden].");
  EXPECT_EQ(Hidden("Bearer sk-0123456789abcdef"), "Bearer [hidden]");
  EXPECT_EQ(Hidden("hf_0123456789abcdefghijABCDEFGHIJ/gsk_0123456789abcdefghijABCD"), "[hidden]/[hidden]");
  for (const char* word : {"", "sk-", "sk-learn", "task-0123456789abcdef-and-so-on", "hf_transfer_on", "runs/sk-small",
                           "models/hf_SmolLM2-135M-Instruct-tuned-again"})
    EXPECT_EQ(Hidden(word), word);
}

TEST(HideKeys, KnowsTheKeysOfTheEnvironment) {
  setenv("KGRPO_TEST_API_KEY", "0a1b2c3d4e5f ", 1);
  setenv("KGRPO_TEST_TOKEN", "short", 1);
  setenv("KGRPO_TEST_KEYBOARD", "compose-key", 1);
  EXPECT_EQ(Hidden("unknown key 0a1b2c3d4e5f0"), "unknown key [hidden]0");
  EXPECT_EQ(Hidden("short compose-key"), "short compose-key");
  unsetenv("KGRPO_TEST_API_KEY");
  EXPECT_EQ(Hidden("0a1b2c3d4e5f"), "0a1b2c3d4e5f");
  unsetenv("KGRPO_TEST_TOKEN");
  unsetenv("KGRPO_TEST_KEYBOARD");
}

// A variable may hold any word, "local" say: a file that has it is not refused.
TEST(FindKey, TakesNoNameForAKey) {
  EXPECT_EQ(FindKey("found sk-test-0123456789abcdef"), 6u);
  EXPECT_EQ(FindKey("sk-Ab_0123456789abcdefgh"), 0u);
  EXPECT_EQ(FindKey("hf_0123456789abcdefghijABCDEFGHIJ"), 0u);
  EXPECT_FALSE(FindKey("task-0123456789abcdef-and-so-on sk-learn"));
  EXPECT_FALSE(FindKey("runs/sk-experiments-2026-11-21"));
  EXPECT_FALSE(FindKey("sk_internationalisation-1"));
}

TEST(HideKeys, TellsWhatWasHiddenBefore) {
  std::string text = "found [hidden]";
  EXPECT_TRUE(HideKeys(&text));
  text = "found nothing";
  EXPECT_FALSE(HideKeys(&text));
}

// Escaped, its first letter would seem to be within a word.
TEST(HideKeys, AlsoBehindWhatIsEscaped) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.scalar = "\tsk-test-0123456789abcdef";
  EXPECT_EQ(Describe(node), "\"\\t[hidden]\"");
}

TEST(HideKeys, NoMistakeRepeatsOne) {
  const std::string key = "sk-test-0123456789abcdef";
  std::vector<Diagnostic> mistakes(2);
  for (size_t i = 0; i < 2; ++i) {
    mistakes[i].at.file = "p.yaml";
    mistakes[i].at.line = static_cast<int>(i) + 1;
    mistakes[i].at.column = 1;
    mistakes[i].path = i == 0 ? "coder." + key : "a";
    mistakes[i].message = i == 0 ? "unknown key" : "b";
  }
  mistakes[0].suggestion = key;
  const ConfigError error(mistakes);
  EXPECT_EQ(std::string(error.what()),
            "p.yaml:1:1: coder.[hidden]: unknown key (text that looks like a key is hidden; revoke a key that was "
            "written into a file); did you mean \"[hidden]\"?\np.yaml:2:1: a: b");
  EXPECT_EQ(error.diagnostics()[0].path, "coder.[hidden]");  // of which `check --json` is made
}

}  // namespace
}  // namespace kgrpo
