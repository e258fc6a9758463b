#include "store/json.h"

namespace kgrpo {

using Json = nlohmann::ordered_json;

std::string DumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

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

namespace {

Json MetricsObject(const std::vector<Metric>& metrics) {
  Json json = Json::object();
  for (const Metric& metric : metrics) json[metric.name] = metric.value;
  return json;
}

std::vector<Metric> MetricsOf(const Json& json) {
  std::vector<Metric> metrics;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number()) metrics.push_back({name, value.get<double>()});  // NaN was written as null
  }
  return metrics;
}

Json RemarksArray(const std::vector<Remark>& remarks) {
  Json json = Json::array();
  for (const Remark& remark : remarks) {
    json.push_back({{"group", remark.group},
                    {"label", remark.label},
                    {"text", remark.text},
                    {"line", remark.line},
                    {"share", remark.share}});
  }
  return json;
}

std::vector<Remark> RemarksOf(const Json& json) {
  std::vector<Remark> remarks;
  for (const Json& remark : json) {
    remarks.push_back(
        {remark.at("group"), remark.at("label"), remark.at("text"), remark.at("line"), remark.at("share")});
  }
  return remarks;
}

}  // namespace

std::string MetricsToJson(const std::vector<Metric>& metrics) {
  return DumpJson(MetricsObject(metrics));
}
std::vector<Metric> MetricsFromJson(const std::string& text) {
  return MetricsOf(Json::parse(text));
}

std::string RemarksToJson(const std::vector<Remark>& remarks) {
  return DumpJson(RemarksArray(remarks));
}
std::vector<Remark> RemarksFromJson(const std::string& text) {
  return RemarksOf(Json::parse(text));
}

Json EvaluationToJson(const Evaluation& evaluation) {
  return {{"compiled", evaluation.compiled},
          {"correct", evaluation.correct},
          {"verdict", evaluation.verdict},
          {"seconds", evaluation.seconds},
          {"seconds_low", evaluation.seconds_low},
          {"seconds_high", evaluation.seconds_high},
          {"modelled", evaluation.modelled},
          {"time_source", evaluation.time_source},
          {"diagnosis", evaluation.diagnosis},
          {"speedup", evaluation.speedup},
          {"speedup_low", evaluation.speedup_low},
          {"speedup_high", evaluation.speedup_high},
          {"metrics", MetricsObject(evaluation.metrics)},
          {"remarks", RemarksArray(evaluation.remarks)}};
}

Evaluation EvaluationFromJson(const Json& json) {
  Evaluation evaluation;
  evaluation.compiled = json.at("compiled");
  evaluation.correct = json.at("correct");
  // Earlier versions called a correct kernel "right".
  evaluation.verdict = evaluation.correct ? KGRPO_VERDICT_CORRECT : json.at("verdict").get<std::string>();
  evaluation.seconds = json.at("seconds");
  evaluation.seconds_low = json.at("seconds_low");
  evaluation.seconds_high = json.at("seconds_high");
  evaluation.modelled = json.at("modelled");
  evaluation.time_source = json.at("time_source");
  evaluation.diagnosis = json.at("diagnosis");
  evaluation.metrics = MetricsOf(json.at("metrics"));
  if (!json.contains("remarks")) return evaluation;  // written by an earlier version
  evaluation.speedup = json.at("speedup");
  evaluation.speedup_low = json.at("speedup_low");
  evaluation.speedup_high = json.at("speedup_high");
  evaluation.remarks = RemarksOf(json.at("remarks"));
  return evaluation;
}

}  // namespace kgrpo
