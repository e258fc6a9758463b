// One attempt at one request: a curl handle, the data received so far, and the outcome. Used by
// dispatcher.cc, on its thread. Times are seconds of one steady clock, given by the caller.
#pragma once

#include <curl/curl.h>

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "coder_gpt4o/client/endpoint.h"
#include "coder_gpt4o/client/failure.h"
#include "coder_gpt4o/client/response_headers.h"
#include "coder_gpt4o/client/response_reader.h"

namespace kgrpo::coder_gpt4o {

// Seconds of the steady clock.
double Now();

struct AttemptTimes {
  double response_seconds = 120;  // see ClientOptions
  double idle_seconds = 60;
  double sign_by =
      std::numeric_limits<double>::infinity();  // deadline for the connection and for a stream's first byte
};

class Transfer {
 public:
  using OnHeaders = std::function<void(const ResponseHeaders& headers)>;

  // `stream`: a stream was requested, so silence means that it stalled. `on_headers`: called within curl when the
  // answer's headers are complete, which for a stream is long before its end.
  Transfer(const Endpoint& endpoint, std::string body, bool stream, const AttemptTimes& times,
           uint64_t max_answer_bytes, double now, OnHeaders on_headers);

  Transfer(const Transfer&) = delete;  // curl holds its address
  Transfer& operator=(const Transfer&) = delete;

  CURL* Handle() const { return easy_.get(); }
  double StartedAt() const { return started_at_; }

  // The time at which the attempt is ended unless data arrives. An answer that is not streamed has only the deadline
  // sign_by. A stream gets a second after its last event to close, so that the connection can be reused; some servers
  // never close it.
  double Deadline() const;

  bool Whole() const { return reader_.Complete(); }  // a stream's answer is complete, perhaps before the stream ends

  struct Result {
    std::optional<Answer> answer;
    Failure failure;  // why there is no answer
  };

  // The result of the transfer. `code`: curl's result. Call once, when the transfer has ended or was taken out of the
  // loop.
  Result Conclude(CURLcode code);
  Result ConcludeSilent();  // after its Deadline

  // Bytes of text received by an attempt that gave no answer or was cancelled. nullopt if the service did not accept
  // the attempt: the request was not sent completely, it was refused by a status or by an error in place of an answer,
  // the connection closed without a response, or the response was no chat completion.
  std::optional<uint64_t> LostText() const;
  // The text of the answer so far.
  const std::string& Text() const { return reader_.Result().text; }

  // True if the server may be a chat-completions service: it spoke HTTP, it is not the proxy of the connection, and its
  // successful response was no web page.
  bool MayBeTheService() const { return connected_ && headers_.status != 0 && !not_the_service_; }

  const ResponseHeaders& Headers() const { return headers_; }

 private:
  struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };

  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  static int OnConnected(void* self, char* remote, char* local, int remote_port, int local_port);

  std::string body_;  // curl reads it in place
  std::unique_ptr<CURL, FreeEasy> easy_;
  std::array<char, CURL_ERROR_SIZE> detail_ = {};
  const Redaction& secrets_;  // the endpoint's
  ResponseHeaders headers_;
  ResponseReader reader_;
  OnHeaders on_headers_;
  AttemptTimes times_;
  bool stream_;
  bool connected_ = false;
  bool resent_ = false;  // the connection closed after the request was sent, and curl would send it once more
  bool has_body_ = false;
  bool ended_ = false;
  bool not_the_service_ = false;  // the server speaks no HTTP, or sent no chat completion
  bool closed_ = false;           // the connection closed before any response
  double started_at_;
  double last_sign_;  // time of the connection, or of the body's latest bytes
};

}  // namespace kgrpo::coder_gpt4o
