// The plugin as a host sees it: policy_qwen.so through kgrpo.policy/1 and nothing else.
#include <dlfcn.h>
#include <kgrpo/policy.h>
#include <kgrpo/sdk/host.h>
#include <kgrpo/sdk/tensor.h>
#include <kgrpo/sdk/text.h>
#include "test.h"

#include <condition_variable>
#include <deque>
#include <span>

namespace kgrpo {
namespace {

// A host that does nothing but count, with a device that one thread can hold; its random numbers are its seed.
struct TestHost {
  TestHost() {
    api.struct_size = sizeof(api);
    api.log = [](void*, uint32_t, kgrpo_str) {};
    api.add_metric = [](void*, kgrpo_str, double) {};
    api.cancelled = [](void* context) -> int32_t { return static_cast<TestHost*>(context)->cancelled; };
    api.random = [](void* context, const uint64_t*, size_t, uint64_t) { return static_cast<TestHost*>(context)->seed; };
    api.lock_device = [](void* context, kgrpo_str device) {
      return Guard([&] {
        auto& self = *static_cast<TestHost*>(context);
        self.device.lock();
        EXPECT_EQ(std::exchange(self.held, Copy(device)), "") << "locked twice";
        ++self.locked;
      });
    };
    api.unlock_device = [](void* context, kgrpo_str device) {
      auto& self = *static_cast<TestHost*>(context);
      EXPECT_EQ(std::exchange(self.held, ""), Copy(device));
      self.device.unlock();
    };
    table = {this, [](void* context, kgrpo_str id) -> const void* {
               return View(id) == KGRPO_HOST_INTERFACE ? &static_cast<TestHost*>(context)->api : nullptr;
             }};
  }
  kgrpo_host table = {};
  kgrpo_host_interface api = {};
  std::mutex device;
  std::string held;             // the device that is locked
  std::atomic<int> locked = 0;  // how often one was
  std::atomic<int> cancelled = 0;
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
    const kgrpo_message message = {Str("user"), Str(user), {}};
    const kgrpo_chat_options options = {sizeof(kgrpo_chat_options), 1, -1, {}};
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
  struct Wish {
    std::vector<int32_t> prompt;
    uint64_t seed;
    kgrpo_sampling sampling;
  };

  // Results of the requests of a call.
  class Outcome {
   public:
    kgrpo_completion_done Done(size_t index) {
      slots_.push_back({this, index});
      return {&slots_.back(), [](void* context, const kgrpo_completion* completion, kgrpo_error* error) {
                auto& slot = *static_cast<Slot*>(context);
                slot.outcome->Put(slot.index, completion, error);
              }};
    }
    // Waits for `count` ends; throws the first failure.
    std::map<size_t, Written> Wait(size_t count) {
      std::unique_lock<std::mutex> lock(mutex_);
      ended_.wait(lock, [&] { return written_.size() + failed_.size() >= count; });
      if (!failed_.empty()) throw Error(failed_.begin()->second);
      return written_;
    }
    size_t count() {
      const std::lock_guard<std::mutex> lock(mutex_);
      return written_.size() + failed_.size();
    }
    std::function<void()> on_put = [] {};

   private:
    struct Slot {
      Outcome* outcome;
      size_t index;
    };
    void Put(size_t index, const kgrpo_completion* completion, kgrpo_error* error) {
      on_put();
      EXPECT_NE(completion == nullptr, error == nullptr);
      const std::lock_guard<std::mutex> lock(mutex_);
      EXPECT_FALSE(written_.contains(index) || failed_.contains(index)) << "ended twice";
      if (completion != nullptr) {
        written_[index] = {{completion->ids, completion->ids + completion->size},
                           {completion->logprobs, completion->logprobs + completion->size},
                           Copy(completion->text),
                           completion->finish_reason};
      } else {
        failed_.emplace(index, Error(static_cast<kgrpo_error_code>(error->code), Copy(error->message)));
        error->release(error);
      }
      ended_.notify_all();
    }
    std::mutex mutex_;
    std::condition_variable ended_;
    std::deque<Slot> slots_;
    std::map<size_t, Written> written_;
    std::map<size_t, Error> failed_;
  };

  void Submit(const std::vector<Wish>& wishes, Outcome& outcome) {
    std::vector<kgrpo_generate_request> requests;
    for (size_t i = 0; i < wishes.size(); ++i) {
      const Wish& wish = wishes[i];
      requests.push_back({sizeof(kgrpo_generate_request), wish.prompt.data(), wish.prompt.size(), wish.seed,
                          &wish.sampling, outcome.Done(i)});
    }
    std::vector<const kgrpo_generate_request*> pointers;
    for (const kgrpo_generate_request& request : requests) pointers.push_back(&request);
    Check(Api().generate(policy_, pointers.data(), pointers.size()));
  }

  static kgrpo_sampling Sampling(double temperature, uint32_t max_new_tokens = 12) {
    return {sizeof(kgrpo_sampling), max_new_tokens, temperature, 0, 1.0, 0.0};
  }

  Written Generate(const std::vector<int32_t>& prompt, uint64_t seed, double temperature) {
    Outcome outcome;
    Submit({{prompt, seed, Sampling(temperature)}}, outcome);
    return outcome.Wait(1).at(0);
  }

  // All parameters, group after group.
  std::vector<const kgrpo_parameter*> Parameters() {
    std::vector<const kgrpo_parameter*> all;
    for (const kgrpo_parameter_group* group : Groups())
      all.insert(all.end(), group->parameters, group->parameters + group->parameter_count);
    return all;
  }
  std::span<const kgrpo_parameter_group* const> Groups() {
    const kgrpo_parameter_group* const* groups = nullptr;
    size_t count = 0;
    Check(Api().parameters(policy_, &groups, &count));
    return {groups, count};
  }
  static size_t SizeOf(const kgrpo_tensor& tensor) {
    size_t size = 1;
    for (int d = 0; d < tensor.ndim; ++d) size *= static_cast<size_t>(tensor.shape[d]);
    return size;
  }

  void Backward(kgrpo_forward_context* context, const std::vector<float>& coefficients) {
    Check(Api().backward(policy_, context, FloatTensor(coefficients.data(), coefficients.size()).c()));
  }

  // Logprobs of a completion; with `context`, ready for a backward.
  std::vector<float> Forward(const std::vector<int32_t>& prompt, const std::vector<int32_t>& completion,
                             kgrpo_forward_context** context = nullptr, uint32_t copy = KGRPO_POLICY_CURRENT) {
    const kgrpo_sequence sequence = {prompt.data(), prompt.size(), completion.data(), completion.size()};
    const kgrpo_forward_request request = {sizeof(kgrpo_forward_request), &sequence, 1, copy, 1.0, context != nullptr};
    std::vector<float> logprobs(completion.size());
    Check(Api().forward(policy_, &request, FloatTensor(logprobs.data(), logprobs.size()).c(), nullptr, context));
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
  EXPECT_EQ(info.stream, nullptr) << "on a CPU";
  size_t elements = 0;
  for (const kgrpo_parameter* parameter : Parameters()) elements += SizeOf(*parameter->value);
  EXPECT_EQ(elements, info.parameter_count);
}

TEST_F(PluginTest, SaysWhatBelongsInFrontOfAPlainText) {
  json options = Options("");
  options["model"] = KGRPO_BINARY_DIR "/test_data/tokenizer/released/llama32";
  options["chat_template"] = "auto";
  options["tokenizer_only"] = true;
  Create(options);
  const kgrpo_policy_info& info = *Api().info(policy_);
  EXPECT_EQ(std::vector<int32_t>(info.prefix_ids, info.prefix_ids + info.prefix_id_count), std::vector<int32_t>{480});
  EXPECT_EQ(Decode({480}, false), "<|begin_of_text|>");
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

// The short request is submitted when another has ended, and ends before the long one that is in flight.
TEST_F(PluginTest, RequestsJoinThoseInFlight) {
  Create(Options("qwen3"));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  const Written alone = Generate(prompt, 7, 1.0);
  Outcome outcome, late;
  size_t ended = 0;
  outcome.on_put = [&] {
    if (++ended == 1) {
      Submit({{prompt, 7, Sampling(1.0)}}, late);
    } else {
      EXPECT_EQ(late.count(), 1U);
    }
  };
  Submit({{prompt, 5, Sampling(0.0, 1)}, {prompt, 6, Sampling(0.0, 60)}}, outcome);
  ASSERT_GT(outcome.Wait(2).at(1).ids.size(), 20U);
  EXPECT_EQ(late.Wait(1).at(0).ids, alone.ids);
}

TEST_F(PluginTest, GradientStepsMakeACompletionLikelier) {
  Create(Options("qwen2"));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  const std::vector<int32_t> completion = {40, 41, 42, 2};
  Check(Api().freeze_reference(policy_));
  const std::vector<const kgrpo_parameter*> parameters = Parameters();
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
    Backward(context, ones);
    for (const kgrpo_parameter* parameter : parameters) {
      ASSERT_EQ(parameter->value->strides, nullptr);
      auto* value = static_cast<float*>(parameter->value->data);
      const auto* gradient = static_cast<const float*>(parameter->gradient->data);
      for (size_t j = 0; j < SizeOf(*parameter->value); ++j) value[j] += 1e-3f * gradient[j];
    }
  }
  EXPECT_GT(sum(Forward(prompt, completion)), before + 0.5);
  EXPECT_DOUBLE_EQ(sum(Forward(prompt, completion, nullptr, KGRPO_POLICY_REFERENCE)), before);
}

TEST_F(PluginTest, DecayIsForMatricesOnly) {
  Create(Options("llama"));
  std::map<std::string, int> decay;
  for (const kgrpo_parameter_group* group : Groups()) {
    EXPECT_NE(group->trainable, 0);
    for (size_t i = 0; i < group->parameter_count; ++i) {
      const kgrpo_parameter& parameter = *group->parameters[i];
      decay[Copy(parameter.name)] = group->decay;
      EXPECT_EQ(group->decay != 0, parameter.value->ndim == 2) << Copy(parameter.name);
    }
  }
  EXPECT_EQ(decay.at("model.embed_tokens.weight"), 1);
  EXPECT_EQ(decay.at("model.norm.weight"), 0);
  EXPECT_EQ(decay.at("model.layers.1.mlp.down_proj.bias"), 0);
  EXPECT_FALSE(decay.contains("lm_head.weight")) << "tied";
}

TEST_F(PluginTest, AGroupIsOneSliceOfTheValuesAndOneOfTheGradients) {
  for (const char* model : {"qwen2", "qwen3", "llama", "llama_one_layer"}) {
    Api().destroy(std::exchange(policy_, nullptr));
    Create(Options(model));
    std::set<const void*> seen;
    for (const kgrpo_parameter_group* group : Groups()) {
      ASSERT_EQ(group->flat_value->ndim, 1);
      ASSERT_EQ(SizeOf(*group->flat_value), SizeOf(*group->flat_gradient));
      const auto* values = static_cast<const float*>(group->flat_value->data);
      const auto* gradients = static_cast<const float*>(group->flat_gradient->data);
      std::vector<bool> used(SizeOf(*group->flat_value));
      for (size_t i = 0; i < group->parameter_count; ++i) {
        const kgrpo_parameter& parameter = *group->parameters[i];
        const std::ptrdiff_t offset = static_cast<const float*>(parameter.value->data) - values;
        EXPECT_EQ(static_cast<const float*>(parameter.gradient->data) - gradients, offset) << Copy(parameter.name);
        ASSERT_GE(offset, 0);
        ASSERT_LE(static_cast<size_t>(offset) + SizeOf(*parameter.value), used.size());
        EXPECT_TRUE(seen.insert(parameter.value->data).second);
        for (size_t j = 0; j < SizeOf(*parameter.value); ++j) {
          ASSERT_FALSE(used[static_cast<size_t>(offset) + j]) << "slices overlap: " << Copy(parameter.name);
          used[static_cast<size_t>(offset) + j] = true;
        }
      }
      for (size_t j = 0; j < used.size(); ++j) {
        if (!used[j]) {
          ASSERT_EQ(values[j], 0.0f) << "a gap holds zeros";
        }
      }
    }
  }
}

TEST_F(PluginTest, ReleasedContextsLeaveNoGradient) {
  Create(Options("qwen2"));
  kgrpo_forward_context* context = nullptr;
  Forward({5, 6}, {7, 8}, &context);
  Api().release_context(policy_, context);
  Api().release_context(policy_, nullptr);
  EXPECT_EQ(static_cast<const float*>(Parameters()[0]->gradient->data)[0], 0.0f);
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
  EXPECT_NE(test::MessageOf([&] { Generate({5}, 1, 1.0); }, KGRPO_ERROR_CANCELLED), "nothing thrown");
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
  EXPECT_LOCKS(1, Forward(prompt, {40, 41}, &context));
  EXPECT_LOCKS(1, Backward(context, ones));
  EXPECT_LOCKS(1, Groups());
  EXPECT_LOCKS(0, Groups());
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
  host_.api.cancelled = [](void* context) -> int32_t {
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
  std::vector<Wish> wishes;
  for (uint64_t seed = 0; seed < 6; ++seed) wishes.push_back({prompt, seed, Sampling(1.0)});
  Outcome outcome;
  outcome.on_put = [&] { EXPECT_EQ(host_.held, "") << "an evaluator may want it at once"; };
  Submit(wishes, outcome);
  EXPECT_EQ(outcome.Wait(6).size(), 6u);
}

TEST_F(PluginTest, RequestsOfOneCallMayBeSampledDifferently) {
  Create(Options("qwen2"));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  const std::vector<Wish> wishes = {{prompt, 1, Sampling(1.0)},
                                    {prompt, 2, Sampling(0.5, 3)},
                                    {prompt, 3, Sampling(0.0)},
                                    {prompt, 1, Sampling(1.0)}};
  Outcome together;
  Submit(wishes, together);
  const std::map<size_t, Written> written = together.Wait(wishes.size());
  for (size_t i = 0; i < wishes.size(); ++i) {
    Outcome alone;
    Submit({wishes[i]}, alone);
    const Written expected = alone.Wait(1).at(0);
    EXPECT_EQ(written.at(i).ids, expected.ids) << i;
    EXPECT_EQ(written.at(i).logprobs, expected.logprobs) << i;
  }
  EXPECT_LE(written.at(1).ids.size(), 3u);
}

TEST_F(PluginTest, ACallWithABadRequestIsRefusedAsAWhole) {
  Create(Options("qwen2"));
  Outcome outcome;
  const auto refused = [&](const Wish& wish) -> std::string {
    return test::MessageOf([&] { Submit({{{5}, 0, Sampling(1.0)}, wish}, outcome); }, KGRPO_ERROR_INVALID, "accepted");
  };
  EXPECT_EQ(refused({{}, 0, Sampling(1.0)}), "request 1: the prompt is empty");
  EXPECT_EQ(refused({{5, 300}, 0, Sampling(1.0)}), "request 1: token 1 is 300, outside the model's vocabulary of 300");
  EXPECT_EQ(refused({std::vector<int32_t>(256, 5), 0, Sampling(1.0)}),
            "request 1: its prompt of 256 tokens leaves no room in the context of 256");
  EXPECT_EQ(refused({{5}, 0, Sampling(-1)}), "request 1: sampling: temperature must be 0 or above");
  Generate({5}, 0, 1.0);  // what had been accepted before it would have been written by now
  EXPECT_EQ(outcome.count(), 0u);
}

TEST_F(PluginTest, CancelEndsWhatIsInFlightAndNothingElse) {
  Create(Options("qwen2"));
  const std::vector<int32_t> prompt = {5, 6, 7};
  std::promise<void> started;
  // The first step of the batch tells, and then waits for the cancellation.
  static std::atomic<std::promise<void>*> first;
  first = &started;
  host_.api.cancelled = [](void*) -> int32_t {
    if (std::promise<void>* told = first.exchange(nullptr)) told->set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return 0;
  };
  Outcome under_way, waiting;
  Submit({{prompt, 1, Sampling(1.0, 250)}, {prompt, 2, Sampling(1.0, 250)}}, under_way);
  started.get_future().wait();
  Submit({{prompt, 3, Sampling(1.0, 250)}}, waiting);
  Api().cancel(policy_);
  for (Outcome* outcome : {&under_way, &waiting}) {
    EXPECT_NE(test::MessageOf([&] { outcome->Wait(outcome == &waiting ? 1 : 2); }, KGRPO_ERROR_CANCELLED),
              "nothing thrown");
  }
  EXPECT_FALSE(Generate(prompt, 1, 1.0).ids.empty()) << "what comes afterwards is written";
}

TEST_F(PluginTest, TokenizesOnAnyThreadWhileItGenerates) {
  Create(Options("qwen3"));
  const std::vector<int32_t> prompt = EncodeChat("tile the loop");
  std::vector<Wish> wishes;
  for (uint64_t seed = 0; seed < 8; ++seed) wishes.push_back({prompt, seed, Sampling(1.0, 100)});
  Outcome outcome;
  Submit(wishes, outcome);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const std::string text = "unroll by " + std::to_string(i);
        EXPECT_NE(Decode(EncodeChat(text), true).find(text), std::string::npos);
        EXPECT_EQ(EncodeChat("tile the loop"), prompt);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(outcome.Wait(8).size(), 8u);
}

TEST_F(PluginTest, ResultsOfForwardNeedATensorThatFits) {
  Create(Options("qwen2"));
  const std::vector<int32_t> prompt = {5}, completion = {7, 8};
  const kgrpo_sequence sequence = {prompt.data(), 1, completion.data(), 2};
  const kgrpo_forward_request request = {sizeof(kgrpo_forward_request), &sequence, 1, KGRPO_POLICY_CURRENT, 1.0, 0};
  float numbers[3] = {-1, -1, -1};
  const auto message = [&](const kgrpo_tensor& tensor) -> std::string {
    return test::MessageOf([&] { Check(Api().forward(policy_, &request, &tensor, nullptr, nullptr)); }, 0, "accepted");
  };
  const FloatTensor good(numbers, 2), long_one(numbers, 3);
  EXPECT_EQ(message(*long_one.c()), "logprobs: expected one dimension of 2, one for each completion token");
  kgrpo_tensor bad = *good.c();
  bad.dtype.bits = 64;
  EXPECT_EQ(message(bad), "logprobs: expected float32");
  bad = *good.c();
  int64_t stride = 2;
  bad.strides = &stride;
  EXPECT_EQ(message(bad), "logprobs: expected compact memory");
  bad = *good.c();
  bad.device.type = KGRPO_DEVICE_CUDA;
  EXPECT_EQ(message(bad), "logprobs: expected memory of the CPU or of the policy's device, cpu");
  EXPECT_EQ(numbers[0], -1);
  bad = *good.c();
  bad.byte_offset = sizeof(float);
  EXPECT_EQ(message(bad), "accepted");
  EXPECT_EQ(numbers[0], -1);
  EXPECT_EQ((std::vector<float>{numbers[1], numbers[2]}), Forward(prompt, completion));
}

TEST_F(PluginTest, RandomWeightsComeFromTheHostsSeed) {
  json options = Options("qwen2");
  options["init"] = "random";
  const auto first_weight = [&](uint64_t seed) {
    host_.seed = seed;
    Api().destroy(policy_);
    policy_ = nullptr;
    Create(options);
    return static_cast<const float*>(Parameters()[0]->value->data)[0];
  };
  EXPECT_EQ(first_weight(1), first_weight(1));
  EXPECT_NE(first_weight(1), first_weight(2));
}

}  // namespace
}  // namespace kgrpo
