// Evaluations as JSON: in a run's files, towards programs that are plugins, and in the evaluator's service. One form
// for all of them; docs/protocol/evaluation.json is its schema.
#ifndef KGRPO_SUPPORT_EVALUATION_JSON_H
#define KGRPO_SUPPORT_EVALUATION_JSON_H

#include <kgrpo/support/evaluation.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace kgrpo {

// Numbers that are not finite are written as null. Readers throw nlohmann::json::exception.
nlohmann::ordered_json MetricsJson(
    const std::vector<Metric>& metrics);  // {"name": value, "name": [value, low, high], ...}, order kept
std::vector<Metric> MetricsFrom(const nlohmann::ordered_json& json);
nlohmann::ordered_json RemarksJson(const std::vector<Remark>& remarks);  // [{"group": ..., "text": ...}, ...]
std::vector<Remark> RemarksFrom(const nlohmann::ordered_json& json);
nlohmann::ordered_json EvaluationToJson(const Evaluation& evaluation);
Evaluation EvaluationFromJson(const nlohmann::ordered_json& json);

// Reads the answer of a program or a server, which may leave members out: only "correct" is required, and "seconds" of
// a correct kernel. Throws KGRPO_ERROR_INTERNAL with the reason.
Evaluation EvaluationFromAnswer(const nlohmann::ordered_json& json);

}  // namespace kgrpo
#endif
