#include "coder_gpt4o/client/response_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "coder_gpt4o/client/excerpt.h"
#include "coder_shared/text.h"

namespace kgrpo::coder_gpt4o {

using coder_shared::Lower, coder_shared::StartsWithAny, coder_shared::Trimmed;
namespace {

using nlohmann::json;

constexpr size_t kKeptOfStream = 4000;
constexpr size_t kLongestSecret = 2000;  // bytes, escaped
constexpr size_t kSearchedOfError = 8000;
constexpr uint64_t kMostTokens = 100000000;
constexpr double kMostDollars = 10000;                  // of one answer
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
      const std::string type = StringOr(Member(part, "type"), "text");
      if (type != "text" && type != "output_text") continue;  // thoughts
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

// A count, which some servers write as 12.0.
uint64_t CountOr0(const json* value) {
  if (value == nullptr || !value->is_number()) return 0;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  const auto number = value->get<double>();
  return number > 0 && number < kMostTokens && number == std::floor(number) ? static_cast<uint64_t>(number) : 0;
}

const json* Inner(const json& object, const char* outer, const char* inner) {
  const json* found = Member(object, outer);
  return found == nullptr ? nullptr : Member(*found, inner);
}

std::optional<double> Dollars(const json* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto dollars = value->get<double>();
  return std::isfinite(dollars) && dollars >= 0 && dollars < kMostDollars ? std::optional(dollars) : std::nullopt;
}

// The cost in US dollars that a `usage` states: OpenRouter's, to which a request with the user's own key at the
// provider adds that provider's; Perplexity's object; xAI's ticks.
std::optional<double> StatedCost(const json& usage) {
  constexpr double kTicks = 1e10;  // a dollar
  if (const auto ticks = Member(usage, "cost_in_usd_ticks"); ticks != nullptr && ticks->is_number_unsigned())
    return ticks->get<double>() / kTicks;
  std::optional<double> cost = Dollars(Member(usage, "cost"));
  if (!cost) return Dollars(Inner(usage, "cost", "total_cost"));
  const double upstream = Dollars(Inner(usage, "cost_details", "upstream_inference_cost")).value_or(0);
  const json* own_key = Member(usage, "is_byok");
  const bool adds = own_key != nullptr && own_key->is_boolean() ? own_key->get<bool>() : upstream > *cost;
  return adds ? *cost + upstream : *cost;
}

// JSON as Python's module reads it: NaN and Infinity are numbers, here null. An escaped half of a character, which a
// server cut between two events, is U+FFFD.
std::string Lenient(std::string_view text) {
  constexpr std::string_view kNoNumbers = "-Infinity|Infinity|NaN",
                             kHalf = "\\ud8|\\ud9|\\uda|\\udb|\\udc|\\udd|\\ude|\\udf";
  std::string lenient;
  bool quoted = false;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const size_t word = quoted ? 0 : StartsWithAny(rest, kNoNumbers);
    const bool half = quoted && StartsWithAny(Lower(rest.substr(0, 4)), kHalf) > 0;
    const size_t taken = word > 0 ? word : half ? 6 : quoted && rest[0] == '\\' ? 2 : 1;
    quoted = quoted != (taken == 1 && rest[0] == '"');
    lenient += word > 0 ? "null" : half ? "\\ufffd" : rest.substr(0, taken);
    at += taken;
  }
  return lenient;
}

json ParseJson(std::string_view text) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_discarded()) return object;
  std::string lenient = Lenient(text);
  object = json::parse(lenient, nullptr, false);
  if (!object.is_discarded()) return object;
  for (char& c : lenient) c = (c & 0x80) != 0 ? '?' : c;  // bytes that are no UTF-8, such as a part of a character
  return json::parse(lenient, nullptr, false);
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
                              : "the stream contained no answer; it begins: " + Beginning());
    }
  } else {
    TakeWhole(status_);
  }
  if (has_error_) complete_ = false;
  if (complete_) NoteMissingText();
  // Text with a count of 0 means that the server does not count. Checked at the end, since a stream may send its counts
  // before its text.
  if (answer_.completion_tokens == 0 && !(answer_.text.empty() && answer_.refusal.empty())) answer_.usage_known = false;
}

// An answer without text says why, for messages.
void ResponseReader::NoteMissingText() {
  if (!Trimmed(answer_.text).empty() || !answer_.refusal.empty()) return;
  if (!tool_.empty()) {
    answer_.remark = "the model called the tool " + Quoted(tool_) + " instead of answering: extra_body must offer none";
  } else if (answer_.reasoning_bytes > 0) {
    answer_.remark = "all of the answer, " + std::to_string(answer_.reasoning_bytes) +
                     " bytes, came as reasoning_content: raise max_tokens, or let the model reason less (extra_body: "
                     "{reasoning_effort: low}, or the server's own option)";
  } else {
    answer_.remark = "the answer is empty, with finish_reason " + Quoted("\"" + answer_.finish_reason + "\"");
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
  secrets_.Apply(shown);
  // The end of a stream's kept part may be the beginning of a secret.
  if (form_ == Form::kStream && body_.size() == kKeptOfStream)
    shown.resize(shown.size() - std::min(shown.size(), kLongestSecret));
  return Excerpt(shown);
}

void ResponseReader::TakeEvent(std::string_view data) {
  if (ended_ || has_error_) return;
  data = Trimmed(data);
  if (data.empty() || data[0] != '{') {  // a keep-alive: "ping", ": processing"
    if (data != "[DONE]") return;
    ended_ = true;
    complete_ = has_choice_;
    return;
  }
  const json object = ParseJson(data);
  if (object.is_discarded()) {
    if (complete_) return;  // the answer is whole and paid for
    NotComplete("the stream contains an event that is not JSON: " + Quoted(data));
    ended_ = true;
    return;
  }
  if (complete_ && Member(object, "error") != nullptr) return;
  if (TakeError(object, data)) return;
  TakeChoices(object, "delta", data);
  TakeUsage(object);
}

void ResponseReader::TakeWhole(int status) {
  json object = ParseJson(body_);
  if (object.is_array() && !object.empty() && Member(object[0], "error") != nullptr)
    object = json(object[0]);  // Google
  const bool success = status >= 200 && status < 300;
  if (object.is_discarded() || !object.is_object()) {
    // Text that begins like an object may be an answer that was cut off.
    const size_t begin = body_.find_first_not_of(kBlanks);
    foreign_ = body_.find('{') != begin || body_.empty();
    error_.message = Beginning();
    error_.text = Lower(std::string_view(body_).substr(0, kSearchedOfError));
    const bool page = begin != std::string::npos && body_[begin] == '<';
    NotComplete(body_.empty() ? "the answer is empty"
                              : std::string("the answer is not a JSON object") + (page ? " but a web page" : "") +
                                    "; it begins: " + Beginning());
    return;
  }
  if (TakeError(object, body_, /*is_error=*/!success)) return;
  TakeChoices(object, "message", body_);
  TakeUsage(object);
  complete_ = has_choice_;
  foreign_ = !object.contains("choices") && !object.contains("usage");
  if (!complete_) NotComplete("the answer contains no choice; it begins: " + Beginning());
}

void ResponseReader::TakeChoices(const json& object, const char* part, std::string_view text) {
  if (answer_.model.empty()) answer_.model = StringOr(Member(object, "model"));
  const json* choices = Member(object, "choices");
  if (choices == nullptr || !choices->is_array()) return;
  for (const json& choice : *choices) {
    // One answer was requested: of several choices the first counts, of one that one, whatever its index.
    const uint64_t index = CountOr0(Member(choice, "index"));
    if (choices->size() == 1 && !index_) index_ = index;
    if (index != index_.value_or(0)) continue;
    // In a stream only "delta" is read: the last chunk may also repeat the whole text as "message".
    const json* message = Member(choice, part);
    if (message != nullptr && message->is_object()) TakeMessage(*message);
    TakeUsage(choice);  // Moonshot
    if (TakeError(choice, text)) {
      has_choice_ = HasText();
      return;
    }
    if (const json* reason = Member(choice, "finish_reason"); reason != nullptr && reason->is_string())
      TakeFinishReason(reason->get<std::string>(), text);
  }
}

void ResponseReader::TakeMessage(const json& message) {
  has_choice_ = true;
  if (const json* content = Member(message, "content")) AppendContent(*content, answer_.text);
  if (const json* refusal = Member(message, "refusal")) AppendContent(*refusal, answer_.refusal);
  for (const char* name : {"reasoning_content", "reasoning"}) {  // some servers send both, with the same text
    const json* reasoning = Member(message, name);
    if (reasoning == nullptr || !reasoning->is_string()) continue;
    answer_.reasoning_bytes += reasoning->get_ref<const std::string&>().size();
    break;
  }
  if (const json* calls = Member(message, "tool_calls"); calls != nullptr && calls->is_array() && !calls->empty()) {
    if (tool_.empty()) tool_ = StringOr(Inner((*calls)[0], "function", "name"), "(unnamed)");
  }
}

// What services write, in the words of OpenAI: stop, length, content_filter; others stay as they are. A reason that
// names a failure of the generation makes the answer an error.
void ResponseReader::TakeFinishReason(std::string reason, std::string_view text) {
  const std::string lower = Lower(reason);
  if (lower.empty() || lower == "null") return;
  has_choice_ = true;
  // OpenRouter, Mistral: error; vLLM, SGLang: abort; Zhipu: network_error; DeepSeek: insufficient_system_resource.
  if (StartsWithAny(lower,
                    "error|abort|network|connection|insufficient_|cancel|timeout|overloaded|pause_turn|server_error|"
                    "internal|interrupted|unavailable|upstream") > 0) {
    has_error_ = true;
    error_.type = lower;
    error_.message = "the generation failed, with finish_reason \"" + Quoted(reason) + "\"";
    error_.text = Lower(text.substr(0, kSearchedOfError));
    has_choice_ = HasText();
    return;
  }
  // Google: "content_filter: RECITATION"; Zhipu: sensitive; Anthropic: refusal.
  if (StartsWithAny(lower, "content_filter|sensitive|safety|refusal|recitation|prohibited_content") > 0)
    reason = "content_filter";
  if (StartsWithAny(lower, "max_tokens|model_length|model_context_window_exceeded|max_length") > 0) reason = "length";
  answer_.finish_reason = std::move(reason);
  complete_ = true;
}

void ResponseReader::TakeUsage(const json& object) {
  const json* usage = Member(object, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  // A gateway that does not know a model's price states 0.
  if (const std::optional<double> cost = StatedCost(*usage); cost.value_or(0) > 0) answer_.cost = cost;
  const auto either = [&](const char* name, const char* of_anthropic) {
    return Member(*usage, name) != nullptr ? Member(*usage, name) : Member(*usage, of_anthropic);
  };
  const json* counted = either("completion_tokens", "output_tokens");
  uint64_t prompt = CountOr0(either("prompt_tokens", "input_tokens"));
  // Anthropic's input_tokens are without those that its cache took or had.
  if (Member(*usage, "prompt_tokens") == nullptr)
    prompt +=
        CountOr0(Member(*usage, "cache_read_input_tokens")) + CountOr0(Member(*usage, "cache_creation_input_tokens"));
  const uint64_t total = CountOr0(Member(*usage, "total_tokens"));
  uint64_t completion = CountOr0(counted);
  // xAI and Google count thoughts in the total only.
  if (const uint64_t thoughts = CountOr0(Inner(*usage, "completion_tokens_details", "reasoning_tokens"));
      total == 0 && thoughts > completion)
    completion += thoughts;
  if (prompt > 0 && total > prompt) completion = std::max(completion, total - prompt);
  const uint64_t largest = std::max({prompt, completion, total});
  if (largest == 0 || largest > kMostTokens) return;
  answer_.total_tokens = total;
  answer_.prompt_tokens = prompt;
  answer_.completion_tokens = completion;
  answer_.cached_tokens = 0;
  for (const json* cached :
       {Inner(*usage, "prompt_tokens_details", "cached_tokens"), Member(*usage, "prompt_cache_hit_tokens"),
        Member(*usage, "cache_read_input_tokens"), Member(*usage, "cached_tokens")})
    answer_.cached_tokens = std::min(prompt, std::max(answer_.cached_tokens, CountOr0(cached)));
  // Servers that do not count report 0; a request always has a prompt.
  answer_.usage_known = prompt > 0 && (completion > 0 || (counted != nullptr && counted->is_number_unsigned()));
}

// `text`: the JSON text that contains the object. `is_error`: the object is an error, whatever it contains.
bool ResponseReader::TakeError(const json& object, std::string_view text, bool is_error) {
  const json* error = Member(object, "error");
  if (const json* status = Inner(object, "base_resp", "status_code")) {  // MiniMax
    if (error == nullptr && *status != 0) error = &object["base_resp"];
  }
  if (error == nullptr && (is_error || StringOr(Member(object, "object")) == "error")) error = &object;  // older vLLM
  if (error == nullptr) return false;
  has_error_ = true;
  std::optional<std::string> plain = Plain(error);
  for (const char* name : {"message", "status_msg", "detail", "error_description"}) {
    if (!plain) plain = Plain(Member(*error, name));
  }
  error_.message = Quoted(plain ? std::string_view(*plain) : text);
  error_.type = StringOr(Member(*error, "type"), StringOr(Member(*error, "status")));
  error_.code = Plain(Member(*error, "code")).value_or(Plain(Member(*error, "status_code")).value_or(""));
  if (error_.code.empty() && !error->is_object()) error_.code = StringOr(Member(object, "code"));  // xAI
  // OpenRouter passes on what the provider said.
  if (const auto raw = Plain(Inner(*error, "metadata", "raw"))) {
    const json inner = json::parse(*raw, nullptr, /*allow_exceptions=*/false);
    const std::string words = StringOr(Inner(inner, "error", "message"), StringOr(Member(inner, "message"), *raw));
    const std::string provider = StringOr(Inner(*error, "metadata", "provider_name"), "the provider");
    error_.message += "; " + Quoted(provider) + ": " + Quoted(words);
  }
  error_.text = Lower(text.substr(0, kSearchedOfError));
  return true;
}

}  // namespace kgrpo::coder_gpt4o
