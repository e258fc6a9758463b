#include "store/json.h"

#include "store/records.h"

namespace kgrpo {

using Json = nlohmann::ordered_json;

std::string MessagesToJson(const std::vector<ChatMessage>& messages) {
  Json json = Json::array();
  for (const ChatMessage& message : messages) json.push_back({{"role", message.role}, {"content", message.content}});
  return DumpJson(json);
}

std::vector<ChatMessage> MessagesFromJson(const std::string& text) {
  std::vector<ChatMessage> messages;
  for (const Json& message : Json::parse(text)) messages.push_back({message.at("role"), message.at("content")});
  return messages;
}

std::string MetricsToJson(const std::vector<Metric>& metrics) { return DumpJson(MetricsJson(metrics)); }
std::vector<Metric> MetricsFromJson(const std::string& text) { return MetricsFrom(Json::parse(text)); }

std::string RemarksToJson(const std::vector<Remark>& remarks) { return DumpJson(RemarksJson(remarks)); }
std::vector<Remark> RemarksFromJson(const std::string& text) { return RemarksFrom(Json::parse(text)); }

Json ChangeToJson(const SettingChange& change) {
  return {{"after_step", change.after_step},
          {"key", change.key},
          {"before", Json::parse(change.before)},
          {"after", Json::parse(change.after)}};
}

}  // namespace kgrpo
