// An answer's body, streamed (server-sent events) or whole (one JSON object), read into an Answer. Lenient where
// servers differ without harm, strict where an incomplete answer could pass for a complete one. Used by transfer.cc.
#ifndef KGRPO_CODER_GPT4O_CLIENT_RESPONSE_READER_H
#define KGRPO_CODER_GPT4O_CLIENT_RESPONSE_READER_H

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "coder_gpt4o/client/redaction.h"
#include "coder_gpt4o/client/sse_parser.h"
#include "coder_gpt4o/completion_client.h"  // Answer

namespace kgrpo::coder_gpt4o {

// An error message of a service, in any of the common shapes: {"error": {...}}, {"error": "..."}, {"message": ...},
// {"detail": ...}; or the beginning of a body that is no JSON, without its HTML.
struct ServiceError {
  std::string message;
  std::string code;  // also a number's digits
  std::string type;
};

class ResponseReader {
 public:
  // `secrets`, which outlive it, are cut out of what people read before that is shortened: of a secret that an
  // excerpt's end cuts in two, nobody could tell the first half.
  ResponseReader(uint64_t max_bytes, const Redaction& secrets);

  ResponseReader(const ResponseReader&) = delete;  // the parser calls back
  ResponseReader& operator=(const ResponseReader&) = delete;

  // Takes the next bytes; false when the answer became longer than max_bytes, and the rest need not come. How the body
  // is to be read shows in its first byte: servers lie in Content-Type, or ignore "stream". `status`: only a success
  // (2xx) is read as an answer, the rest is kept for Error().
  bool Feed(std::string_view bytes, int status);

  // The body is over, or broke off. Call once, before the questions below.
  void Finish();

  // The answer is whole: what follows, or fails to, changes nothing. A stream is whole from [DONE] or a reason to
  // finish on, and no error or rubbish behind that takes it back; a body that broke off never was. [during the stream
  // too, for a stream]
  bool Complete() const { return complete_; }
  bool Ended() const { return ended_; }  // the stream said [DONE]: nothing is worth waiting for

  bool Began() const { return has_choice_; }    // something of an answer came
  bool HasError() const { return has_error_; }  // an error object came, with any status
  // The body is over, and was none of chat completions: a web page, nothing, JSON of another kind.
  bool Foreign() const { return foreign_; }
  bool TooLong() const { return too_long_; }
  const ServiceError& Error() const { return error_; }
  const std::string& Problem() const { return problem_; }  // why it is not complete, for people
  Answer& Result() { return answer_; }
  const Answer& Result() const { return answer_; }

 private:
  enum class Form { kUnknown, kStream, kWhole };

  void TakeEvent(std::string_view data);
  void TakeWhole(int status);
  void TakeChoice(const nlohmann::json& object, const char* part);
  void TakeUsage(const nlohmann::json& object);
  bool TakeError(const nlohmann::json& object, std::string_view text);
  void NotComplete(std::string problem);
  std::string Quoted(std::string_view text) const;  // for people
  std::string Beginning() const;                    // of the body, for people

  uint64_t max_bytes_;
  const Redaction& secrets_;
  uint64_t bytes_ = 0;
  int status_ = 0;
  Form form_ = Form::kUnknown;
  SseParser parser_;
  std::string body_;  // of the whole form; of a stream its beginning, for messages
  Answer answer_;
  ServiceError error_;
  std::string problem_;
  bool has_choice_ = false;
  bool complete_ = false;
  bool ended_ = false;
  bool has_error_ = false;
  bool too_long_ = false;
  bool foreign_ = false;
};

}  // namespace kgrpo::coder_gpt4o
#endif
