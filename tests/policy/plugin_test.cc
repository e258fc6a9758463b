// The plugin as a host sees it: policy_qwen.so through kgrpo.policy/1 and nothing else.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <kgrpo/policy.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/host.h>
#include <kgrpo/sdk/text.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kgrpo {
namespace {

using nlohmann::json;

// A host that does nothing but count; its random numbers are the key's sum.
struct TestHost {
  TestHost() {
    table = {};
    table.struct_size = sizeof(kgrpo_host);
    table.context = this;
    table.log = [](void*, uint32_t, kgrpo_str) {};
    table.metric = [](void*, kgrpo_str, double) {};
    table.cancelled = [](void* context) { return static_cast<TestHost*>(context)->cancelled; };
    table.random = [](void* context, const uint64_t*, size_t, uint64_t) {
      return static_cast<TestHost*>(context)->seed;
    };
    table.lock_device = [](void* context, kgrpo_str device) {
      return Guard([&] { static_cast<TestHost*>(context)->Lock(Copy(device)); });
    };
    table.unlock_device = [](void* context, kgrpo_str device) {
      auto& self = *static_cast<TestHost*>(context);
      EXPECT_EQ(std::exchange(self.held, ""), Copy(device));
    };
    table.world_size = 1;
  }
  void Lock(std::string device) {
    EXPECT_EQ(held, "") << "locked twice";
    held = std::move(device);
    ++locked;
  }
  kgrpo_host table;
  std::string held;  // the device that is locked
  int locked = 0;    // how often one was
  int cancelled = 0;
  uint64_t seed = 17;
};

const kgrpo_plugin* Plugin() {
  static const kgrpo_plugin* const plugin = [] {
    void* library = ::dlopen(KGRPO_BINARY_DIR "/lib/kgrpo/policy_qwen.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    return reinterpret_cast<kgrpo_plugin_entry_function>(::dlsym(library, KGRPO_PLUGIN_ENTRY))();
  }();
  return plugin;
}

const kgrpo_policy_interface& Api() {
  return *static_cast<const kgrpo_policy_interface*>(Plugin()->get_interface(Str(KGRPO_POLICY_INTERFACE)));
}

json Options(const std::string& model) {
  return {{"model", std::string(KGRPO_SOURCE_DIR) + "/tests/golden/policy/" + model}, {"chat_template", "chatml"}};
}

class PluginTest : public ::testing::Test {
 protected:
  ~PluginTest() override { Api().destroy(policy_); }

  void Create(const json& options) {
    const std::string text = options.dump();
    Check(Api().create(&host_.table, Str(text), &policy_));
  }

  std::vector<int32_t> EncodeChat(const std::string& user) {
    const kgrpo_message message = {Str("user"), Str(user)};
    const kgrpo_chat_options options = {sizeof(kgrpo_chat_options), 1, -1};
    std::vector<int32_t> ids;
    const kgrpo_token_sink sink = {&ids, [](void* context, const int32_t* data, size_t count) {
                                     static_cast<std::vector<int32_t>*>(context)->assign(data, data + count);
                                   }};
    Check(Api().encode_chat(policy_, &message, 1, &options, sink));
    return ids;
  }

  std::string Decode(const std::vector<int32_t>& ids, bool skip_special) {
    std::string text;
    const kgrpo_text_sink sink = {
        &text, [](void* context, kgrpo_str part) { *static_cast<std::string*>(context) = Copy(part); }};
    Check(Api().decode(policy_, ids.data(), ids.size(), skip_special, sink));
    return text;
  }

  struct Written {
    std::vector<int32_t> ids;
    std::vector<float> logprobs;
    std::string text;
    uint32_t finish_reason = 99;
  };

  Written Generate(const std::vector<int32_t>& prompt, uint64_t seed, double temperature) {
    const kgrpo_generate_request request = {prompt.data(), prompt.size(), seed};
    const kgrpo_sampling sampling = {sizeof(kgrpo_sampling), 12, temperature, 0, 1.0, 0.0};
    Written written;
    const kgrpo_completion_sink sink = {&written, [](void* context, const kgrpo_completion* completion) {
                                          auto& out = *static_cast<Written*>(context);
                                          out.ids.assign(completion->ids, completion->ids + completion->size);
                                          out.logprobs.assign(completion->logprobs,
                                                              completion->logprobs + completion->size);
                                          out.text = Copy(completion->text);
                                          out.finish_reason = completion->finish_reason;
                                        }};
    Check(Api().generate(policy_, &request, 1, &sampling, sink));
    return written;
  }

  // Logprobs of a completion; with `context`, ready for a backward.
  std::vector<float> Forward(const std::vector<int32_t>& prompt, const std::vector<int32_t>& completion,
                             kgrpo_forward_context** context = nullptr, uint32_t copy = KGRPO_POLICY_CURRENT) {
    const kgrpo_sequence sequence = {prompt.data(), prompt.size(), completion.data(), completion.size()};
    const kgrpo_forward_request request = {sizeof(kgrpo_forward_request), &sequence, 1, copy, 1.0, context != nullptr};
    std::vector<float> logprobs(completion.size());
    Check(Api().forward(policy_, &request, logprobs.data(), nullptr, context));
    return logprobs;
  }

  TestHost host_;
  kgrpo_policy* policy_ = nullptr;
};

TEST_F(PluginTest, SaysWhatItIs) {
  EXPECT_EQ(View(Plugin()->name), "policy_qwen");
  EXPECT_EQ(Plugin()->get_interface(Str("kgrpo.policy/2")), nullptr);
  EXPECT_GE(Api().struct_size, KGRPO_POLICY_INTERFACE_SIZE_1);
  Create(Options("llama"));
  const kgrpo_policy_info& info = *Api().info(policy_);
  EXPECT_EQ(View(info.architecture), "LlamaForCausalLM");
  EXPECT_EQ(View(info.device), "cpu");
  EXPECT_EQ(info.vocabulary_size, 300u);
  EXPECT_EQ(info.context_length, 256u);
  EXPECT_EQ(std::vector<int32_t>(info.end_ids, info.end_ids + info.end_id_count), (std::vector<int32_t>{2, 0}));
  size_t count = 0, elements = 0;
  const kgrpo_parameter* parameters = Api().parameters(policy_, &count);
  for (size_t i = 0; i < count; ++i) {
    size_t size = 1;
    for (int d = 0; d < parameters[i].value->ndim; ++d) size *= static_cast<size_t>(parameters[i].value->shape[d]);
    elements += size;
  }
  EXPECT_EQ(elements, info.parameter_count);
}

TEST_F(PluginTest, EveryOptionHasTitleDefaultAndDescription) {
  const json schema = json::parse(View(Api().options_schema()));
  ASSERT_EQ(schema["additionalProperties"], false);
  for (const auto& [name, option] : schema["properties"].items()) {
    EXPECT_TRUE(option.contains("title") && option.contains("description")) << name;
    EXPECT_TRUE(option.contains("default") || name == "model") << name;
  }
  // The defaults, written out, are accepted.
  json options = Options("qwen2");
  for (const auto& [name, option] : schema["properties"].items()) {
    if (option.contains("default") && !options.contains(name)) options[name] = option["default"];
  }
  Create(options);
}

TEST_F(PluginTest, EncodesAndDecodesChats) {
  Create(Options("qwen2"));
  const std::vector<int32_t> ids = EncodeChat("tile the loop");
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(Decode(ids, false), "<|im_start|>user\ntile the loop<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(Decode(ids, true), "user\ntile the loop\nassistant\n");
}

TEST_F(PluginTest, GeneratesFromTheSeed) {
  Create(Options("qwen3"));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  const Written first = Generate(prompt, 5, 1.0);
  EXPECT_EQ(Generate(prompt, 5, 1.0).ids, first.ids);
  EXPECT_NE(Generate(prompt, 6, 1.0).ids, first.ids);
  EXPECT_EQ(first.text, Decode(first.ids, true));
  EXPECT_EQ(first.finish_reason, first.ids.size() < 12 ? KGRPO_FINISH_STOP : KGRPO_FINISH_LENGTH);
  const std::vector<float> again = Forward(prompt, first.ids);
  for (size_t i = 0; i < again.size(); ++i) EXPECT_NEAR(again[i], first.logprobs[i], 1e-4);
}

TEST_F(PluginTest, GradientStepsMakeACompletionLikelier) {
  Create(Options("qwen2"));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  const std::vector<int32_t> completion = {40, 41, 42, 2};
  Check(Api().freeze_reference(policy_));
  size_t count = 0;
  const kgrpo_parameter* parameters = Api().parameters(policy_, &count);
  const auto sum = [](const std::vector<float>& values) {
    double total = 0;
    for (const float value : values) total += value;
    return total;
  };
  const double before = sum(Forward(prompt, completion));
  for (int step = 0; step < 5; ++step) {
    kgrpo_forward_context* context = nullptr;
    Forward(prompt, completion, &context);
    ASSERT_NE(context, nullptr);
    const std::vector<float> ones(completion.size(), 1.0f);
    Check(Api().zero_gradients(policy_));
    Check(Api().backward(policy_, context, ones.data()));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(parameters[i].value->strides, nullptr);
      int64_t size = 1;
      for (int d = 0; d < parameters[i].value->ndim; ++d) size *= parameters[i].value->shape[d];
      auto* value = static_cast<float*>(parameters[i].value->data);
      const auto* gradient = static_cast<const float*>(parameters[i].gradient->data);
      for (int64_t j = 0; j < size; ++j) value[j] += 1e-3f * gradient[j];
    }
  }
  EXPECT_GT(sum(Forward(prompt, completion)), before + 0.5);
  EXPECT_DOUBLE_EQ(sum(Forward(prompt, completion, nullptr, KGRPO_POLICY_REFERENCE)), before);
}

TEST_F(PluginTest, DecayIsForMatricesOnly) {
  Create(Options("llama"));
  size_t count = 0;
  const kgrpo_parameter* parameters = Api().parameters(policy_, &count);
  std::map<std::string, int> decay;
  for (size_t i = 0; i < count; ++i) {
    decay[Copy(parameters[i].name)] = parameters[i].decay;
    EXPECT_EQ(parameters[i].decay != 0, parameters[i].value->ndim == 2) << Copy(parameters[i].name);
  }
  EXPECT_EQ(decay.at("model.embed_tokens.weight"), 1);
  EXPECT_EQ(decay.at("model.norm.weight"), 0);
  EXPECT_EQ(decay.at("model.layers.1.mlp.down_proj.bias"), 0);
  EXPECT_FALSE(decay.contains("lm_head.weight")) << "tied";
}

TEST_F(PluginTest, ReleasedContextsLeaveNoGradient) {
  Create(Options("qwen2"));
  kgrpo_forward_context* context = nullptr;
  Forward({5, 6}, {7, 8}, &context);
  Api().release_context(policy_, context);
  Api().release_context(policy_, nullptr);
  size_t count = 0;
  const kgrpo_parameter* parameters = Api().parameters(policy_, &count);
  EXPECT_EQ(static_cast<const float*>(parameters[0].gradient->data)[0], 0.0f);
}

TEST_F(PluginTest, ErrorsCrossAsErrors) {
  EXPECT_THROW(Create({{"model", "/nowhere"}}), Error);
  EXPECT_EQ(policy_, nullptr);
  Create(Options("qwen2"));
  EXPECT_THROW(Forward({5}, {7}, nullptr, 3), Error);
  EXPECT_THROW(Forward({5}, {7}, nullptr, KGRPO_POLICY_REFERENCE), Error);
  EXPECT_THROW(Generate({}, 1, 1.0), Error);
  EXPECT_THROW(Generate({5}, 1, std::nan("")), Error);
  host_.cancelled = 1;
  try {
    Generate({5}, 1, 1.0);
    FAIL() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_CANCELLED);
  }
}

// Runs `work`, during which the device must be locked `times` times, and is free afterwards.
#define EXPECT_LOCKS(times, work)   \
  do {                              \
    host_.locked = 0;               \
    work;                           \
    EXPECT_EQ(host_.locked, times); \
    EXPECT_EQ(host_.held, "");      \
  } while (false)

TEST_F(PluginTest, WhatWorksOnTheDeviceLocksIt) {
  EXPECT_LOCKS(1, Create(Options("qwen2")));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  EXPECT_LOCKS(0, EncodeChat("tile the loop"));
  EXPECT_LOCKS(1, Generate(prompt, 5, 1.0));
  kgrpo_forward_context* context = nullptr;
  const std::vector<float> ones(2, 1.0F);
  size_t count = 0;
  EXPECT_LOCKS(1, Forward(prompt, {40, 41}, &context));
  EXPECT_LOCKS(1, Check(Api().backward(policy_, context, ones.data())));
  EXPECT_LOCKS(1, Api().parameters(policy_, &count));
  EXPECT_LOCKS(0, Api().parameters(policy_, &count));
  EXPECT_LOCKS(1, Check(Api().zero_gradients(policy_)));
  EXPECT_LOCKS(1, Check(Api().freeze_reference(policy_)));
  const std::string folder = ::testing::TempDir() + "/saved_policy";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_LOCKS(1, Check(Api().save(policy_, KGRPO_POLICY_CURRENT, Str(folder))));
  EXPECT_LOCKS(1, Check(Api().load(policy_, KGRPO_POLICY_CURRENT, Str(folder))));
  std::filesystem::remove_all(folder);
}

TEST_F(PluginTest, FailuresGiveTheDeviceUp) {
  Create(Options("qwen2"));
  EXPECT_LOCKS(1, EXPECT_THROW(Forward({5}, {7}, nullptr, KGRPO_POLICY_REFERENCE), Error));
  host_.cancelled = 1;
  EXPECT_LOCKS(1, EXPECT_THROW(Generate({5}, 1, 1.0), Error));
}

TEST_F(PluginTest, LongGenerationLetsOthersHaveTheDevice) {
  Create(Options("qwen3"));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  const Written quick = Generate(prompt, 5, 1.0);
  ASSERT_GE(quick.ids.size(), 3U);
  // Asked before every step: each takes longer than a slice.
  host_.table.cancelled = [](void* context) {
    EXPECT_EQ(static_cast<TestHost*>(context)->held, "cpu") << "between two steps it has the device";
    std::this_thread::sleep_for(DeviceTurn::kSlice);
    return 0;
  };
  Written slow;
  host_.locked = 0;
  slow = Generate(prompt, 5, 1.0);
  EXPECT_GE(host_.locked, 3);
  EXPECT_EQ(slow.ids, quick.ids);
}

TEST_F(PluginTest, CompletionsAreHandedOverWithoutTheDevice) {
  Create(Options("qwen2"));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  std::vector<kgrpo_generate_request> requests(6);
  for (size_t i = 0; i < requests.size(); ++i) requests[i] = {prompt.data(), prompt.size(), i};
  const kgrpo_sampling sampling = {sizeof(kgrpo_sampling), 12, 1.0, 0, 1.0, 0.0};
  struct Seen {
    TestHost* host;
    int count = 0;
  } seen{&host_};
  const kgrpo_completion_sink sink = {&seen, [](void* context, const kgrpo_completion*) {
                                        auto& self = *static_cast<Seen*>(context);
                                        EXPECT_EQ(self.host->held, "") << "a judge may want it at once";
                                        ++self.count;
                                      }};
  Check(Api().generate(policy_, requests.data(), requests.size(), &sampling, sink));
  EXPECT_EQ(seen.count, 6);
}

TEST_F(PluginTest, RandomWeightsComeFromTheHostsSeed) {
  json options = Options("qwen2");
  options["init"] = "random";
  const auto first_weight = [&](uint64_t seed) {
    host_.seed = seed;
    Api().destroy(policy_);
    policy_ = nullptr;
    Create(options);
    size_t count = 0;
    return static_cast<const float*>(Api().parameters(policy_, &count)[0].value->data)[0];
  };
  EXPECT_EQ(first_weight(1), first_weight(1));
  EXPECT_NE(first_weight(1), first_weight(2));
}

}  // namespace
}  // namespace kgrpo
