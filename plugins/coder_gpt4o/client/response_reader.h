// Reads an answer's body, streamed (server-sent events) or whole (one JSON object), into an Answer. Lenient where
// servers differ without harm, strict where an incomplete answer could pass for a complete one. Used by transfer.cc.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "coder_gpt4o/client/redaction.h"
#include "coder_gpt4o/client/sse_parser.h"
#include "coder_gpt4o/completion_client.h"  // Answer

namespace kgrpo::coder_gpt4o {

// An error message of a service, in any of the common shapes: {"error": {...}}, {"error": "..."}, [{"error": ...}],
// {"message": ...}, {"detail": ...}, {"base_resp": ...}, an error within a choice, a finish_reason that names a
// failure; or the beginning of a body that is not JSON, without its HTML.
struct ServiceError {
  std::string message;
  std::string code;       // a number is converted to its digits
  std::string type;       // or Google's `status`
  std::string text = {};  // the beginning of the error's JSON in lower case, to search in. Never shown
};

class ResponseReader {
 public:
  // Secrets are removed from a text before it is shortened for a message: half a secret at the end of an excerpt could
  // not be recognised later. `secrets` must outlive this object.
  ResponseReader(uint64_t max_bytes, const Redaction& secrets);

  ResponseReader(const ResponseReader&) = delete;  // the parser calls back
  ResponseReader& operator=(const ResponseReader&) = delete;

  // Takes the next bytes. Returns false once the body is longer than max_bytes; the transfer can then be ended. The
  // body's first byte decides between stream and object, because servers send a wrong Content-Type or ignore "stream".
  // `status`: only a success (2xx) is read as an answer; any other body is kept for Error().
  bool Feed(std::string_view bytes, int status);

  // Ends the body, whether complete or broken off. Call once, before the getters below.
  void Finish();

  // True if the answer is complete, so that nothing after it matters. A stream is complete once [DONE] or a
  // finish_reason arrives; a later error or invalid event does not change that. A JSON object that broke off is never
  // complete. For a stream this may also be called before Finish.
  bool Complete() const { return complete_; }
  bool Ended() const { return ended_; }  // the stream sent [DONE]: waiting for more is useless

  bool Began() const { return has_choice_; }    // a part of an answer arrived
  bool HasError() const { return has_error_; }  // an error arrived in place of the answer's end, with any status
  // True if the finished body was no chat completion: a web page, an empty body, or other JSON.
  bool Foreign() const { return foreign_; }
  bool TooLong() const { return too_long_; }
  const ServiceError& Error() const { return error_; }
  const std::string& Problem() const { return problem_; }  // why the answer is not complete, for messages
  Answer& Result() { return answer_; }
  const Answer& Result() const { return answer_; }

 private:
  enum class Form { kUnknown, kStream, kWhole };

  void TakeEvent(std::string_view data);
  void TakeWhole(int status);
  void TakeChoices(const nlohmann::json& object, const char* part, std::string_view text);
  void TakeMessage(const nlohmann::json& message);
  void TakeFinishReason(std::string reason, std::string_view text);
  void TakeUsage(const nlohmann::json& object);
  bool TakeError(const nlohmann::json& object, std::string_view text, bool is_error = false);
  void NoteMissingText();
  bool HasText() const { return answer_.reasoning_bytes > 0 || !answer_.text.empty() || !answer_.refusal.empty(); }
  void NotComplete(std::string problem);
  std::string Quoted(std::string_view text) const;  // for messages
  std::string Beginning() const;                    // of the body, for messages

  uint64_t max_bytes_;
  const Redaction& secrets_;
  uint64_t bytes_ = 0;
  int status_ = 0;
  Form form_ = Form::kUnknown;
  SseParser parser_;
  std::string body_;  // an object's whole text; a stream's beginning, for messages
  Answer answer_;
  ServiceError error_;
  std::string problem_;
  bool has_choice_ = false;
  bool complete_ = false;
  bool ended_ = false;
  bool has_error_ = false;
  bool too_long_ = false;
  bool foreign_ = false;
  std::optional<uint64_t> index_;  // of the choice that counts
  std::string tool_;               // a tool that the model called
};

}  // namespace kgrpo::coder_gpt4o
