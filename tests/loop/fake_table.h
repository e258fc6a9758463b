// Shared by the fake plugins (fake_policy.cc, fake_coder.cc, fake_evaluator.cc, fake_reward.cc, fake_trainer.cc): the
// layout of the policy's table, and numbers and delays drawn from texts.
#ifndef KGRPO_TESTS_LOOP_FAKE_TABLE_H
#define KGRPO_TESTS_LOOP_FAKE_TABLE_H

#include <kgrpo/abi.h>
#include <kgrpo/sdk/text.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kgrpo::fakes {

constexpr size_t kContexts = 16;  // rows of the policy's table
constexpr int32_t kEnd = 1;
constexpr int32_t kFirstTechnique = 1000;

// A bijective hash.
uint64_t Mix(uint64_t value);
uint64_t Hash(std::string_view text, uint64_t seed = 0);
// Maps a hash to a number from 0 to 1.
double Unit(uint64_t hash);

// Sleeps for the delay that the knobs give for the text.
void Delay(std::string_view what);

// The row of the table that a prompt belongs to.
size_t ContextOf(const int32_t* ids, size_t count);

// The options schema of every fake.
inline kgrpo_str Schema() { return Str("{}"); }

}  // namespace kgrpo::fakes
#endif
