// The ABI's promise: what was released keeps its place for ever. A failure here means that plugins in the field would
// break: append members instead, and leave these numbers alone. (x86-64 and other LP64 machines.)
#include <gtest/gtest.h>
#include <kgrpo/abi.h>
#include <kgrpo/coder.h>
#include <kgrpo/evaluator.h>
#include <kgrpo/host.h>
#include <kgrpo/policy.h>
#include <kgrpo/reward.h>
#include <kgrpo/tensor.h>
#include <kgrpo/trainer.h>

#include <cstddef>
#include <string>

#include "plugin/role.h"

extern "C" int kgrpo_abi_compiles_as_c11(void);  // abi_c11.c

namespace kgrpo {
namespace {

struct Pin {
  const char* type;
  size_t size, released_size;           // a size may grow, by members appended; frozen types may not
  size_t last_offset, released_offset;  // of the last member of the first release
};

const Pin kPins[] = {
    {"kgrpo_str", sizeof(kgrpo_str), 16, offsetof(kgrpo_str, size), 8},
    {"kgrpo_error", sizeof(kgrpo_error), 32, offsetof(kgrpo_error, release), 24},
    {"kgrpo_metric", sizeof(kgrpo_metric), 24, offsetof(kgrpo_metric, value), 16},
    {"kgrpo_metric_sink", sizeof(kgrpo_metric_sink), 16, offsetof(kgrpo_metric_sink, add), 8},
    {"kgrpo_writer", sizeof(kgrpo_writer), 16, offsetof(kgrpo_writer, write), 8},
    {"kgrpo_reader", sizeof(kgrpo_reader), 16, offsetof(kgrpo_reader, read), 8},
    {"kgrpo_plugin", sizeof(kgrpo_plugin), 72, offsetof(kgrpo_plugin, get_interface), 64},
    {"kgrpo_host", sizeof(kgrpo_host), 104, offsetof(kgrpo_host, rendezvous), 88},
    {"kgrpo_tensor", sizeof(kgrpo_tensor), 48, offsetof(kgrpo_tensor, byte_offset), 40},
    {"kgrpo_message", sizeof(kgrpo_message), 32, offsetof(kgrpo_message, content), 16},
    {"kgrpo_token_sink", sizeof(kgrpo_token_sink), 16, offsetof(kgrpo_token_sink, put), 8},
    {"kgrpo_text_sink", sizeof(kgrpo_text_sink), 16, offsetof(kgrpo_text_sink, put), 8},
    {"kgrpo_policy_info", sizeof(kgrpo_policy_info), 72, offsetof(kgrpo_policy_info, end_id_count), 64},
    {"kgrpo_chat_options", sizeof(kgrpo_chat_options), 12, offsetof(kgrpo_chat_options, enable_thinking), 8},
    {"kgrpo_sampling", sizeof(kgrpo_sampling), 40, offsetof(kgrpo_sampling, min_p), 32},
    {"kgrpo_generate_request", sizeof(kgrpo_generate_request), 24, offsetof(kgrpo_generate_request, seed), 16},
    {"kgrpo_completion", sizeof(kgrpo_completion), 64, offsetof(kgrpo_completion, finish_reason), 56},
    {"kgrpo_completion_sink", sizeof(kgrpo_completion_sink), 16, offsetof(kgrpo_completion_sink, put), 8},
    {"kgrpo_sequence", sizeof(kgrpo_sequence), 32, offsetof(kgrpo_sequence, completion_size), 24},
    {"kgrpo_forward_request", sizeof(kgrpo_forward_request), 48, offsetof(kgrpo_forward_request, need_gradient), 40},
    {"kgrpo_parameter", sizeof(kgrpo_parameter), 40, offsetof(kgrpo_parameter, decay), 32},
    {"kgrpo_policy_interface", sizeof(kgrpo_policy_interface), 144, offsetof(kgrpo_policy_interface, load), 136},
    {"kgrpo_coder_request", sizeof(kgrpo_coder_request), 96, offsetof(kgrpo_coder_request, seed), 88},
    {"kgrpo_coder_answer", sizeof(kgrpo_coder_answer), 96, offsetof(kgrpo_coder_answer, attempts), 88},
    {"kgrpo_coder_done", sizeof(kgrpo_coder_done), 16, offsetof(kgrpo_coder_done, done), 8},
    {"kgrpo_coder_interface", sizeof(kgrpo_coder_interface), 56, offsetof(kgrpo_coder_interface, suggestions), 48},
    {"kgrpo_problem_info", sizeof(kgrpo_problem_info), 136, offsetof(kgrpo_problem_info, trait_count), 128},
    {"kgrpo_evaluation", sizeof(kgrpo_evaluation), 112, offsetof(kgrpo_evaluation, metric_count), 104},
    {"kgrpo_evaluation_sink", sizeof(kgrpo_evaluation_sink), 16, offsetof(kgrpo_evaluation_sink, put), 8},
    {"kgrpo_evaluate_request", sizeof(kgrpo_evaluate_request), 48, offsetof(kgrpo_evaluate_request, show_hidden), 40},
    {"kgrpo_evaluator_interface", sizeof(kgrpo_evaluator_interface), 80, offsetof(kgrpo_evaluator_interface, describe),
     72},
    {"kgrpo_reward_request", sizeof(kgrpo_reward_request), 56, offsetof(kgrpo_reward_request, rounds), 48},
    {"kgrpo_reward_interface", sizeof(kgrpo_reward_interface), 48, offsetof(kgrpo_reward_interface, idle), 40},
    {"kgrpo_sample", sizeof(kgrpo_sample), 88, offsetof(kgrpo_sample, truncated), 84},
    {"kgrpo_trainer_plan", sizeof(kgrpo_trainer_plan), 32, offsetof(kgrpo_trainer_plan, max_completion_size), 24},
    {"kgrpo_update_sink", sizeof(kgrpo_update_sink), 24, offsetof(kgrpo_update_sink, optimizer_step), 16},
    {"kgrpo_trainer_interface", sizeof(kgrpo_trainer_interface), 80, offsetof(kgrpo_trainer_interface, load_state), 72},
};

TEST(Abi, ReleasedMembersKeepTheirPlace) {
  for (const Pin& pin : kPins) {
    EXPECT_EQ(pin.last_offset, pin.released_offset) << pin.type;
    EXPECT_GE(pin.size, pin.released_size) << pin.type;
  }
}

// Members that were appended since, in their order.
struct Appended {
  const char* type;
  const char* member;
  size_t offset, size, released_offset;
};

#define KGRPO_APPENDED(type, member, released_offset) \
  { #type, #member, offsetof(type, member), sizeof(type::member), released_offset }

const Appended kAppended[] = {
    KGRPO_APPENDED(kgrpo_coder_answer, text, 96),        KGRPO_APPENDED(kgrpo_coder_answer, reused, 112),
    KGRPO_APPENDED(kgrpo_coder_answer, estimated, 120),  KGRPO_APPENDED(kgrpo_coder_interface, describe_request, 56),
    KGRPO_APPENDED(kgrpo_coder_interface, describe, 64),
};

TEST(Abi, AppendedMembersKeepTheirPlace) {
  for (const Appended& member : kAppended)
    EXPECT_EQ(member.offset, member.released_offset) << member.type << "::" << member.member;
}

// Whoever appends a member pins it above.
TEST(Abi, WhatATypeHasGrownByIsPinned) {
  for (const Pin& pin : kPins) {
    size_t pinned = pin.released_size;
    for (const Appended& member : kAppended) {
      if (std::string(pin.type) != member.type) continue;
      // A struct_size that was released may count the padding at its end as well.
      EXPECT_GE(member.released_offset, pinned) << member.type << "::" << member.member << " lies in padding";
      pinned = (member.released_offset + member.size + 7) / 8 * 8;
    }
    EXPECT_EQ(pin.size, pinned) << pin.type;
  }
}

TEST(Abi, FrozenTypesKeepTheirSize) {
  for (const Pin& pin : kPins) {
    const std::string type = pin.type;
    const bool frozen = type == "kgrpo_str" || type == "kgrpo_metric" || type.ends_with("_sink") ||
                        type == "kgrpo_writer" || type == "kgrpo_reader" || type == "kgrpo_plugin" ||
                        type == "kgrpo_tensor" || type == "kgrpo_message" || type == "kgrpo_generate_request" ||
                        type == "kgrpo_sequence" || type == "kgrpo_parameter" || type == "kgrpo_coder_done";
    if (frozen) {
      EXPECT_EQ(pin.size, pin.released_size) << pin.type;
    }
  }
}

TEST(Abi, InterfacesAreTheirFirstRelease) {
  EXPECT_EQ(RoleInterfaceSize(Role::kPolicy), 144U);
  EXPECT_EQ(RoleInterfaceSize(Role::kCoder), 56U);
  EXPECT_EQ(RoleInterfaceSize(Role::kEvaluator), 80U);
  EXPECT_EQ(RoleInterfaceSize(Role::kReward), 48U);
  EXPECT_EQ(RoleInterfaceSize(Role::kTrainer), 80U);
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
  EXPECT_EQ(KGRPO_CODER_OK, 0);
  EXPECT_EQ(KGRPO_CODER_FAILED, 6);
  EXPECT_EQ(KGRPO_FINISH_LENGTH, 1);
  EXPECT_EQ(KGRPO_POLICY_REFERENCE, 1);
  EXPECT_EQ(KGRPO_TRAINER_DEMONSTRATIONS, 2);
}

TEST(Abi, HeadersCompileAsC11) {
  EXPECT_EQ(kgrpo_abi_compiles_as_c11(), KGRPO_ABI_MAJOR);
}

}  // namespace
}  // namespace kgrpo
