// JSON forms of what the store keeps as text: messages, metrics, remarks, changes; evaluations are support's. Used
// within store/, and for run.json and the report.
#ifndef KGRPO_STORE_JSON_H
#define KGRPO_STORE_JSON_H

#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/evaluation_json.h>
#include "plugin/records.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kgrpo {

struct SettingChange;  // store/records.h

std::string MessagesToJson(const std::vector<ChatMessage>& messages);  // [{"role": ..., "content": ...}, ...]
std::vector<ChatMessage> MessagesFromJson(const std::string& text);
std::string MetricsToJson(const std::vector<Metric>& metrics);  // {"name": value, ...}, order kept
std::vector<Metric> MetricsFromJson(const std::string& text);
std::string RemarksToJson(const std::vector<Remark>& remarks);  // [{"group": ..., "text": ...}, ...]
std::vector<Remark> RemarksFromJson(const std::string& text);
nlohmann::ordered_json ChangeToJson(const SettingChange& change);  // {after_step, key, before, after}

}  // namespace kgrpo
#endif
