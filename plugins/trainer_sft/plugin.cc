// plugin.cc - trainer_sft as kgrpo.trainer/1.
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/trainer.h>

#include "trainer_sft/sft_options.h"
#include "trainer_sft/sft_trainer.h"
#include "trainer_shared/cuda_tensor_math.h"

struct kgrpo_trainer {
  kgrpo::sft::SftTrainer trainer;
};

namespace kgrpo::sft {
namespace {

kgrpo_str OptionsSchema() {
  return Str(SftOptionsSchema());
}

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_trainer** out) {
  return Guard(
      [&] { *out = new kgrpo_trainer{SftTrainer(host, ReadSftOptions(View(options)), trainer::MakeCudaTensorMath)}; });
}

void Destroy(kgrpo_trainer* self) {
  delete self;
}

uint32_t Source(const kgrpo_trainer* self) {
  return self->trainer.options().pairs.empty() ? KGRPO_TRAINER_DEMONSTRATIONS : KGRPO_TRAINER_OWN_DATA;
}

int32_t NeedsReference(const kgrpo_trainer*) {
  return 0;
}

kgrpo_error* Begin(kgrpo_trainer* self, const kgrpo_policy_interface* api, kgrpo_policy* policy,
                   const kgrpo_trainer_plan* plan) {
  return Guard([&] { self->trainer.Begin(api, policy, *plan); });
}

kgrpo_error* Update(kgrpo_trainer* self, const kgrpo_sample* samples, size_t count, kgrpo_update_sink sink) {
  return Guard([&] { self->trainer.Update(samples, count, sink); });
}

kgrpo_error* SaveState(kgrpo_trainer* self, kgrpo_writer writer) {
  return Guard([&] { self->trainer.SaveState(writer); });
}

kgrpo_error* LoadState(kgrpo_trainer* self, kgrpo_reader reader) {
  return Guard([&] { self->trainer.LoadState(reader); });
}

const kgrpo_trainer_interface kTrainerInterface = {sizeof(kgrpo_trainer_interface),
                                                   OptionsSchema,
                                                   Create,
                                                   Destroy,
                                                   Source,
                                                   NeedsReference,
                                                   Begin,
                                                   Update,
                                                   SaveState,
                                                   LoadState};

}  // namespace
}  // namespace kgrpo::sft

KGRPO_PLUGIN("trainer_sft", "0.1.0", "supervised warm start: cross-entropy of completions, with AdamW",
             {KGRPO_TRAINER_INTERFACE, &kgrpo::sft::kTrainerInterface});
