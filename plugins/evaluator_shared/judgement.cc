#include "evaluator_shared/judgement.h"

#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/error.h>

#include <nlohmann/json.hpp>

namespace kgrpo::evaluator {

void Judgement::Conclude(const Trouble& trouble) {
  correct = !trouble;
  verdict = correct ? KGRPO_VERDICT_CORRECT : trouble.code;
  if (correct) return;
  diagnosis = trouble.sentence;
  seconds = seconds_low = seconds_high = 0;
}

void RequireCorrectReference(const Judgement& judgement, const Problem& problem) {
  if (judgement.correct) return;
  throw Error(KGRPO_ERROR_INVALID, problem.directory + "/reference.cu: the reference kernel is not correct (" +
                                       judgement.verdict + "): " + judgement.diagnosis);
}

std::string Judgement::ToJson() const {
  nlohmann::json json;
  json["compiled"] = compiled;
  json["correct"] = correct;
  json["verdict"] = verdict;
  json["seconds"] = {seconds, seconds_low, seconds_high};
  json["diagnosis"] = diagnosis;
  json["metrics"] = nlohmann::json::array();
  for (const auto& [name, value] : metrics) json["metrics"].push_back({name, value});
  // Text of a candidate may not be UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Judgement Judgement::FromJson(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  Judgement judgement;
  judgement.compiled = json.at("compiled").get<bool>();
  judgement.correct = json.at("correct").get<bool>();
  // Earlier versions called a correct kernel "right".
  judgement.verdict = judgement.correct ? KGRPO_VERDICT_CORRECT : json.at("verdict").get<std::string>();
  const nlohmann::json& seconds = json.at("seconds");
  judgement.seconds = seconds.at(0).get<double>();
  judgement.seconds_low = seconds.at(1).get<double>();
  judgement.seconds_high = seconds.at(2).get<double>();
  judgement.diagnosis = json.at("diagnosis").get<std::string>();
  for (const nlohmann::json& metric : json.at("metrics")) {
    judgement.metrics.emplace_back(metric.at(0).get<std::string>(), metric.at(1).get<double>());
  }
  return judgement;
}

}  // namespace kgrpo::evaluator
