// Failures of transfers, and of answers beside the table of behaviours_test.cc.
#include "coder_gpt4o/client/failure.h"

#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

using Remedy = Failure::Remedy;

// A phrase of the table counts wherever it stands; the time that a text names is one with a unit.
TEST(Failure, ReadsTheTimeOfAText) {
  const auto wait = [](const char* text) {
    ResponseHeaders headers;
    headers.status = 429;
    return FailureOfAnswer(headers, {"", "", "", text}).wait.value_or(-1);
  };
  EXPECT_DOUBLE_EQ(wait("please retry in 36.5s."), 36.5);
  EXPECT_DOUBLE_EQ(wait("please try again in 6m0s. visit"), 360);
  EXPECT_DOUBLE_EQ(wait("try again in 20ms"), 0.02);
  EXPECT_DOUBLE_EQ(wait("try again in 5 minutes"), 300);
  EXPECT_DOUBLE_EQ(wait("please retry after 1 seconds."), 1);
  EXPECT_DOUBLE_EQ(wait(R"({"retrydelay": "2s"})"), 2);
  for (const char* text : {"try again in a while", "retry in ", "retrydelay", ""}) EXPECT_EQ(wait(text), -1);
}

TEST(Failure, TransfersHaveTheirRemedies) {
  EXPECT_EQ(FailureOfTransfer(CURLE_PEER_FAILED_VERIFICATION, "").remedy, Remedy::kFatal);
  EXPECT_THAT(FailureOfTransfer(CURLE_PEER_FAILED_VERIFICATION, "self-signed certificate").message,
              HasSubstr("SSL_CERT_FILE"));
  EXPECT_THAT(FailureOfTransfer(CURLE_PEER_FAILED_VERIFICATION,
                                "SSL: no alternative certificate subject name matches target host name 'x'")
                  .message,
              AllOf(HasSubstr("of another host"), HasSubstr("base_url"), Not(HasSubstr("SSL_CERT_FILE"))));
  EXPECT_EQ(FailureOfTransfer(CURLE_OPERATION_TIMEDOUT, "").word, "timeout");
  EXPECT_EQ(FailureOfTransfer(CURLE_COULDNT_RESOLVE_HOST, "no such host x").word, "connection");
  EXPECT_THAT(FailureOfTransfer(CURLE_COULDNT_RESOLVE_HOST, "no such host x").message, HasSubstr("no such host x"));
  EXPECT_EQ(FailureOfTransfer(CURLE_RECV_ERROR, "").remedy, Remedy::kRetry);
  EXPECT_EQ(FailureOfTransfer(CURLE_GOT_NOTHING, "").remedy, Remedy::kRetry);
  EXPECT_FALSE(FailureOfTransfer(CURLE_PARTIAL_FILE, "").message.empty());
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
