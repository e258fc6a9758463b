#include <kgrpo/sdk/error.h>
#include <kgrpo/support/evaluation_json.h>

namespace kgrpo {

using Json = nlohmann::ordered_json;

Json MetricsJson(const std::vector<Metric>& metrics) {
  Json json = Json::object();
  for (const Metric& metric : metrics) {
    if (metric.has_interval())
      json[metric.name] = {metric.value, metric.low, metric.high};
    else
      json[metric.name] = metric.value;
  }
  return json;
}

std::vector<Metric> MetricsFrom(const Json& json) {
  std::vector<Metric> metrics;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number()) metrics.push_back({name, value.get<double>()});  // NaN was written as null
    if (value.is_array() && value.size() == 3) metrics.push_back({name, value.at(0), value.at(1), value.at(2)});
  }
  return metrics;
}

Json RemarksJson(const std::vector<Remark>& remarks) {
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

std::vector<Remark> RemarksFrom(const Json& json) {
  std::vector<Remark> remarks;
  for (const Json& remark : json) {
    remarks.push_back(
        {remark.at("group"), remark.at("label"), remark.at("text"), remark.at("line"), remark.at("share")});
  }
  return remarks;
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
          {"metrics", MetricsJson(evaluation.metrics)},
          {"remarks", RemarksJson(evaluation.remarks)}};
}

Evaluation EvaluationFromJson(const Json& json) {
  Evaluation evaluation;
  evaluation.compiled = json.at("compiled");
  evaluation.correct = json.at("correct");
  evaluation.verdict = json.at("verdict");
  evaluation.seconds = json.at("seconds");
  evaluation.seconds_low = json.at("seconds_low");
  evaluation.seconds_high = json.at("seconds_high");
  evaluation.modelled = json.at("modelled");
  evaluation.time_source = json.at("time_source");
  evaluation.diagnosis = json.at("diagnosis");
  evaluation.metrics = MetricsFrom(json.at("metrics"));
  evaluation.speedup = json.at("speedup");
  evaluation.speedup_low = json.at("speedup_low");
  evaluation.speedup_high = json.at("speedup_high");
  evaluation.remarks = RemarksFrom(json.at("remarks"));
  return evaluation;
}

Evaluation EvaluationFromAnswer(const Json& json) {
  try {
    if (!json.is_object() || !json.contains("correct"))
      throw Error(KGRPO_ERROR_INTERNAL,
                  "an evaluation is an object with \"correct\", and \"seconds\" where it is true");
    const bool correct = json.at("correct");
    const double seconds = json.value("seconds", 0.0);
    Json whole = {{"compiled", true},
                  {"correct", correct},
                  {"verdict", correct ? KGRPO_VERDICT_CORRECT : KGRPO_VERDICT_WRONG},
                  {"seconds", seconds},
                  {"seconds_low", seconds},
                  {"seconds_high", seconds},
                  {"modelled", false},
                  {"time_source", ""},
                  {"diagnosis", ""},
                  {"speedup", 0.0},
                  {"speedup_low", 0.0},
                  {"speedup_high", 0.0},
                  {"metrics", Json::object()},
                  {"remarks", Json::array()}};
    if (json.value("compiled", true) == false) whole["verdict"] = KGRPO_VERDICT_NOT_COMPILED;
    for (auto& [key, value] : whole.items()) {
      if (json.contains(key)) value = json[key];
    }
    for (Json& remark : whole["remarks"]) {
      const Json given = remark;
      remark = {{"group", ""}, {"label", ""}, {"text", ""}, {"line", 0}, {"share", 0.0}};
      remark.update(given);
    }
    if (correct && whole["verdict"] != KGRPO_VERDICT_CORRECT)
      throw Error(KGRPO_ERROR_INTERNAL, "an evaluation is correct and has the verdict " + whole["verdict"].dump());
    const Evaluation evaluation = EvaluationFromJson(whole);
    return Evaluation::FromC(*evaluation.ToC().c());  // FromC checks it
  } catch (const nlohmann::json::exception& error) {
    throw Error(KGRPO_ERROR_INTERNAL, std::string("an evaluation that cannot be read: ") + error.what());
  }
}

}  // namespace kgrpo
