// Invalid options are refused before anything is sent, with a message that says what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <functional>
#include <string>

#include "server.h"

namespace kgrpo::coder_gpt4o {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Complaint(const std::function<void(ClientOptions&)>& change) {
  ClientOptions options = QuickOptions("http://127.0.0.1:1/v1");
  change(options);
  try {
    const CompletionClient client(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
    return error.what();
  }
  return "";
}

TEST(Options, TheDefaultsAreRight) {
  EXPECT_NO_THROW(const CompletionClient client(ClientOptions{}));
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

TEST(Options, AUrlsQueryIsNotRepeated) {
  for (const char* url : {"https://ho st/v1?sig=hunter22", "https://host/v1/chat/completions?sig=hunter22"}) {
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

TEST(Options, ABadProxyIsRefusedAndNotRepeated) {
  const std::string complaint = Complaint([](auto& options) { options.proxy = "http://user:hunter22@pro xy:1"; });
  EXPECT_THAT(complaint, HasSubstr("options.proxy: it is no URL"));
  EXPECT_THAT(complaint, Not(HasSubstr("hunter22")));
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

TEST(Options, MissingCertificatesAreRefused) {
  EXPECT_THAT(Complaint([](auto& options) { options.ca_file = "/nowhere/ca.pem"; }),
              HasSubstr("options.ca_file: '/nowhere/ca.pem' is no file"));
  EXPECT_THAT(Complaint([](auto& options) { options.ca_directory = "/nowhere"; }),
              HasSubstr("options.ca_directory: '/nowhere' is no directory"));
}

TEST(Options, MoreConnectionsThanOpenFilesAreRefused) {
  EXPECT_THAT(Complaint([](auto& options) { options.max_concurrency = 2000000000; }), HasSubstr("ulimit -n"));
}

TEST(Options, AKeyForbidsCoreDumps) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &limit), 0);
  if (limit.rlim_max == 0) GTEST_SKIP() << "core dumps are forbidden for good here";
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_CORE, &limit), 0);
  const CompletionClient client(QuickOptions("http://127.0.0.1:1/v1"));
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, 0U);
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

TEST(Options, ABodyThatIsNoObjectIsRefused) {
  CompletionClient client(QuickOptions("http://127.0.0.1:1/v1"));
  for (const char* body : {"", " ", "[]", "{", "x"}) {
    EXPECT_THROW(client.Send({body, 0}, [](const Completion&) { ADD_FAILURE(); }), Error) << body;
  }
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
