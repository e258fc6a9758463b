// Device memory for training, computed by hand for a model of half a billion parameters on 80 GB.
#include "policy_qwen/memory_needs.h"

#include "test.h"

namespace kgrpo::policy {
namespace {

constexpr uint64_t kMib = 1 << 20;

MemoryNeeds HalfABillion() {
  MemoryNeeds needs;
  needs.parameters = needs.trained = 512 * kMib;
  needs.weights = 1024 * kMib;  // bfloat16
  needs.masters = true;
  needs.chunk_tokens = 16384;
  needs.activations = 20000 * kMib;
  needs.least_activations = 2000 * kMib;
  needs.activation_limit = 30000 * kMib;
  needs.cache = 15000 * kMib;
  needs.cache_token = 12288;
  needs.free = 60000 * kMib;
  needs.total = 81000 * kMib;
  return needs;
}

TEST(MemoryNeeds, PartsAreCounted) {
  const MemoryNeeds needs = HalfABillion();
  EXPECT_EQ(needs.gradients(), 2048 * kMib);
  EXPECT_EQ(needs.optimizer(), 6144 * kMib) << "two moments and a master, 4 bytes each";
  EXPECT_EQ(needs.further(), (2048 + 6144 + 20000 + 15000) * kMib);
  EXPECT_EQ(
      MemoryText(needs),
      "536870912 of 536870912 parameters train; memory: weights 1024 MiB, a reference where the trainer wants one "
      "1024 MiB, gradients 2048 MiB, AdamW's state 6144 MiB, activations 20000 MiB for 16384 tokens, generation "
      "cache 15000 MiB; beside the weights 43192 MiB of 60000 MiB free, 81000 MiB in all");
  EXPECT_EQ(MemoryWarning(needs), "");
}

TEST(MemoryNeeds, RanksDivideTheOptimizersStateAlone) {
  MemoryNeeds needs = HalfABillion();
  needs.ranks = 4;
  EXPECT_EQ(needs.optimizer(), 1536 * kMib);
  EXPECT_EQ(needs.gradients(), 2048 * kMib);
  EXPECT_THAT(MemoryText(needs), HasSubstr("AdamW's state 1536 MiB (this rank's share of 4)"));
  needs.masters = false;
  EXPECT_EQ(needs.optimizer(), 1024 * kMib);
}

TEST(MemoryNeeds, ActivationsBeyondTheLimitAreComputedAgain) {
  MemoryNeeds needs = HalfABillion();
  needs.activation_limit = 5000 * kMib;
  EXPECT_EQ(needs.kept_activations(), 5000 * kMib);
  EXPECT_THAT(MemoryText(needs),
              HasSubstr("activations 5000 MiB for 16384 tokens (20000 MiB without computing layers again)"));
  needs.activation_limit = 100 * kMib;
  EXPECT_EQ(needs.kept_activations(), 2000 * kMib) << "no limit makes it less";
}

TEST(MemoryNeeds, AnAdapterHasNoReference) {
  MemoryNeeds needs = HalfABillion();
  needs.has_adapter = true;
  needs.trained = 5 * kMib;
  needs.adapter = 20 * kMib;
  needs.merged = 800 * kMib;
  needs.masters = false;
  needs.cache = 0;
  EXPECT_EQ(needs.reference(), 0U);
  EXPECT_EQ(needs.further(), (20 + 800 + 20 + 40 + 20000) * kMib);
  EXPECT_THAT(MemoryText(needs),
              AllOf(HasSubstr("adapter 20 MiB, merged weights for generation 800 MiB"),
                    HasSubstr("generation cache 12 MiB per 1000 tokens"), Not(HasSubstr("a reference"))));
}

TEST(MemoryNeeds, WhatDoesNotFitNamesTheOptionThatLowersIt) {
  MemoryNeeds needs = HalfABillion();
  needs.free = 43500 * kMib;
  EXPECT_EQ(
      MemoryWarning(needs),
      "training will not fit if the trainer uses a reference policy: beside the weights 44216 MiB are needed and "
      "43500 MiB are free; lower policy.options.activation_memory_mib or max_tokens_per_chunk (16384 tokens now)");
  needs.free = 40000 * kMib;
  EXPECT_THAT(
      MemoryWarning(needs),
      HasSubstr("training will not fit: beside the weights 43192 MiB are needed and 40000 MiB are free; lower"));
  needs.cache = 25000 * kMib;
  EXPECT_THAT(MemoryWarning(needs), HasSubstr("lower policy.options.generation_memory_mib"));
  needs.trained *= 16;
  EXPECT_THAT(MemoryWarning(needs), HasSubstr("train an adapter (policy.options.adapter)"));
  needs.has_adapter = true;
  EXPECT_THAT(MemoryWarning(needs), HasSubstr("lower policy.options.adapter.rank"));
  needs = HalfABillion();
  needs.part = "coder";
  needs.trains = false;
  needs.trained = needs.activations = needs.least_activations = 0;
  needs.free = 10000 * kMib;
  EXPECT_EQ(
      MemoryText(needs),
      "536870912 parameters; memory: weights 1024 MiB, generation cache 15000 MiB; beside the weights 15000 MiB of "
      "10000 MiB free, 81000 MiB in all");
  EXPECT_EQ(MemoryWarning(needs),
            "generation will not fit: beside the weights 15000 MiB are needed and 10000 MiB are free; lower "
            "coder.options.generation_memory_mib");
  needs.total = needs.free = 0;
  EXPECT_EQ(MemoryWarning(needs), "") << "unknown";
}

}  // namespace
}  // namespace kgrpo::policy
