/* The headers of the ABI are C11: this file is compiled as such, with -Wpedantic -Werror. */
#include <kgrpo/abi.h>
#include <kgrpo/coder.h>
#include <kgrpo/draft/evaluator_tools.h>
#include <kgrpo/host.h>
#include <kgrpo/observer.h>
#include <kgrpo/options.h>
#include <kgrpo/policy.h>
#include <kgrpo/reward.h>
#include <kgrpo/tensor.h>
#include <kgrpo/trainer.h>

int kgrpo_abi_compiles_as_c11(void);

int kgrpo_abi_compiles_as_c11(void) {
  kgrpo_reward_interface table = {0};
  table.struct_size = (uint32_t)KGRPO_REWARD_INTERFACE_SIZE_1;
  return KGRPO_HAS_MEMBER(&table, kgrpo_reward_interface, idle) ? KGRPO_ABI_MAJOR : 0;
}
