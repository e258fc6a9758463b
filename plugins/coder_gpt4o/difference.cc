#include "coder_gpt4o/difference.h"

#include "coder_gpt4o/answer.h"  // OneLine

#include <algorithm>
#include <set>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr size_t kShownBytes = 100;

using Json = nlohmann::json;

const Json& Messages(const Json& request) {
  static const Json none = Json::array();
  const auto found = request.find("messages");
  return found == request.end() || !found->is_array() ? none : *found;
}

std::string TextMember(const Json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

size_t CommonAtBeginning(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

// Bytes that two texts have in common at their beginning and end.
size_t Common(std::string_view a, std::string_view b) {
  const size_t beginning = CommonAtBeginning(a, b);
  a.remove_prefix(beginning);
  b.remove_prefix(beginning);
  const auto [end, other] = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return beginning + static_cast<size_t>(end - a.rbegin());
}

std::string InQuotes(std::string_view text) {
  return "\"" + OneLine(text, kShownBytes) + "\"";
}

std::string_view LineAt(std::string_view text, size_t offset) {
  const size_t begin = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;  // npos + 1 is 0
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string TextDifference(std::string_view wanted, std::string_view recorded) {
  const size_t at = CommonAtBeginning(wanted, recorded);
  const auto line = 1 + std::count(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return "line " + std::to_string(line) + " is " + InQuotes(LineAt(wanted, at)) + ", recorded is " +
         InQuotes(LineAt(recorded, at));
}

std::set<std::string> Keys(const Json& a, const Json& b) {
  std::set<std::string> keys;
  for (const Json* request : {&a, &b}) {
    for (const auto& [key, value] : request->items()) {
      if (key != "messages") keys.insert(key);
    }
  }
  return keys;
}

std::string Value(const Json& request, const std::string& key) {
  const auto found = request.find(key);
  return found == request.end() ? "absent" : OneLine(found->dump(), kShownBytes);
}

}  // namespace

NearestRequest::NearestRequest(const std::string& body) : wanted_(Json::parse(body)) {}

NearestRequest::Distance NearestRequest::DistanceTo(const Json& recorded) const {
  Distance distance;
  for (const std::string& key : Keys(wanted_, recorded)) {
    if (!wanted_.contains(key) || !recorded.contains(key) || wanted_[key] != recorded[key]) ++distance.different;
  }
  const Json& a = Messages(wanted_);
  const Json& b = Messages(recorded);
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size()) {
      ++distance.different;
      continue;
    }
    if (a[i] != b[i]) ++distance.different;
    distance.common += Common(TextMember(a[i], "content"), TextMember(b[i], "content"));
  }
  return distance;
}

void NearestRequest::Consider(const std::string& body) {
  Json recorded = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!recorded.is_object()) return;
  const Distance distance = DistanceTo(recorded);
  const bool nearer = distance.different < distance_.different ||
                      (distance.different == distance_.different && distance.common > distance_.common);
  if (any_ && !nearer) return;
  any_ = true;
  distance_ = distance;
  nearest_ = std::move(recorded);
}

std::string NearestRequest::Difference() const {
  if (!any_) return "nothing is recorded in it";
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  for (const std::string& key : Keys(wanted_, nearest_)) {
    const std::string wanted = Value(wanted_, key), recorded = Value(nearest_, key);
    if (wanted != recorded) add(key + " is " + wanted + ", recorded is " + recorded);
  }
  const Json& a = Messages(wanted_);
  const Json& b = Messages(nearest_);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) continue;
    const std::string role = TextMember(a[i], "role"), recorded_role = TextMember(b[i], "role");
    const std::string name = "message " + std::to_string(i + 1) + " (" + role + ")";
    if (role != recorded_role) add(name + " has another role than the recorded one, " + recorded_role);
    const std::string wanted = TextMember(a[i], "content"), recorded = TextMember(b[i], "content");
    if (wanted != recorded) add(name + ", " + TextDifference(wanted, recorded));
  }
  if (a.size() != b.size()) add(std::to_string(a.size()) + " messages, recorded are " + std::to_string(b.size()));
  return "the nearest recorded request differs in this: " + text;
}

}  // namespace kgrpo::coder_gpt4o
