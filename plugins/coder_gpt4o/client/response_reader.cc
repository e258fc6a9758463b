#include "coder_gpt4o/client/response_reader.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "coder_gpt4o/client/ascii.h"
#include "coder_gpt4o/client/excerpt.h"

namespace kgrpo::coder_gpt4o {
namespace {

using nlohmann::json;

constexpr size_t kKeptOfStream = 600;
constexpr uint64_t kMostTokens = 100000000;
constexpr const char* kBlanks = " \t\r\n\xEF\xBB\xBF";  // with the UTF-8 byte order mark

const json* Member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string StringOr(const json* value, std::string otherwise = {}) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::move(otherwise);
}

// Content is a string or a list of parts, of which only the text parts are used.
void AppendContent(const json& content, std::string& to) {
  if (content.is_string()) {
    to += content.get_ref<const std::string&>();
  } else if (content.is_array()) {
    for (const json& part : content) {
      if (const json* text = Member(part, "text"); text != nullptr && text->is_string()) {
        to += text->get_ref<const std::string&>();
      }
    }
  }
}

// A string's text, or a scalar's JSON. Structured values give nullopt: dump() recurses per level, so a body of brackets
// would exhaust the stack.
std::optional<std::string> Plain(const json* value) {
  if (value == nullptr || value->is_structured()) return std::nullopt;
  return value->is_string() ? value->get<std::string>() : value->dump();
}

uint64_t CountOr0(const json* value) {
  return value != nullptr && value->is_number_unsigned() ? value->get<uint64_t>() : 0;
}

}  // namespace

ResponseReader::ResponseReader(uint64_t max_bytes, const Redaction& secrets)
    : max_bytes_(max_bytes), secrets_(secrets), parser_([this](std::string_view data) { TakeEvent(data); }) {}

bool ResponseReader::Feed(std::string_view bytes, int status) {
  status_ = status;
  bytes_ += bytes.size();
  if (bytes_ > max_bytes_) {
    too_long_ = !complete_;  // after a complete answer the rest does not matter
    return false;
  }
  if (form_ == Form::kUnknown) {
    body_.append(bytes);
    const size_t first = body_.find_first_not_of(kBlanks);
    if (first == std::string::npos) return true;
    // Events begin with ":" (a comment) or a field: data, event, id, retry.
    const bool events = std::string_view(":deir").find(body_[first]) != std::string_view::npos;
    form_ = events && status >= 200 && status < 300 ? Form::kStream : Form::kWhole;
    if (form_ == Form::kStream) {
      parser_.Feed(body_);
      body_.resize(std::min(body_.size(), kKeptOfStream));
    }
    return true;
  }
  if (form_ == Form::kWhole) {
    body_.append(bytes);
  } else {
    if (body_.size() < kKeptOfStream) body_.append(bytes.substr(0, kKeptOfStream - body_.size()));
    parser_.Feed(bytes);
  }
  return true;
}

void ResponseReader::Finish() {
  if (too_long_) {
    complete_ = false;
    problem_ = "the answer is longer than " + std::to_string(max_bytes_) + " bytes";
  } else if (form_ == Form::kStream) {
    parser_.Finish();
    if (!complete_ && !has_error_) {
      NotComplete(has_choice_ ? "the stream ended in the middle of the answer"
                              : "the stream held no answer; it begins: " + Beginning());
    }
  } else {
    TakeWhole(status_);
  }
  // Text with a count of 0 means that the server does not count. Checked at the end, since a stream may send its counts
  // before its text.
  if (answer_.completion_tokens == 0 && !(answer_.text.empty() && answer_.refusal.empty())) {
    answer_.usage_known = false;
    answer_.prompt_tokens = 0;
  }
}

void ResponseReader::NotComplete(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
}

std::string ResponseReader::Quoted(std::string_view text) const {
  std::string shown(text);
  secrets_.Apply(shown);
  return Excerpt(shown);
}

std::string ResponseReader::Beginning() const {
  std::string shown = body_;
  secrets_.ApplyToCut(shown);
  return Excerpt(shown);
}

void ResponseReader::TakeEvent(std::string_view data) {
  if (ended_ || has_error_) return;
  data = Trimmed(data);
  if (data.empty()) return;  // a keep-alive
  if (data == "[DONE]") {
    ended_ = true;
    complete_ = has_choice_;
    return;
  }
  const json object = json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) {
    if (complete_) return;  // the answer is whole and paid for
    NotComplete("the stream holds an event that is not JSON: " + Quoted(data));
    ended_ = true;
    return;
  }
  if (complete_ && Member(object, "error") != nullptr) return;
  if (TakeError(object, data)) return;
  TakeChoice(object, "delta");
  TakeUsage(object);
}

void ResponseReader::TakeWhole(int status) {
  const json object = json::parse(body_, nullptr, /*allow_exceptions=*/false);
  const bool success = status >= 200 && status < 300;
  if (object.is_discarded() || !object.is_object()) {
    // Text that begins like an object may be an answer that was cut off.
    const size_t begin = body_.find_first_not_of(kBlanks);
    foreign_ = body_.find('{') != begin || body_.empty();
    error_.message = Beginning();
    const bool page = begin != std::string::npos && body_[begin] == '<';
    NotComplete(body_.empty() ? "the answer is empty"
                              : std::string("the answer is not a JSON object") + (page ? " but a web page" : "") +
                                    "; it begins: " + Beginning());
    return;
  }
  if (TakeError(object, body_)) return;
  if (!success) {
    for (const char* name : {"message", "detail", "error_description"}) {
      if (const json* message = Member(object, name)) {
        const std::optional<std::string> plain = Plain(message);
        error_.message = plain ? Quoted(*plain) : Beginning();
        error_.type = StringOr(Member(object, "type"));
        error_.code = StringOr(Member(object, "code"));
        return;
      }
    }
    error_.message = Beginning();
    return;
  }
  TakeChoice(object, "message");
  TakeUsage(object);
  complete_ = has_choice_;
  foreign_ = !object.contains("choices") && !object.contains("usage");
  if (!complete_) NotComplete("the answer holds no choice; it begins: " + Beginning());
}

void ResponseReader::TakeChoice(const json& object, const char* part) {
  if (answer_.model.empty()) answer_.model = StringOr(Member(object, "model"));
  const json* choices = Member(object, "choices");
  if (choices == nullptr || !choices->is_array()) return;
  for (const json& choice : *choices) {
    if (CountOr0(Member(choice, "index")) != 0) continue;  // one answer was requested
    // In a stream only "delta" is read: the last chunk may also repeat the whole text as "message".
    const json* message = Member(choice, part);
    if (message != nullptr && message->is_object()) {
      has_choice_ = true;
      if (const json* content = Member(*message, "content")) AppendContent(*content, answer_.text);
      if (const json* refusal = Member(*message, "refusal")) AppendContent(*refusal, answer_.refusal);
    }
    if (const json* reason = Member(choice, "finish_reason"); reason != nullptr && reason->is_string()) {
      has_choice_ = true;
      answer_.finish_reason = reason->get<std::string>();
      if (!answer_.finish_reason.empty()) complete_ = true;
    }
  }
}

void ResponseReader::TakeUsage(const json& object) {
  const json* usage = Member(object, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  const json* prompt = Member(*usage, "prompt_tokens");
  const json* completion = Member(*usage, "completion_tokens");
  // Servers that do not count report 0; a request always has a prompt.
  if (CountOr0(prompt) == 0 || completion == nullptr || !completion->is_number_unsigned()) return;
  if (CountOr0(prompt) > kMostTokens || CountOr0(completion) > kMostTokens) return;  // not plausible for an answer
  answer_.prompt_tokens = CountOr0(prompt);
  answer_.completion_tokens = CountOr0(completion);
  answer_.usage_known = true;
}

// `text`: the JSON text of the object.
bool ResponseReader::TakeError(const json& object, std::string_view text) {
  const json* error = Member(object, "error");
  if (error == nullptr) return false;
  has_error_ = true;
  const std::optional<std::string> plain = Plain(error->is_object() ? Member(*error, "message") : error);
  error_.message = Quoted(plain ? std::string_view(*plain) : text);
  error_.type = StringOr(Member(*error, "type"));
  error_.code = Plain(Member(*error, "code")).value_or("");
  return true;
}

}  // namespace kgrpo::coder_gpt4o
