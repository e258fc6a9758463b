#include "program_shared/wire.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/evaluation_json.h>

#include <algorithm>
#include <utility>

#include "program_shared/json_text.h"

namespace kgrpo::program {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json EvaluationJson(const kgrpo_evaluation* evaluation) {
  return evaluation == nullptr ? ordered_json() : EvaluationToJson(Evaluation::FromC(*evaluation));
}

void Write(JsonText& json, const kgrpo_metric& metric) {
  if (metric.low == 0 && metric.high == 0) {
    json.Number(metric.value);
    return;
  }
  json.Open('[').Number(metric.value).Number(metric.low).Number(metric.high).Close(']');
}

// Writes the members of EvaluationToJson, by the same names. The host made the evaluation, so it needs no checks.
void Write(JsonText& json, const kgrpo_evaluation* evaluation) {
  if (evaluation == nullptr) {
    json.Null();
    return;
  }
  const kgrpo_evaluation& e = *evaluation;
  json.Open('{').Key("compiled").Flag(e.compiled != 0).Key("correct").Flag(e.correct != 0);
  json.Key("verdict").Text(View(e.verdict));
  json.Key("seconds").Number(e.seconds).Key("seconds_low").Number(e.seconds_low);
  json.Key("seconds_high").Number(e.seconds_high).Key("modelled").Flag(e.modelled != 0);
  json.Key("time_source").Text(View(e.time_source)).Key("diagnosis").Text(View(e.diagnosis));
  json.Key("speedup").Number(e.speedup).Key("speedup_low").Number(e.speedup_low);
  json.Key("speedup_high").Number(e.speedup_high).Key("metrics").Open('{');
  for (size_t i = 0; i < e.metric_count; ++i) Write(json.QuotedKey(View(e.metrics[i].name)), e.metrics[i]);
  json.Close('}').Key("remarks").Open('[');
  for (size_t i = 0; i < e.remark_count; ++i) {
    const kgrpo_remark& remark = *e.remarks[i];
    json.Open('{').Key("group").Text(View(remark.group)).Key("label").Text(View(remark.label));
    json.Key("text").Text(View(remark.text)).Key("line").Count(remark.line);
    json.Key("share").Number(remark.share).Close('}');
  }
  json.Close(']').Close('}');
}

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(KGRPO_ERROR_INTERNAL, "the program's answer: " + what);
}

std::string TextMember(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  if (!found->is_string()) Refuse("\"" + std::string(key) + "\": expected a text, found " + found->type_name());
  return found->get<std::string>();
}

double MoneyOf(const json& object, const char* key) {
  const json value = object.value(key, json(0));
  if (!value.is_number() || value < 0) Refuse("\"" + std::string(key) + "\": expected an amount of at least 0");
  return value;
}

uint64_t CountOf(const json& object, const char* key, uint64_t otherwise) {
  const json value = object.value(key, json(otherwise));
  if (!value.is_number_unsigned()) Refuse("\"" + std::string(key) + "\": expected a whole number of at least 0");
  return value;
}

// The outcome is "ok", and there is no text in "source".
[[noreturn]] void RefuseWithoutSource(const json& result) {
  if (result.contains("source")) Refuse("the outcome is \"ok\" and \"source\" is empty");
  std::string keys;
  for (const auto& [key, value] : result.items()) {
    if (key != "outcome") keys += (keys.empty() ? "; it has \"" : ", \"") + key + "\"";
  }
  Refuse("the outcome is \"ok\" and there is no \"source\"" + keys);
}

kgrpo_coder_outcome OutcomeNamed(const std::string& name) {
  std::string known;
  for (int i = KGRPO_CODER_OK; i <= KGRPO_CODER_NO_KERNEL; ++i) {
    const auto outcome = static_cast<kgrpo_coder_outcome>(i);
    if (name == CoderOutcomeName(outcome)) return outcome;
    known += (known.empty() ? "" : ", ") + std::string(CoderOutcomeName(outcome));
  }
  Refuse("\"outcome\": expected one of " + known + "; found \"" + name + "\"");
}

}  // namespace

uint64_t WireSeed(uint64_t seed) { return seed & ((uint64_t{1} << 53) - 1); }

std::string RewardParams(const kgrpo_reward_request& request) {
  JsonText json;
  json.Open('{');
  for (const auto& [key, evaluation] :
       {std::pair("baseline", request.baseline), std::pair("candidate", request.candidate),
        std::pair("current", request.current)})
    Write(json.Key(key), evaluation);
  json.Key("unchanged").Flag(request.unchanged != 0);
  json.Key("round").Count(request.round);
  json.Key("rounds").Count(request.rounds);
  json.Key("history").Open('[');
  for (uint32_t i = 0; i < request.round; ++i) Write(json, request.history[i]);
  json.Close(']').Key("suggestion").Text(View(request.suggestion));
  json.Key("suggestion_tokens").Count(request.suggestion_tokens).Key("answer");
  if (const kgrpo_coder_answer* answer = request.answer) {
    json.Open('{').Key("outcome").Text(CoderOutcomeName(static_cast<kgrpo_coder_outcome>(answer->outcome)));
    json.Key("source").Text(View(answer->source)).Key("summary").Text(View(answer->summary));
    json.Key("message").Text(View(answer->message)).Key("cost").Number(answer->cost);
    json.Key("seconds").Number(answer->seconds).Close('}');
  } else {
    json.Null();
  }
  json.Close('}');
  return json.Take();
}

ordered_json CoderParams(const kgrpo_coder_request& request) {
  const kgrpo_problem_info& problem = *request.problem;
  ordered_json traits = ordered_json::array();
  for (size_t i = 0; i < problem.trait_count; ++i) traits.push_back(View(problem.traits[i]));
  return {{"problem",
           {{"name", View(problem.name)},
            {"title", View(problem.title)},
            {"family", View(problem.family)},
            {"task", View(problem.task)},
            {"signature", View(problem.signature)},
            {"source", View(problem.source)},
            {"traits", std::move(traits)}}},
          {"code_a", View(request.code_a)},
          {"code_b", View(request.code_b)},
          {"last_suggestion", View(request.last_suggestion)},
          {"suggestion", View(request.suggestion)},
          {"current", EvaluationJson(request.current)},
          {"seed", WireSeed(request.seed)},
          {"truncated", request.truncated != 0}};
}

CoderAnswer ReadCoderAnswer(const json& result) {
  if (!result.is_object()) Refuse("expected an object with an \"outcome\"");
  CoderAnswer read;
  read.outcome = OutcomeNamed(TextMember(result, "outcome"));
  read.source = TextMember(result, "source");
  read.summary = TextMember(result, "summary");
  read.message = TextMember(result, "message");
  read.text = TextMember(result, "text");
  if (read.outcome == KGRPO_CODER_OK && read.source.empty()) RefuseWithoutSource(result);
  if (read.outcome != KGRPO_CODER_OK) {
    read.source.clear();
    if (read.message.empty()) read.message = "the program does not say why";
  }
  read.prompt_tokens = CountOf(result, "prompt_tokens", 0);
  read.completion_tokens = CountOf(result, "completion_tokens", 0);
  read.cost = MoneyOf(result, "cost");
  read.attempts = static_cast<uint32_t>(std::min<uint64_t>(CountOf(result, "attempts", 1), UINT32_MAX));
  read.reused = result.value("reused", json(false)) == true;
  return read;
}

OpenedProblem::OpenedProblem(std::string directory, const json& result) : directory_(std::move(directory)) {
  if (!result.is_object()) Refuse("expected an object with the problem's \"name\" and \"source\"");
  name_ = TextMember(result, "name");
  source_ = TextMember(result, "source");
  if (name_.empty() || source_.empty()) Refuse("a problem needs a \"name\" and a \"source\"");
  title_ = TextMember(result, "title");
  if (title_.empty()) title_ = name_;
  family_ = TextMember(result, "family");
  split_ = TextMember(result, "split");
  if (split_.empty()) split_ = "train";
  task_ = TextMember(result, "task");
  signature_ = TextMember(result, "signature");
  const json traits = result.value("traits", json::array());
  if (!traits.is_array()) Refuse("\"traits\": expected a list of words");
  for (const json& trait : traits) {
    if (!trait.is_string()) Refuse("\"traits\": expected a list of words");
    traits_.push_back(trait);
  }
  for (const std::string& trait : traits_) trait_texts_.push_back(Str(trait));
  info_.struct_size = sizeof info_;
  info_.name = Str(name_);
  info_.title = Str(title_);
  info_.family = Str(family_);
  info_.split = Str(split_);
  info_.task = Str(task_);
  info_.signature = Str(signature_);
  info_.source = Str(source_);
  info_.traits = trait_texts_.data();
  info_.trait_count = trait_texts_.size();
}

}  // namespace kgrpo::program
