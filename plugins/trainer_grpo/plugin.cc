// plugin.cc - trainer_grpo as kgrpo.trainer/1.
#include <kgrpo/sdk/plugin.h>
#include <kgrpo/sdk/trainer.h>

#include "trainer_grpo/grpo_options.h"
#include "trainer_grpo/grpo_trainer.h"
#include "trainer_shared/cuda_tensor_math.h"
#include "trainer_shared/own_torch.h"

namespace kgrpo::grpo {
namespace {

std::unique_ptr<GrpoTrainer> Make(const kgrpo_host* host, std::string_view options) {
  trainer::RequireOwnTorch();
  return std::make_unique<GrpoTrainer>(host, ReadGrpoOptions(options), trainer::MakeCudaTensorMath);
}

}  // namespace
}  // namespace kgrpo::grpo

KGRPO_PLUGIN("trainer_grpo", KGRPO_VERSION, "group-relative policy optimisation (GRPO and its kin) with AdamW",
             {KGRPO_TRAINER_INTERFACE,
              &kgrpo::TrainerInterface<kgrpo::grpo::GrpoTrainer, kgrpo::grpo::GrpoOptionsSchema,
                                       kgrpo::grpo::Make>::kInterface});
