// Invalid options are refused before anything is sent, with a message that says what to do.
#include <sys/prctl.h>
#include <sys/resource.h>

#include "server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

std::string Complaint(const std::function<void(ClientOptions&)>& change) {
  ClientOptions options = QuickOptions("http://127.0.0.1:1/v1");
  change(options);
  return test::MessageOf([&] { const CompletionClient client(options); }, KGRPO_ERROR_INVALID, "");
}

TEST(Options, BadUrlsAreRefused) {
  for (const char* url : {"", "api.openai.com/v1", "https://", "ftp://host/v1", "file:///etc/passwd",
                          "https://host:99999/v1", "https://ho st/v1", "http:/host/v1", "http:host/v1?://",
                          "https:/host/v1", "https://host/v1/chat/completions", "https://host/v1/chat/completions/"}) {
    EXPECT_THAT(Complaint([&](auto& options) { options.base_url = url; }), StartsWith("options.base_url: ")) << url;
  }
}

TEST(Options, APasswordInAUrlIsRefusedAndNotRepeated) {
  for (const char* url : {"https://user:hunter22@host/v1", "https://user:hunter22@ho st"}) {
    const std::string complaint = Complaint([&](auto& options) { options.base_url = url; });
    EXPECT_THAT(complaint, HasSubstr("base_url"));
    EXPECT_THAT(complaint, Not(HasSubstr("hunter22")));
  }
}

// Some services want a key there, under a name that does not show it.
TEST(Options, TheAddressForPeopleHasNoQuery) {
  const CompletionClient client(QuickOptions("http://127.0.0.1:1/v1/?code=functionkey12345"));
  EXPECT_EQ(client.Address(), "http://127.0.0.1:1/v1/chat/completions");
}

TEST(Options, AKeyInAUrlsQueryIsRefusedAndNotRepeated) {
  for (const char* query : {"key=hush", "api-version=1&subscription-key=hush", "a&API_KEY=hush", "sig=hush"}) {
    EXPECT_THAT(Complaint([&](auto& options) { options.base_url = std::string("https://host/v1?") + query; }),
                AllOf(HasSubstr("a place for a key"), Not(HasSubstr("hush"))))
        << query;
  }
  EXPECT_EQ(Complaint([](auto& options) { options.base_url = "https://host/v1?api-version=2024-10-21&x=key"; }), "");
}

TEST(Options, AzureNeedsTheDeploymentAndItsVersion) {
  const auto complaint = [](const char* path) {
    return Complaint([&](auto& options) { options.base_url = std::string("https://me.openai.azure.com") + path; });
  };
  for (const char* path : {"", "/v1", "/openai/deployments/d", "/openai?api-version=2024-10-21"})
    EXPECT_THAT(complaint(path), AllOf(HasSubstr("api-version="), HasSubstr("/openai/deployments/"))) << path;
  for (const char* path : {"/openai/deployments/d?api-version=2024-10-21", "/openai/v1"})
    EXPECT_EQ(complaint(path), "") << path;
}

TEST(Options, AKeyGoesOverHttpToThisMachineOnly) {
  const auto complaint = [](const std::string& url, bool allow = false, const char* secret = "") {
    return Complaint([&](auto& options) {
      options.base_url = url;
      options.allow_plain_http = allow;
      if (*secret != '\0') options.api_key.clear();
      if (*secret != '\0') options.secrets = {secret};
    });
  };
  for (const char* host : {"host:8000", "10.0.0.1", "127.0.0.1.evil.org", "localhost.org", "[::2]:80"}) {
    const std::string url = std::string("http://") + host + "/v1";
    EXPECT_THAT(complaint(url), HasSubstr("allow_plain_http")) << host;
    EXPECT_THAT(complaint(url, false, "of a header"), HasSubstr("allow_plain_http")) << host;
    EXPECT_EQ(complaint(url, true), "") << host;
    EXPECT_EQ(complaint(std::string("https://") + host + "/v1"), "") << host;
  }
  EXPECT_THAT(complaint("HTTP://host/v1"), HasSubstr("allow_plain_http"));
  for (const char* host : {"localhost:8000", "LOCALHOST", "127.0.0.1:1", "127.8.9.1", "[::1]:8000", "a.localhost"})
    EXPECT_EQ(complaint(std::string("http://") + host + "/v1"), "") << host;
}

TEST(Options, HeadersThatWouldBeTwoAreRefused) {
  const std::string key = Complaint([](auto& options) { options.api_key = "sk-secret\r\nX-Evil: 1"; });
  EXPECT_THAT(key, HasSubstr("the key contains a line break"));
  EXPECT_THAT(key, Not(HasSubstr("sk-secret")));
  EXPECT_THAT(Complaint([](auto& options) { options.api_key = "sk-secret\n"; }), HasSubstr("line break"));  // of a file
  EXPECT_THAT(Complaint([](auto& options) { options.headers = {{"X-A", "b\nc"}}; }), HasSubstr("X-A"));
  EXPECT_THAT(Complaint([](auto& options) {
                options.headers = {{"X A", "b"}};
              }),
              HasSubstr("'X A' is not a header's name"));
  EXPECT_THAT(Complaint([](auto& options) { options.api_key_header = "A:"; }), HasSubstr("api_key_header"));
}

// A dump that is piped to a program has no limit, and /proc/PID/environ shows the variable with the key to others.
TEST(Options, AKeyClosesTheProcessToOthers) {
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
  ClientOptions options = QuickOptions("http://127.0.0.1:1/v1");
  options.api_key.clear();
  { const CompletionClient client(options); }
  EXPECT_EQ(prctl(PR_GET_DUMPABLE), 1);
  options.api_key = "sk-test-0123456789";
  { const CompletionClient client(options); }
  EXPECT_EQ(prctl(PR_GET_DUMPABLE), 0);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
