// plugin.cc - trainer_sft as kgrpo.trainer/1.
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/sdk/trainer.h>

#include "trainer_sft/sft_options.h"
#include "trainer_sft/sft_trainer.h"
#include "trainer_shared/cuda_tensor_math.h"
#include "trainer_shared/own_torch.h"

namespace kgrpo::sft {
namespace {

std::unique_ptr<SftTrainer> Make(const kgrpo_host* host, std::string_view options) {
  trainer::RequireOwnTorch();
  return std::make_unique<SftTrainer>(host, ReadSftOptions(options), trainer::MakeCudaTensorMath);
}

}  // namespace
}  // namespace kgrpo::sft

KGRPO_PLUGIN(
    "trainer_sft", KGRPO_VERSION, "supervised warm start: cross-entropy of completions, with AdamW",
    {KGRPO_TRAINER_INTERFACE,
     &kgrpo::TrainerInterface<kgrpo::sft::SftTrainer, kgrpo::sft::SftOptionsSchema, kgrpo::sft::Make>::kInterface});
