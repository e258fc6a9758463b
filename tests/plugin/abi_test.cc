// The ABI's promise: released members never move. A failure here means that plugins in the field would
// break: append members instead, and leave these numbers alone. (x86-64 and other LP64 machines.)
#include <kgrpo/abi.h>
#include <kgrpo/coder.h>
#include <kgrpo/host.h>
#include <kgrpo/observer.h>
#include <kgrpo/options.h>
#include <kgrpo/policy.h>
#include <kgrpo/reward.h>
#include <kgrpo/tensor.h>
#include <kgrpo/trainer.h>

#include <cstddef>
#include <type_traits>

#include "base/role.h"
#include "test.h"

extern "C" int kgrpo_abi_compiles_as_c11(void);  // abi_c11.c

namespace kgrpo {
namespace {

enum Growth { kGrows, kFrozen };

struct Pin {
  const char* type;
  size_t size, released_size;           // a size may grow, by members appended; that of a frozen type may not
  size_t last_offset, released_offset;  // of the last member of the first release
  Growth growth;
};

#define KGRPO_PIN(type, last, released_size, released_offset, growth) \
  { #type, sizeof(type), released_size, offsetof(type, last), released_offset, growth }

// Version 1.0, in the order of the headers. Those of kgrpo/draft/ may change.
const Pin kPins[] = {
    KGRPO_PIN(kgrpo_str, size, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_error, release, 32, 24, kGrows),
    KGRPO_PIN(kgrpo_metric, high, 40, 32, kFrozen),
    KGRPO_PIN(kgrpo_metric_sink, add, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_text_sink, put, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_host, get_interface, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_plugin, get_interface, 72, 64, kFrozen),
    KGRPO_PIN(kgrpo_tensor, byte_offset, 48, 40, kFrozen),
    KGRPO_PIN(kgrpo_metric_declaration, combination, 80, 76, kGrows),
    KGRPO_PIN(kgrpo_metric_declaration_sink, put, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_host_interface, plugin_directory, 120, 112, kGrows),
    KGRPO_PIN(kgrpo_options_interface, count, 48, 40, kGrows),
    KGRPO_PIN(kgrpo_remark, share, 64, 56, kGrows),
    KGRPO_PIN(kgrpo_evaluation, remark_count, 152, 144, kGrows),
    KGRPO_PIN(kgrpo_coder_answer, estimated, 120, 112, kGrows),
    KGRPO_PIN(kgrpo_coder_request, truncated, 104, 96, kGrows),
    KGRPO_PIN(kgrpo_coder_spending, lost_cost, 24, 16, kGrows),
    KGRPO_PIN(kgrpo_coder_done, done, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_coder_interface, get_extension, 88, 80, kGrows),
    KGRPO_PIN(kgrpo_problem_info, flag_count, 168, 160, kGrows),
    KGRPO_PIN(kgrpo_evaluation_sink, put, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_evaluate_request, reference, 48, 40, kGrows),
    KGRPO_PIN(kgrpo_evaluator_interface, get_extension, 80, 72, kGrows),
    KGRPO_PIN(kgrpo_token_sink, put, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_message, members, 48, 32, kFrozen),
    KGRPO_PIN(kgrpo_policy_info, reproducible, 104, 100, kGrows),
    KGRPO_PIN(kgrpo_chat_options, arguments, 32, 16, kGrows),
    KGRPO_PIN(kgrpo_sampling, min_p, 40, 32, kGrows),
    KGRPO_PIN(kgrpo_completion, text, 48, 32, kGrows),
    KGRPO_PIN(kgrpo_completion_done, done, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_generate_request, done, 56, 40, kGrows),
    KGRPO_PIN(kgrpo_sequence, completion_size, 32, 24, kFrozen),
    KGRPO_PIN(kgrpo_forward_request, need_gradient, 48, 40, kGrows),
    KGRPO_PIN(kgrpo_parameter, gradient, 40, 32, kGrows),
    KGRPO_PIN(kgrpo_parameter_group, flat_gradient, 64, 56, kGrows),
    KGRPO_PIN(kgrpo_gradient_sink, ready, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_policy_interface, get_extension, 168, 160, kGrows),
    KGRPO_PIN(kgrpo_reward_request, suggestion_tokens, 88, 80, kGrows),
    KGRPO_PIN(kgrpo_reward_interface, get_extension, 56, 48, kGrows),
    KGRPO_PIN(kgrpo_writer, write, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_reader, read, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_sample, truncated, 88, 84, kGrows),
    KGRPO_PIN(kgrpo_trainer_plan, cuts_support, 72, 68, kGrows),
    KGRPO_PIN(kgrpo_sample_outcome, advantage, 32, 24, kGrows),
    KGRPO_PIN(kgrpo_update_sink, sample, 32, 24, kFrozen),
    KGRPO_PIN(kgrpo_trainer_interface, get_extension, 96, 88, kGrows),
    KGRPO_PIN(kgrpo_run_info, resumed, 88, 80, kGrows),
    KGRPO_PIN(kgrpo_round_event, advantage, 104, 96, kGrows),
    KGRPO_PIN(kgrpo_metric_row, count, 16, 8, kFrozen),
    KGRPO_PIN(kgrpo_step_event, optimizer_step_count, 72, 64, kGrows),
    KGRPO_PIN(kgrpo_checkpoint_event, finished_at, 48, 40, kGrows),
    KGRPO_PIN(kgrpo_observer_interface, get_extension, 80, 72, kGrows),
};

TEST(Abi, ReleasedMembersKeepTheirPlace) {
  for (const Pin& pin : kPins) {
    EXPECT_EQ(pin.last_offset, pin.released_offset) << pin.type;
    EXPECT_GE(pin.size, pin.released_size) << pin.type;
  }
}

// Members that were appended since 1.0, in their order: KGRPO_APPENDED(kgrpo_sample, weight, 88).
struct Appended {
  const char* type;
  const char* member;
  size_t offset, size, released_offset;
};

#define KGRPO_APPENDED(type, member, released_offset) \
  { #type, #member, offsetof(type, member), sizeof(type::member), released_offset }

const std::vector<Appended> kAppended = {};

TEST(Abi, AppendedMembersKeepTheirPlace) {
  for (const Appended& member : kAppended)
    EXPECT_EQ(member.offset, member.released_offset) << member.type << "::" << member.member;
}

// The mistake in how a type grew; empty when each added member is pinned, behind the padding that a released
// struct_size may count.
std::string GrowthMistake(const Pin& pin, const std::vector<Appended>& appended) {
  size_t pinned = pin.released_size;
  for (const Appended& member : appended) {
    if (std::string(pin.type) != member.type) continue;
    if (pin.growth == kFrozen) return std::string(pin.type) + " is frozen";
    if (member.released_offset < pinned) return std::string(member.member) + " lies in padding";
    pinned = (member.released_offset + member.size + 7) / 8 * 8;
  }
  return pin.size == pinned ? ""
                            : std::string(pin.type) + " has " + std::to_string(pin.size) + " bytes, pinned are " +
                                  std::to_string(pinned);
}

TEST(Abi, WhatATypeHasGrownByIsPinned) {
  for (const Pin& pin : kPins) EXPECT_EQ(GrowthMistake(pin, kAppended), "");
}

// The check above on members that might be appended one day.
TEST(Abi, MistakesOfGrowthAreFound) {
  const Pin grown = {"kgrpo_sample", 96, 88, 84, 84, kGrows};
  EXPECT_EQ(GrowthMistake(grown, {}), "kgrpo_sample has 96 bytes, pinned are 88");
  EXPECT_EQ(GrowthMistake(grown, {{"kgrpo_sample", "weight", 88, 8, 88}}), "");
  EXPECT_EQ(GrowthMistake(grown, {{"kgrpo_sample", "weight", 84, 4, 84}}), "weight lies in padding");
  const Pin frozen = {"kgrpo_str", 24, 16, 8, 8, kFrozen};
  EXPECT_EQ(GrowthMistake(frozen, {{"kgrpo_str", "hash", 16, 8, 16}}), "kgrpo_str is frozen");
}

std::string HeaderText(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  return std::regex_replace(text, std::regex("/\\*[^]*?\\*/"), "");
}

// Whoever adds a struct pins it above; a struct that is to grow begins with its size.
TEST(Abi, EveryStructIsPinned) {
  std::vector<std::string> found;
  for (const auto& header : std::filesystem::directory_iterator(KGRPO_SOURCE_DIR "/core/abi/kgrpo")) {
    if (!header.is_regular_file()) continue;
    const std::string text = HeaderText(header.path());
    const std::regex definition("typedef struct (\\w+) \\{\\s*([^;]*);");
    for (std::sregex_iterator match(text.begin(), text.end(), definition), end; match != end; ++match) {
      found.push_back((*match)[1]);
      const Pin* pin = std::find_if(std::begin(kPins), std::end(kPins),
                                    [&](const Pin& candidate) { return found.back() == candidate.type; });
      ASSERT_NE(pin, std::end(kPins)) << found.back() << " of " << header.path() << " is not pinned";
      if (pin->growth == kGrows) {
        EXPECT_EQ((*match)[2], "uint32_t struct_size") << found.back();
      }
    }
  }
  EXPECT_EQ(found.size(), std::size(kPins));
}

TEST(Abi, StructsAreC) {
  EXPECT_TRUE(std::is_standard_layout_v<kgrpo_parameter_group> && std::is_trivial_v<kgrpo_parameter_group>);
  EXPECT_TRUE(std::is_standard_layout_v<kgrpo_host_interface> && std::is_trivial_v<kgrpo_host_interface>);
}

TEST(Abi, InterfacesAreTheirFirstRelease) {
  EXPECT_EQ(RoleInterfaceSize(Role::kPolicy), 168U);
  EXPECT_EQ(RoleInterfaceSize(Role::kCoder), 88U);
  EXPECT_EQ(RoleInterfaceSize(Role::kEvaluator), 80U);
  EXPECT_EQ(RoleInterfaceSize(Role::kReward), 56U);
  EXPECT_EQ(RoleInterfaceSize(Role::kTrainer), 96U);
  EXPECT_EQ(RoleInterfaceSize(Role::kObserver), 80U);
  EXPECT_EQ(KGRPO_HOST_INTERFACE_SIZE_1, 120U);
}

TEST(Abi, IdsAreThoseOfTheFirstRelease) {
  EXPECT_STREQ(RoleInterface(Role::kPolicy), "kgrpo.policy/1");
  EXPECT_STREQ(RoleInterface(Role::kCoder), "kgrpo.coder/1");
  EXPECT_STREQ(RoleInterface(Role::kEvaluator), "kgrpo.evaluator/1");
  EXPECT_STREQ(RoleInterface(Role::kReward), "kgrpo.reward/1");
  EXPECT_STREQ(RoleInterface(Role::kTrainer), "kgrpo.trainer/1");
  EXPECT_STREQ(RoleInterface(Role::kObserver), "kgrpo.observer/1");
  EXPECT_STREQ(KGRPO_HOST_INTERFACE, "kgrpo.host/1");
  EXPECT_STREQ(KGRPO_OPTIONS_INTERFACE, "kgrpo.options/1");
  EXPECT_STREQ(KGRPO_PLUGIN_ENTRY, "kgrpo_plugin_entry");
}

TEST(Abi, CodesKeepTheirNumbers) {
  EXPECT_EQ(KGRPO_ERROR_INVALID, 1);
  EXPECT_EQ(KGRPO_ERROR_NOT_FOUND, 2);
  EXPECT_EQ(KGRPO_ERROR_UNSUPPORTED, 3);
  EXPECT_EQ(KGRPO_ERROR_UNAVAILABLE, 4);
  EXPECT_EQ(KGRPO_ERROR_CANCELLED, 5);
  EXPECT_EQ(KGRPO_ERROR_NOT_FINITE, 6);
  EXPECT_EQ(KGRPO_ERROR_BUDGET, 7);
  EXPECT_EQ(KGRPO_ERROR_INTERNAL, 8);
  EXPECT_EQ(KGRPO_ERROR_NO_SCORE, 9);
  EXPECT_EQ(KGRPO_CODER_OK, 0);
  EXPECT_EQ(KGRPO_CODER_FAILED, 6);
  EXPECT_EQ(KGRPO_CODER_NO_KERNEL, 7);
  EXPECT_EQ(KGRPO_FINISH_LENGTH, 1);
  EXPECT_EQ(KGRPO_POLICY_REFERENCE, 1);
  EXPECT_EQ(KGRPO_TRAINER_DEMONSTRATIONS, 2);
  EXPECT_EQ(KGRPO_LOG_ERROR, 3);
  EXPECT_EQ(KGRPO_METRIC_RUN_TIME, 6);
  EXPECT_EQ(KGRPO_METRIC_LOWER_IS_BETTER, 2);
  EXPECT_EQ(KGRPO_METRIC_MAXIMUM, 2);
  EXPECT_EQ(KGRPO_DEVICE_CUDA, 2);
  EXPECT_EQ(KGRPO_DTYPE_BFLOAT, 4);
}

TEST(Abi, HeadersCompileAsC11) { EXPECT_EQ(kgrpo_abi_compiles_as_c11(), KGRPO_ABI_MAJOR); }

}  // namespace
}  // namespace kgrpo
