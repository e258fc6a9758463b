// Trainer of instances.h.
#include <kgrpo/sdk/error.h>

#include <kgrpo/sdk/text.h>
#include <cerrno>
#include <cstring>

#include <istream>
#include <ostream>
#include <string>
#include <utility>

#include "plugin/instances.h"
#include "plugin/sinks.h"

namespace kgrpo {
namespace {

std::vector<Metric> CopyMetrics(const kgrpo_metric* metrics, size_t count) {
  std::vector<Metric> copied;
  copied.reserve(count);
  for (size_t i = 0; i < count; ++i) copied.push_back(Metric::FromC(metrics[i]));
  return copied;
}

}  // namespace

kgrpo_trainer_source Trainer::source() const {
  const PluginCall call = Calling("source");
  const uint32_t source = api()->source(raw());
  if (source > KGRPO_TRAINER_DEMONSTRATIONS) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "the trainer learns from source " + std::to_string(source) +
                                             ", which this host does not know: it needs a newer host");
  }
  return static_cast<kgrpo_trainer_source>(source);
}

bool Trainer::needs_reference() const {
  const PluginCall call = Calling("needs_reference");
  return api()->needs_reference(raw()) != 0;
}

void Trainer::CheckPlan(const kgrpo_trainer_plan& plan) const {
  if (api()->check_plan == nullptr) return;
  const PluginCall call = Calling("check_plan");
  Check(api()->check_plan(raw(), &plan));
}

void Trainer::Begin(Policy& policy, const kgrpo_trainer_plan& plan) {
  const PluginCall call = Calling("begin");
  Check(api()->begin(raw(), policy.trainer_api(), policy.raw(), &plan));
}

Trainer::Update Trainer::Train(std::span<const kgrpo_sample> samples) {
  struct Context {
    Carrier carrier;
    Update update;
  } context;
  context.update.samples.resize(samples.size());
  const kgrpo_update_sink sink = {
      &context,
      [](void* opaque, kgrpo_metric metric) {
        auto* self = static_cast<Context*>(opaque);
        self->carrier.Run([&] { self->update.metrics.push_back(Metric::FromC(metric)); });
      },
      [](void* opaque, const kgrpo_metric* row, size_t count) {
        auto* self = static_cast<Context*>(opaque);
        self->carrier.Run([&] { self->update.optimizer_steps.push_back(CopyMetrics(row, count)); });
      },
      [](void* opaque, const kgrpo_sample_outcome* outcome) {
        auto* self = static_cast<Context*>(opaque);
        self->carrier.Run([&] {
          RequireSize(outcome->struct_size, KGRPO_SAMPLE_OUTCOME_SIZE_1, "kgrpo_sample_outcome");
          if (outcome->sample >= self->update.samples.size())
            throw Error(KGRPO_ERROR_INTERNAL, "the trainer pushed an outcome for sample " +
                                                  std::to_string(outcome->sample) + " of " +
                                                  std::to_string(self->update.samples.size()));
          if (self->update.samples[outcome->sample])
            throw Error(KGRPO_ERROR_INTERNAL,
                        "the trainer pushed an outcome for sample " + std::to_string(outcome->sample) + " twice");
          self->update.samples[outcome->sample] = {outcome->returned, outcome->advantage};
        });
      }};
  std::vector<const kgrpo_sample*> pointers;
  pointers.reserve(samples.size());
  for (const kgrpo_sample& sample : samples) pointers.push_back(&sample);
  const PluginCall call = Calling("update");
  context.carrier.Finish(api()->update(raw(), pointers.data(), pointers.size(), sink));
  return std::move(context.update);
}

void Trainer::SaveState(std::ostream& out, bool keep_going) {
  struct Target {
    std::ostream* stream;
    bool keep_going;
  } target = {&out, keep_going};
  const kgrpo_writer writer = {
      &target, [](void* context, const void* data, size_t size) {
        return Guard([&] {
          const auto& [stream, keep_going] = *static_cast<Target*>(context);
          stream->write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
          if (!*stream && !keep_going)
            throw Error(KGRPO_ERROR_UNAVAILABLE,
                        std::string("the trainer's state could not be written: ") + std::strerror(errno));
        });
      }};
  const PluginCall call = Calling("save_state");
  Check(api()->save_state(raw(), writer));
}

void Trainer::LoadState(std::istream& in) {
  const kgrpo_reader reader = {&in, [](void* context, void* data, size_t size, size_t* got) {
                                 return Guard([&] {
                                   auto* stream = static_cast<std::istream*>(context);
                                   stream->read(static_cast<char*>(data), static_cast<std::streamsize>(size));
                                   if (stream->bad())
                                     throw Error(
                                         KGRPO_ERROR_UNAVAILABLE,
                                         std::string("the trainer's state could not be read: ") + std::strerror(errno));
                                   *got = static_cast<size_t>(stream->gcount());
                                 });
                               }};
  const PluginCall call = Calling("load_state");
  Check(api()->load_state(raw(), reader));
}

}  // namespace kgrpo
