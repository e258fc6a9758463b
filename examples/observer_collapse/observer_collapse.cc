// observer_collapse - stops a run whose reward has collapsed: once the mean reward was below a limit for some steps in
// a row. The whole of a plugin: options, events, the bootstrap.
#include <kgrpo/observer.h>
#include <kgrpo/sdk/plugin.h>

#include <nlohmann/json.hpp>
#include <string>

// The instance: what Create makes and the other functions get back.
struct kgrpo_observer {
  kgrpo::Host host;
  double limit;
  int patience;
  int below = 0;  // steps in a row
};

namespace {

// The schema of `options:`. The host checks the pipeline against it and fills the defaults in before Create is called.
kgrpo_str OptionsSchema() {
  return kgrpo::Str(R"json({
    "title": "observer_collapse",
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "limit": {"title": "limit", "type": "number", "default": -0.9,
                "description": "A step whose mean reward is below it counts."},
      "patience": {"title": "patience", "type": "integer", "minimum": 1, "default": 5,
                   "description": "So many such steps in a row stop the run."}
    }
  })json");
}

// Guard turns whatever is thrown into an error of the ABI: no exception leaves the plugin.
kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_observer** out) {
  return kgrpo::Guard([&] {
    const auto json = nlohmann::json::parse(kgrpo::View(options));
    *out = new kgrpo_observer{kgrpo::Host(host), json.at("limit").get<double>(), json.at("patience").get<int>()};
  });
}

void Destroy(kgrpo_observer* self) { delete self; }

// A run begins, or a resumed one goes on after the step run->done.
kgrpo_error* Begin(kgrpo_observer* self, const kgrpo_run_info*) {
  self->below = 0;
  return nullptr;
}

// A step is recorded. An error would end the run: asking for a stop keeps its checkpoint.
kgrpo_error* Step(kgrpo_observer* self, const kgrpo_step_event* event) {
  return kgrpo::Guard([&] {
    for (size_t i = 0; i < event->metric_count; ++i) {
      if (kgrpo::View(event->metrics[i].name) != "reward") continue;
      self->below = event->metrics[i].value < self->limit ? self->below + 1 : 0;
    }
    if (self->below < self->patience) return;
    self->host.RequestStop("the mean reward was below " + std::to_string(self->limit) + " for " +
                           std::to_string(self->below) + " steps");
  });
}

const kgrpo_observer_interface kInterface = {sizeof(kgrpo_observer_interface),
                                             OptionsSchema,
                                             Create,
                                             Destroy,
                                             Begin,
                                             /*round=*/nullptr,
                                             Step,
                                             /*checkpoint=*/nullptr,
                                             /*end=*/nullptr,
                                             /*get_extension=*/nullptr};

}  // namespace

KGRPO_PLUGIN("observer_collapse", "0.1.0", "stops a run whose reward has collapsed",
             {KGRPO_OBSERVER_INTERFACE, &kInterface});
