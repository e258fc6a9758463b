// One attempt at one request: a curl handle, the data received so far, and the outcome. Used by
// dispatcher.cc, on its thread. Times are seconds of one steady clock, given by the caller.
#ifndef KGRPO_CODER_GPT4O_CLIENT_TRANSFER_H
#define KGRPO_CODER_GPT4O_CLIENT_TRANSFER_H

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
      std::numeric_limits<double>::infinity();  // when a stream must have begun, and any answer be connected
};

class Transfer {
 public:
  using OnHeaders = std::function<void(const ResponseHeaders& headers)>;

  // `stream`: a stream was asked for, so silence means that it stalled. `on_headers`: called within curl when the
  // answer's headers are whole, which for a stream is long before its end.
  Transfer(const Endpoint& endpoint, std::string body, bool stream, const AttemptTimes& times,
           uint64_t max_answer_bytes, double now, OnHeaders on_headers);

  Transfer(const Transfer&) = delete;  // curl holds its address
  Transfer& operator=(const Transfer&) = delete;

  CURL* Handle() const { return easy_.get(); }
  double StartedAt() const { return started_at_; }

  // When the attempt ends for silence, unless something arrives; for an answer that isn't streamed sign_by alone. A
  // stream that said its last has a moment to close in order, so that the connection can serve again; some servers
  // never do.
  double Deadline() const;

  bool Whole() const { return reader_.Complete(); }  // of a stream: the answer is there, if it did not end yet

  struct Result {
    std::optional<Answer> answer;  // or
    Failure failure;               // why there is none
  };

  // The result of the transfer. `code`: curl's result. Call once, when the transfer has ended or was taken out of the
  // loop.
  Result Conclude(CURLcode code);
  Result ConcludeSilent();  // ended by its Deadline

  // Of an attempt that gave no answer, or was cancelled: how many bytes of text it brought. nullopt where the service
  // did not take it on: it was not sent whole, was refused by a status or by an error in place of an answer, the
  // connection was closed without a word, or what came is none of chat completions.
  std::optional<uint64_t> LostText() const;

  // True if the server may be a chat-completions service: it spoke HTTP, was no proxy that was to make the
  // connection, and a success of it was no web page.
  bool MayBeTheService() const { return connected_ && headers_.status != 0 && !not_the_service_; }

  const ResponseHeaders& Headers() const { return headers_; }

 private:
  struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };

  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  static int OnConnected(void* self, char* remote, char* local, int remote_port, int local_port);

  std::string body_;  // curl reads it where it is
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
  bool not_the_service_ = false;  // what answered speaks no HTTP, or shows a web page
  bool closed_ = false;           // the connection, before a word of an answer
  double started_at_;
  double last_sign_;  // when it was connected, or a byte of the body came
};

}  // namespace kgrpo::coder_gpt4o
#endif
