// trainer_interface.h - the functions of kgrpo.trainer/1 over a trainer class. Included by each trainer's plugin.cc.
#ifndef KGRPO_TRAINER_SHARED_TRAINER_INTERFACE_H
#define KGRPO_TRAINER_SHARED_TRAINER_INTERFACE_H
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/trainer.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace kgrpo::trainer {

// `Trainer` has Source, NeedsReference, Begin, Update, SaveState and LoadState, which mirror the interface and throw
// where it returns errors; `Schema` gives its options' JSON Schema, `Make` makes one from (host, options as JSON).
template <typename Trainer, std::string_view (*Schema)(),
          std::unique_ptr<Trainer> (*Make)(const kgrpo_host* host, std::string_view options)>
class TrainerInterface {
  // The ABI's opaque instance is the trainer itself.
  static Trainer& Of(kgrpo_trainer* self) { return *reinterpret_cast<Trainer*>(self); }
  static const Trainer& Of(const kgrpo_trainer* self) { return *reinterpret_cast<const Trainer*>(self); }

  static kgrpo_str OptionsSchema() { return Str(Schema()); }
  static kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_trainer** out) {
    return Guard([&] { *out = reinterpret_cast<kgrpo_trainer*>(Make(host, View(options)).release()); });
  }
  static void Destroy(kgrpo_trainer* self) { delete reinterpret_cast<Trainer*>(self); }
  static uint32_t Source(const kgrpo_trainer* self) { return Of(self).Source(); }
  static int32_t NeedsReference(const kgrpo_trainer* self) { return Of(self).NeedsReference() ? 1 : 0; }
  static kgrpo_error* Begin(kgrpo_trainer* self, const kgrpo_policy_interface* api, kgrpo_policy* policy,
                            const kgrpo_trainer_plan* plan) {
    return Guard([&] { Of(self).Begin(api, policy, *plan); });
  }
  static kgrpo_error* Update(kgrpo_trainer* self, const kgrpo_sample* const* samples, size_t count,
                             kgrpo_update_sink sink) {
    return Guard([&] { Of(self).Update(samples, count, sink); });
  }
  static kgrpo_error* SaveState(kgrpo_trainer* self, kgrpo_writer writer) {
    return Guard([&] { Of(self).SaveState(writer); });
  }
  static kgrpo_error* LoadState(kgrpo_trainer* self, kgrpo_reader reader) {
    return Guard([&] { Of(self).LoadState(reader); });
  }

 public:
  static constexpr kgrpo_trainer_interface kInterface = {sizeof(kgrpo_trainer_interface),
                                                         OptionsSchema,
                                                         Create,
                                                         Destroy,
                                                         Source,
                                                         NeedsReference,
                                                         Begin,
                                                         Update,
                                                         SaveState,
                                                         LoadState};
};

}  // namespace kgrpo::trainer

#endif
