// plugin.cc - observer_tensorboard as kgrpo.observer/1: every metric of a step becomes a point of a curve, in an event
// file in the run's folder.
#include <kgrpo/observer.h>
#include <kgrpo/sdk/plugin.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "observer_tensorboard/event_writer.h"

struct kgrpo_observer {
  std::optional<kgrpo::tensorboard::EventWriter> events;  // set by Begin
};

namespace kgrpo::tensorboard {
namespace {

constexpr std::string_view kSchema = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "observer_tensorboard",
  "description": "Writes every metric of a step to a TensorBoard event file in the run's folder.",
  "type": "object",
  "additionalProperties": false,
  "properties": {}
})json";

double Now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

kgrpo_str OptionsSchema() { return Str(kSchema); }

kgrpo_error* Create(const kgrpo_host*, kgrpo_str options, kgrpo_observer** out) {
  return Guard([&] {
    if (!nlohmann::json::parse(View(options)).is_object()) throw Error(KGRPO_ERROR_INVALID, "expected a mapping");
    *out = new kgrpo_observer{};
  });
}

void Destroy(kgrpo_observer* self) { delete self; }

kgrpo_error* Begin(kgrpo_observer* self, const kgrpo_run_info* run) {
  return Guard([&] {
    const std::optional<uint64_t> purge_from = run->resumed != 0 ? std::optional(run->done + 1) : std::nullopt;
    self->events.emplace(View(run->directory), Now(), purge_from);
  });
}

kgrpo_error* Step(kgrpo_observer* self, const kgrpo_step_event* event) {
  return Guard(
      [&] { self->events->Add(event->step, event->finished_at, std::span(event->metrics, event->metric_count)); });
}

// The duration of a checkpoint is known only after the Step event of its step.
kgrpo_error* Checkpoint(kgrpo_observer* self, const kgrpo_checkpoint_event* event) {
  return Guard([&] {
    const kgrpo_metric time = kgrpo::Measured("time/checkpoint", event->seconds);
    self->events->Add(event->step, event->finished_at, std::span(&time, 1));
  });
}

const kgrpo_observer_interface kObserverInterface = {
    sizeof(kgrpo_observer_interface), OptionsSchema, Create, Destroy, Begin, nullptr, Step, Checkpoint, nullptr,
    /*get_extension=*/nullptr};

}  // namespace
}  // namespace kgrpo::tensorboard

KGRPO_PLUGIN("observer_tensorboard", KGRPO_VERSION, "metrics as curves, for TensorBoard",
             {KGRPO_OBSERVER_INTERFACE, &kgrpo::tensorboard::kObserverInterface});
