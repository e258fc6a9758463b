// The classification of each kind of failure.
#include "coder_gpt4o/client/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kgrpo::coder_gpt4o {
namespace {

using Remedy = Failure::Remedy;
using testing::HasSubstr;

Failure Of(int status, ServiceError error = {}) {
  ResponseHeaders headers;
  headers.status = status;
  headers.request_id = "req_9";
  return FailureOfAnswer(headers, error);
}

TEST(Failure, StatusesHaveTheirRemedies) {
  struct Case {
    int status;
    Remedy remedy;
    const char* word;
  };
  for (const Case& c : {Case{301, Remedy::kFatal, "configuration"},
                        {400, Remedy::kGiveUp, "rejected"},
                        {401, Remedy::kFatal, "unauthorized"},
                        {402, Remedy::kFatal, "quota"},
                        {403, Remedy::kFatal, "unauthorized"},
                        {404, Remedy::kFatal, "not_found"},
                        {405, Remedy::kFatal, "configuration"},
                        {407, Remedy::kFatal, "unauthorized"},
                        {408, Remedy::kRetry, "timeout"},
                        {409, Remedy::kRetry, "server_error"},
                        {413, Remedy::kGiveUp, "rejected"},
                        {422, Remedy::kGiveUp, "rejected"},
                        {429, Remedy::kRetry, "rate_limited"},
                        {500, Remedy::kRetry, "server_error"},
                        {501, Remedy::kFatal, "configuration"},
                        {502, Remedy::kRetry, "server_error"},
                        {503, Remedy::kRetry, "server_error"},
                        {504, Remedy::kRetry, "server_error"},
                        {529, Remedy::kRetry, "server_error"}}) {
    const Failure failure = Of(c.status, {"why", "", ""});
    EXPECT_EQ(failure.remedy, c.remedy) << c.status;
    EXPECT_EQ(failure.word, c.word) << c.status;
    EXPECT_THAT(failure.message, HasSubstr(std::to_string(c.status) + ": why [request req_9]"));
    EXPECT_EQ(failure.overload, c.status == 429 || c.status == 503 || c.status == 529) << c.status;
  }
}

TEST(Failure, AnEmptyAccountIsNoRateLimit) {
  EXPECT_EQ(Of(429, {"You exceeded your current quota", "insufficient_quota", "insufficient_quota"}).remedy,
            Remedy::kFatal);
  EXPECT_EQ(Of(429, {"", "rate_limit_exceeded", "tokens"}).remedy, Remedy::kRetry);
}

TEST(Failure, ARateLimitSaysWhoseItIsAndOfWhat) {
  EXPECT_THAT(Of(429, {"slow down", "", ""}).message,
              HasSubstr("the service's rate limit was hit: the service answered 429: slow down [request req_9]"));
  for (const ServiceError& error : {ServiceError{"", "rate_limit_exceeded", "tokens"},
                                    {"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000", "", ""},
                                    {"TOO MUCH (TPM)", "", ""}}) {
    EXPECT_THAT(Of(429, error).message, HasSubstr("the service's rate limit of tokens was hit: "));
  }
  EXPECT_THAT(Of(429, {"", "rate_limit_exceeded", "requests"}).message, HasSubstr("rate limit of requests was hit"));
  EXPECT_THAT(Of(429, {"3 requests per minute", "", ""}).message, HasSubstr("rate limit of requests was hit"));
  ResponseHeaders headers;
  headers.status = 429;
  headers.requests.remaining = 4999;
  headers.tokens.remaining = 0;
  EXPECT_THAT(FailureOfAnswer(headers, {}).message, HasSubstr("rate limit of tokens was hit"));
  headers.requests.remaining = 0;
  EXPECT_THAT(FailureOfAnswer(headers, {}).message, HasSubstr("rate limit was hit"));
  EXPECT_THAT(Of(503).message, testing::Not(HasSubstr("limit")));
}

TEST(Failure, AParameterThatNoRequestMayHaveEndsTheRun) {
  EXPECT_EQ(Of(400, {"use max_completion_tokens", "unsupported_parameter", "invalid_request_error"}).remedy,
            Remedy::kFatal);
  EXPECT_EQ(Of(400, {"", "context_length_exceeded", "invalid_request_error"}).remedy, Remedy::kGiveUp);
  EXPECT_EQ(Of(400, {"", "model_not_found", ""}).word, "not_found");
}

TEST(Failure, TheServicesOwnOpinionCounts) {
  ResponseHeaders headers;
  headers.should_retry = false;
  for (const int status : {408, 409, 425, 429, 500, 503}) {
    headers.status = status;
    EXPECT_EQ(FailureOfAnswer(headers, {}).remedy, Remedy::kGiveUp) << status;
  }
  headers.should_retry = true;
  headers.status = 400;
  EXPECT_EQ(FailureOfAnswer(headers, {}).remedy, Remedy::kRetry);
  for (const int status : {401, 402, 404}) {  // what ends the run is no matter of one request
    headers.status = status;
    EXPECT_EQ(FailureOfAnswer(headers, {}).remedy, Remedy::kFatal) << status;
  }
}

TEST(Failure, AnErrorInASuccessIsReadByItsCode) {
  EXPECT_EQ(Of(200, {"slow down", "429", ""}).word, "rate_limited");
  EXPECT_EQ(Of(200, {"no credits", "402", ""}).remedy, Remedy::kFatal);
  EXPECT_EQ(Of(200, {"bad", "", "invalid_request_error"}).remedy, Remedy::kGiveUp);
  EXPECT_EQ(Of(200, {"oops", "", "server_error"}).word, "server_error");
  EXPECT_EQ(Of(200, {"oops", "7", ""}).remedy, Remedy::kRetry);
}

TEST(Failure, AContentFilterIsARefusalNotAFailure) {
  ResponseHeaders headers;
  headers.status = 400;
  EXPECT_TRUE(IsContentFilter(headers, {"", "content_filter", ""}));
  EXPECT_TRUE(IsContentFilter(headers, {"", "content_policy_violation", ""}));
  EXPECT_FALSE(IsContentFilter(headers, {"content_filter", "", ""}));
  headers.status = 500;
  EXPECT_FALSE(IsContentFilter(headers, {"", "content_filter", ""}));
}

TEST(Failure, TransfersHaveTheirRemedies) {
  EXPECT_EQ(FailureOfTransfer(CURLE_PEER_FAILED_VERIFICATION, "").remedy, Remedy::kFatal);
  EXPECT_EQ(FailureOfTransfer(CURLE_OPERATION_TIMEDOUT, "").word, "timeout");
  EXPECT_EQ(FailureOfTransfer(CURLE_COULDNT_RESOLVE_HOST, "no such host x").word, "connection");
  EXPECT_THAT(FailureOfTransfer(CURLE_COULDNT_RESOLVE_HOST, "no such host x").message, HasSubstr("no such host x"));
  EXPECT_EQ(FailureOfTransfer(CURLE_RECV_ERROR, "").remedy, Remedy::kRetry);
  EXPECT_EQ(FailureOfTransfer(CURLE_GOT_NOTHING, "").remedy, Remedy::kRetry);
  EXPECT_FALSE(FailureOfTransfer(CURLE_PARTIAL_FILE, "").message.empty());
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
