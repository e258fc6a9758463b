// plugin.cc - observer_metrics as kgrpo.observer/1: writes metrics.jsonl (a line per step) to the run's folder and,
// with the option `rounds`, rounds.jsonl (a line per round). docs/run_folder.md lists the keys.
#include <kgrpo/observer.h>
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/support/coder_answer.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "observer_metrics/lines_file.h"

struct kgrpo_observer {
  bool tells_rounds = false;
  std::optional<kgrpo::metrics::LinesFile> steps;   // set by Begin
  std::optional<kgrpo::metrics::LinesFile> rounds;  // set by Begin if tells_rounds
};

namespace kgrpo::metrics {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "observer_metrics",
  "description": "Writes metrics.jsonl in the run's folder: one JSON object a step, with every metric.",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "rounds": {"title": "Rounds", "type": "boolean", "default": false,
      "description": "Write rounds.jsonl too: one JSON object a round, with suggestion, verdict and reward."}
  }
})json";

kgrpo_str OptionsSchema() { return Str(kSchema); }

kgrpo_error* Create(const kgrpo_host*, kgrpo_str options, kgrpo_observer** out) {
  return Guard([&] {
    const nlohmann::json json = nlohmann::json::parse(View(options));
    *out = new kgrpo_observer{json.at("rounds").get<bool>(), {}, {}};
  });
}

void Destroy(kgrpo_observer* self) { delete self; }

kgrpo_error* Begin(kgrpo_observer* self, const kgrpo_run_info* run) {
  return Guard([&] {
    const std::filesystem::path folder(View(run->directory));
    self->steps.emplace(folder / "metrics.jsonl", run->done);
    if (self->tells_rounds) self->rounds.emplace(folder / "rounds.jsonl", run->done);
  });
}

kgrpo_error* Round(kgrpo_observer* self, const kgrpo_round_event* event) {
  return Guard([&] {
    if (!self->rounds) return;
    const kgrpo_evaluation* evaluation = event->evaluation;
    Json line;
    line["step"] = event->step;
    line["heldout"] = event->heldout != 0;
    line["trajectory"] = event->trajectory;
    line["round"] = event->round;
    line["rounds"] = event->rounds;
    line["problem"] = View(event->problem);
    line["suggestion"] = View(event->suggestion);
    line["coder_outcome"] = CoderOutcomeName(static_cast<kgrpo_coder_outcome>(event->answer->outcome));
    line["coder_cost"] = event->answer->cost;
    line["verdict"] = evaluation == nullptr ? std::string_view() : View(evaluation->verdict);
    line["seconds"] = evaluation == nullptr ? 0.0 : evaluation->seconds;
    line["speedup"] = event->evaluation == nullptr ? 0 : event->evaluation->speedup;
    line["reward"] = event->reward;
    if (!std::isnan(event->returned)) line["return"] = event->returned;
    if (!std::isnan(event->advantage)) line["advantage"] = event->advantage;
    self->rounds->Add(line);
  });
}

kgrpo_error* Step(kgrpo_observer* self, const kgrpo_step_event* event) {
  return Guard([&] {
    Json line = {{"step", event->step},
                 {"stage", event->stage},
                 {"trainer", View(event->trainer)},
                 {"time", event->finished_at}};
    for (size_t i = 0; i < event->metric_count; ++i) {
      // emplace: a metric with the name of one of these keys does not replace it.
      line.emplace(Copy(event->metrics[i].name), event->metrics[i].value);
    }
    if (self->rounds) self->rounds->Flush();
    self->steps->Add(line);
    self->steps->Flush();
  });
}

const kgrpo_observer_interface kObserverInterface = {
    sizeof(kgrpo_observer_interface), OptionsSchema, Create, Destroy, Begin, Round, Step, nullptr, nullptr,
    /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::metrics

KGRPO_PLUGIN("observer_metrics", KGRPO_VERSION, "metrics.jsonl: one JSON object a step",
             {KGRPO_OBSERVER_INTERFACE, &kgrpo::metrics::kObserverInterface});
