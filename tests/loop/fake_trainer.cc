// The fake trainer: climbs the advantage in the policy's table, with momentum.
#include "fake_table.h"
#include "fakes.h"

#include <kgrpo/sdk/error.h>

#include <array>
#include <cmath>
#include <memory>

struct kgrpo_trainer {
  uint32_t source = KGRPO_TRAINER_ROLLOUTS;
  bool compares = true;  // with the reference
  const kgrpo_policy_interface* api = nullptr;
  kgrpo_policy* policy = nullptr;
  uint64_t updates = 0;
  std::array<float, kgrpo::fakes::kContexts * 6> momentum{};
};

namespace kgrpo::fakes {
namespace {

kgrpo_error* Update(kgrpo_trainer* self, const kgrpo_sample* const* samples, size_t count, kgrpo_update_sink sink) {
  return Guard([&] {
    ++knobs().updates;
    ++self->updates;
    if (knobs().not_finite_at > 0 && self->updates == static_cast<uint64_t>(knobs().not_finite_at.load())) {
      throw Error(KGRPO_ERROR_NOT_FINITE, "the loss is not a number");
    }
    double mean = 0;
    for (size_t i = 0; i < count; ++i) mean += samples[i]->reward / static_cast<double>(count);
    const kgrpo_parameter_group* const* groups = nullptr;
    size_t group_count = 0;
    Check(self->api->parameters(self->policy, &groups, &group_count));
    auto* table = static_cast<float*>(groups[0]->parameters[0]->value->data);
    for (float& m : self->momentum) m *= 0.5f;
    for (size_t i = 0; i < count; ++i) {
      const kgrpo_sample& sample = *samples[i];
      const bool imitate = self->source == KGRPO_TRAINER_DEMONSTRATIONS;
      if (!imitate && sample.logprobs == nullptr) throw Error(KGRPO_ERROR_INVALID, "samples need log-probabilities");
      const size_t context = ContextOf(sample.prompt_ids, sample.prompt_size);
      const auto technique = static_cast<size_t>(sample.completion_ids[0] - kFirstTechnique);
      const double advantage = imitate ? 0.01 : sample.reward - mean;
      const kgrpo_sample_outcome outcome = {sizeof(outcome), i, sample.reward, advantage};
      if (sink.sample != nullptr) sink.sample(sink.context, &outcome);
      self->momentum[context * 6 + technique] +=
          static_cast<float>(0.3 * advantage / std::sqrt(static_cast<double>(count)));
    }
    for (size_t i = 0; i < self->momentum.size(); ++i) table[i] += self->momentum[i];
    if (self->updates == static_cast<uint64_t>(knobs().diverges_at.load())) table[0] = NAN;
    sink.step(sink.context, kgrpo::Measured("loss", -mean));
    const kgrpo_metric row[2] = {Measured("loss", -mean), Measured("learning_rate", 0.3)};
    if (sink.optimizer_step != nullptr) sink.optimizer_step(sink.context, row, 2);
    if (knobs().cancel_after_updates > 0 && knobs().updates == knobs().cancel_after_updates) knobs().cancelled = true;
  });
}

}  // namespace

const kgrpo_trainer_interface kTrainer = {
    sizeof(kgrpo_trainer_interface),
    Schema,
    [](const kgrpo_host*, kgrpo_str options, kgrpo_trainer** out) -> kgrpo_error* {
      return Guard([&] {
        auto trainer = std::make_unique<kgrpo_trainer>();
        const auto json = nlohmann::json::parse(View(options));
        trainer->source = json.value("source", 0u);
        trainer->compares = json.value("compares", trainer->source == KGRPO_TRAINER_ROLLOUTS);
        *out = trainer.release();
      });
    },
    [](kgrpo_trainer* self) { delete self; },
    [](const kgrpo_trainer* self) { return self->source; },
    [](const kgrpo_trainer* self) -> int32_t { return self->compares; },
    [](kgrpo_trainer* self, const kgrpo_policy_interface* api, kgrpo_policy* policy,
       const kgrpo_trainer_plan*) -> kgrpo_error* {
      self->api = api;
      self->policy = policy;
      return nullptr;
    },
    Update,
    [](kgrpo_trainer* self, kgrpo_writer writer) -> kgrpo_error* {
      if (kgrpo_error* error = writer.write(writer.context, &self->updates, sizeof(self->updates))) return error;
      return writer.write(writer.context, self->momentum.data(), sizeof(self->momentum));
    },
    [](kgrpo_trainer* self, kgrpo_reader reader) -> kgrpo_error* {
      if (knobs().forgets_state) return nullptr;
      size_t got = 0;
      if (kgrpo_error* error = reader.read(reader.context, &self->updates, sizeof(self->updates), &got)) return error;
      return reader.read(reader.context, self->momentum.data(), sizeof(self->momentum), &got);
    },
    /*check_plan=*/nullptr,
    /*get_extension=*/nullptr};

}  // namespace kgrpo::fakes
