// reward_bytes_saved - a reward for memory traffic: a correct kernel is paid for the share of the reference's DRAM
// bytes that it saves. The whole of a plugin: options, the interface, the bootstrap.
#include <kgrpo/reward.h>
#include <kgrpo/sdk/plugin.h>

#include <memory>
#include <string_view>

#include <nlohmann/json.hpp>

// The instance: what create makes and the other functions get back.
struct kgrpo_reward {
  double weight;
  double failure;
};

namespace {

// The schema of `options:`. The host checks the pipeline against it and fills the defaults in before create is called.
kgrpo_str OptionsSchema() {
  return kgrpo::Str(R"json({
    "title": "reward_bytes_saved",
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "weight": {"title": "weight", "type": "number", "minimum": 0, "default": 1.0,
                 "description": "Paid for a kernel that moves no bytes at all."},
      "failure": {"title": "failure", "type": "number", "maximum": 0, "default": -1.0,
                  "description": "Paid for a kernel that is not correct."}
    }
  })json");
}

// Guard turns whatever is thrown into an error of the ABI: no exception leaves the plugin.
kgrpo_error* Create(const kgrpo_host*, kgrpo_str options, kgrpo_reward** out) {
  return kgrpo::Guard([&] {
    const auto json = nlohmann::json::parse(kgrpo::View(options));
    *out = new kgrpo_reward{json.at("weight").get<double>(), json.at("failure").get<double>()};
  });
}

void Destroy(kgrpo_reward* self) { delete self; }

// The metric of that name; `otherwise` where the evaluator gives none.
double MetricOf(const kgrpo_evaluation* evaluation, std::string_view name, double otherwise) {
  for (size_t i = 0; i < evaluation->metric_count; ++i) {
    if (kgrpo::View(evaluation->metrics[i].name) == name) return evaluation->metrics[i].value;
  }
  return otherwise;
}

kgrpo_error* Score(const kgrpo_reward* self, const kgrpo_reward_request* request, kgrpo_metric_sink parts,
                   double* score) {
  return kgrpo::Guard([&] {
    const kgrpo_evaluation* candidate = request->candidate;
    if (candidate == nullptr || candidate->correct == 0) {
      *score = self->failure;
      parts.add(parts.context, kgrpo::Measured("failure", *score));
      return;
    }
    const double before = MetricOf(request->baseline, "dram_bytes", 0.0);
    const double after = MetricOf(candidate, "dram_bytes", 0.0);
    if (before <= 0)
      throw kgrpo::Error(KGRPO_ERROR_UNSUPPORTED, "reward_bytes_saved needs an evaluator that measures dram_bytes");
    *score = self->weight * (1.0 - after / before);
    parts.add(parts.context, kgrpo::Measured("saved", *score));
  });
}

const kgrpo_reward_interface kInterface = {
    sizeof(kgrpo_reward_interface), OptionsSchema, Create, Destroy, Score, nullptr, /*get_extension=*/nullptr};

}  // namespace

KGRPO_PLUGIN("reward_bytes_saved", "0.1.0", "pays for the share of memory traffic that a kernel saves",
             {KGRPO_REWARD_INTERFACE, &kInterface});
