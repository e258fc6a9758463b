// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/trainer.h - the functions of kgrpo.trainer/1 over a trainer class, and arrays as saved state.
#ifndef KGRPO_SDK_TRAINER_H
#define KGRPO_SDK_TRAINER_H
#include <kgrpo/sdk/error.h>
#include <kgrpo/trainer.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kgrpo {

// `Trainer` has Source, NeedsReference, Begin, Update, SaveState, LoadState and, if it wants, CheckPlan, which mirror
// the interface and throw where it returns errors. `Schema` gives its options' JSON Schema, `Make` makes one from
// (host, options as JSON).
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
  static kgrpo_error* CheckPlan(const kgrpo_trainer* self, const kgrpo_trainer_plan* plan) {
    return Guard([&] { Of(self).CheckPlan(*plan); });
  }
  template <typename T, typename = void>
  struct ChecksPlan : std::false_type {};
  template <typename T>
  struct ChecksPlan<T, std::void_t<decltype(&T::CheckPlan)>> : std::true_type {};
  static constexpr decltype(kgrpo_trainer_interface::check_plan) CheckPlanIfAny() {
    if constexpr (ChecksPlan<Trainer>::value) return CheckPlan;
    return nullptr;
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
                                                         LoadState,
                                                         CheckPlanIfAny(),
                                                         /*get_extension=*/nullptr};
};

// Numbers of a trainer's state, written as they lie in memory.
template <typename Number>
void SaveNumbers(kgrpo_writer writer, const std::vector<Number>& numbers) {
  Check(writer.write(writer.context, numbers.data(), numbers.size() * sizeof(Number)));
}

// Reads as many numbers as `numbers` holds. Throws KGRPO_ERROR_INVALID if the state ends before.
template <typename Number>
void LoadNumbers(kgrpo_reader reader, std::vector<Number>* numbers) {
  auto* bytes = reinterpret_cast<char*>(numbers->data());
  for (size_t left = numbers->size() * sizeof(Number), got = 0; left > 0; left -= got, bytes += got) {
    Check(reader.read(reader.context, bytes, left, &got));
    if (got == 0) throw Error(KGRPO_ERROR_INVALID, "the saved trainer state is cut short, or of another policy");
  }
}

}  // namespace kgrpo
#endif
