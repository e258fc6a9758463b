#include "coder_gpt4o/client/transfer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr double kCloseSeconds = 1;  // for a stream to end after its last event

}  // namespace

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Transfer::Transfer(const Endpoint& endpoint, std::string body, bool stream, const AttemptTimes& times,
                   uint64_t max_answer_bytes, double now, OnHeaders on_headers)
    : body_(std::move(body)),
      easy_(curl_easy_init()),
      secrets_(endpoint.Secrets()),
      reader_(max_answer_bytes, secrets_),
      on_headers_(std::move(on_headers)),
      times_(times),
      stream_(stream),
      started_at_(now),
      last_sign_(now) {
  if (easy_ == nullptr) throw std::bad_alloc();
  CURL* easy = easy_.get();
  endpoint.Prepare(easy);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, detail_.data());
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body_.data());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &Transfer::OnConnected);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, this);
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "identity");  // and decode what a server compresses all the same
}

double Transfer::Deadline() const {
  if (ended_) return last_sign_ + kCloseSeconds;
  // Before the connection is made, curl's own timeout also applies.
  if (!connected_) return times_.sign_by;
  if (!stream_) return std::numeric_limits<double>::infinity();
  const double by = has_body_ ? std::numeric_limits<double>::infinity() : times_.sign_by;
  return std::min(by, last_sign_ + (has_body_ ? times_.idle_seconds : times_.response_seconds));
}

size_t Transfer::OnHeader(char* data, size_t size, size_t count, void* self) {
  const double unix_now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  auto& transfer = *static_cast<Transfer*>(self);
  const std::string_view line(data, size * count);
  transfer.headers_.Take(line, unix_now);
  // An empty line ends the headers. Those of 100 Continue are skipped.
  if ((line == "\r\n" || line == "\n") && transfer.headers_.status >= 200) transfer.on_headers_(transfer.headers_);
  return line.size();
}

size_t Transfer::OnBody(char* data, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  transfer.has_body_ = true;
  if (!transfer.ended_) transfer.last_sign_ = Now();  // bytes after the end do not extend the wait
  if (!transfer.reader_.Feed({data, size * count}, transfer.headers_.status)) return 0;  // too long: curl ends it
  transfer.ended_ = transfer.reader_.Ended() || transfer.reader_.HasError();
  return size * count;
}

int Transfer::OnConnected(void* self, char*, char*, int, int) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.connected_) {
    // A reused connection closed after the request was sent. curl would silently send it again, although the service
    // may bill both. The attempt counts as lost, and the dispatcher decides on the next one.
    transfer.resent_ = true;
    return CURL_PREREQFUNC_ABORT;
  }
  transfer.connected_ = true;
  transfer.headers_ = {};  // drops a proxy's response to CONNECT
  transfer.last_sign_ = Now();
  return CURL_PREREQFUNC_OK;
}

Transfer::Result Transfer::Conclude(CURLcode code) {
  reader_.Finish();
  // Messages shorten these, so secrets are removed first.
  secrets_.Apply(headers_.location);
  secrets_.Apply(headers_.request_id);
  Result result;
  const bool success = headers_.status >= 200 && headers_.status < 300;
  if (reader_.TooLong()) {
    result.failure.remedy = Failure::Remedy::kGiveUp;
    result.failure.alive = true;
    result.failure.word = "too_long";
    result.failure.message = reader_.Problem();
  } else if (success && reader_.Complete() && !reader_.HasError()) {
    result.answer = std::move(reader_.Result());  // even if the connection broke afterwards
    if (!result.answer->cost && headers_.cost.value_or(0) > 0) result.answer->cost = headers_.cost;
  } else if (headers_.status != 0 && (!success || reader_.HasError())) {
    // The status decides, even if the body broke off.
    result.failure = FailureOfAnswer(headers_, reader_.Error());
    if (!headers_.retry_after) headers_.retry_after = result.failure.wait;
    if (result.failure.remedy == Failure::Remedy::kRefused) {
      Answer& refused = result.answer.emplace();
      if (reader_.Began()) refused = std::move(reader_.Result());
      refused.finish_reason = "content_filter";
      refused.usage_known = refused.usage_known || !reader_.Began();  // 0 tokens: a refused request costs nothing
      if (refused.refusal.empty()) refused.refusal = reader_.Error().message;
    }
  } else if (code != CURLE_OK && !ended_) {  // once a stream has ended, its content is the error and not curl's result
    result.failure =
        FailureOfTransfer(code, resent_ ? "the server closed it after the request was sent" : detail_.data());
    not_the_service_ = headers_.status == 0 && result.failure.word == "invalid_answer";
    closed_ = headers_.status == 0 && result.failure.word == "connection";
  } else {
    not_the_service_ = reader_.Foreign();
    result.failure.word = "invalid_answer";
    result.failure.message = reader_.Problem();
  }
  return result;
}

std::optional<uint64_t> Transfer::LostText() const {
  curl_off_t uploaded = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_SIZE_UPLOAD_T, &uploaded);
  // The status alone is no proof: a proxy's own 200 comes before the request is sent.
  const bool sent = has_body_ || uploaded >= static_cast<curl_off_t>(body_.size());
  const bool refused = headers_.status >= 300 || (reader_.HasError() && !reader_.Began());
  if (!sent || refused || not_the_service_ || closed_) return std::nullopt;
  const Answer& lost = reader_.Result();
  return lost.text.size() + lost.refusal.size() + lost.reasoning_bytes;
}

Transfer::Result Transfer::ConcludeSilent() {
  Result result = Conclude(CURLE_OPERATION_TIMEDOUT);
  if (!result.answer && result.failure.word == "timeout") {
    result.failure.message = has_body_    ? "the answer stalled: nothing came for "
                             : connected_ ? "no answer began within "
                                          : "no connection was made within ";
    result.failure.message += std::to_string(
        std::lround(has_body_ ? times_.idle_seconds : std::min(times_.response_seconds, times_.sign_by - started_at_)));
    result.failure.message += " s";
  }
  return result;
}

}  // namespace kgrpo::coder_gpt4o
