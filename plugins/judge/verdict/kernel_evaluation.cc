#include "judge/verdict/kernel_evaluation.h"

#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>

#include <nlohmann/json.hpp>

#include "judge/verdict/problem_findings.h"  // DraftAdvice

namespace kgrpo::evaluator {

void KernelEvaluation::Conclude(const Trouble& trouble) {
  correct = !trouble;
  verdict = correct ? KGRPO_VERDICT_CORRECT : trouble.code;
  if (correct) return;
  diagnosis = trouble.sentence;
  wrong = trouble.wrong;
  seconds = seconds_low = seconds_high = 0;
}

std::string ReferenceTrouble(const KernelEvaluation& evaluation, const Problem& problem) {
  if (const std::string advice = DraftAdvice(problem); evaluation.verdict == "wrong" && !advice.empty())
    return problem.directory + (problem.checker_source ? "/checker.cc" : "/oracle.cc") +
           ": still the draft of problems new, so no kernel can be judged. " + advice;
  return problem.directory + "/reference.cu: the reference kernel is not correct (" + evaluation.verdict +
         "): " + evaluation.diagnosis;
}

void RequireCorrectReference(const KernelEvaluation& evaluation, const Problem& problem) {
  if (!evaluation.correct) throw Error(KGRPO_ERROR_INVALID, ReferenceTrouble(evaluation, problem));
}

std::string KernelEvaluation::ToJson() const {
  nlohmann::json json;
  json["compiled"] = compiled;
  json["correct"] = correct;
  json["verdict"] = verdict;
  json["seconds"] = {seconds, seconds_low, seconds_high};
  json["diagnosis"] = diagnosis;
  if (!not_judged.empty()) json["not_judged"] = not_judged;
  if (!wrong.name.empty()) json["wrong"] = {wrong.name, wrong.error};
  if (!undecided.empty()) json["undecided"] = undecided;
  json["metrics"] = nlohmann::json::array();
  for (const auto& [name, value] : metrics) json["metrics"].push_back({name, value});
  // Text of a candidate may not be UTF-8.
  return DumpJson(json);
}

KernelEvaluation KernelEvaluation::FromJson(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  KernelEvaluation evaluation;
  evaluation.compiled = json.at("compiled").get<bool>();
  evaluation.correct = json.at("correct").get<bool>();
  evaluation.verdict = json.at("verdict").get<std::string>();
  const nlohmann::json& seconds = json.at("seconds");
  evaluation.seconds = seconds.at(0).get<double>();
  evaluation.seconds_low = seconds.at(1).get<double>();
  evaluation.seconds_high = seconds.at(2).get<double>();
  evaluation.diagnosis = json.at("diagnosis").get<std::string>();
  evaluation.not_judged = json.value("not_judged", "");
  if (json.contains("wrong") && json["wrong"].at(1).is_number())  // an infinite error was written as null
    evaluation.wrong = {json["wrong"].at(0).get<std::string>(), json["wrong"].at(1).get<double>()};
  evaluation.undecided = json.value("undecided", std::vector<std::string>());
  for (const nlohmann::json& metric : json.at("metrics")) {
    evaluation.metrics.emplace_back(metric.at(0).get<std::string>(), metric.at(1).get<double>());
  }
  return evaluation;
}

}  // namespace kgrpo::evaluator
