// LoRA adapters against peft (tests/golden/policy/make_adapters.py): log-probabilities, gradients, merged generation,
// the reference, loading and saving. The optimiser's step: adapter_plugin_test.cc.
#include "policy_qwen/model/adapter.h"

#include <ATen/ops/equal.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "golden.h"

namespace kgrpo::policy {
namespace {

using ::testing::HasSubstr;

std::string AdapterFolder(const std::string& model) { return GoldenFolder("adapters/" + model); }

PolicyOptions Adapted(const std::string& model) {
  PolicyOptions options = GoldenOptions(BaseOf(model));
  options.adapter = AdapterOptions{.start = AdapterFolder(model)};
  return options;
}

// A copy of an adapter's folder with one entry of its configuration replaced.
void Rewrite(const std::string& from, const std::string& to, const std::string& key, const nlohmann::json& value) {
  std::filesystem::copy(from, to,
                        std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
  nlohmann::json config = nlohmann::json::parse(std::ifstream(from + "/adapter_config.json"));
  config[key] = value;
  std::ofstream(to + "/adapter_config.json") << config;
}

class AdapterTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<float> Score(Policy& policy, Copy copy = Copy::kCurrent) {
    std::vector<float> logprobs(sequences_.token_count);
    policy.Forward(sequences_.views, copy, golden_["temperature"], false, ViewOf(logprobs), {});
    return logprobs;
  }
  void Differentiate(Policy& policy) {
    std::vector<float> logprobs(sequences_.token_count);
    policy.ZeroGradients();
    policy.Backward(
        policy.Forward(sequences_.views, Copy::kCurrent, golden_["temperature"], true, ViewOf(logprobs), {}),
        ViewOf(golden_["coefficients"].get<std::vector<float>>()));
  }
  static double GreatestDifference(const std::vector<float>& a, const std::vector<float>& b) {
    double most = 0;
    for (size_t i = 0; i < b.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
    return most;
  }
  // Greedy completions with their log-probabilities, and what Forward says of the same tokens.
  double GenerationAgainstForward(Policy& policy) {
    std::vector<GenerationRequest> requests;
    for (const std::vector<int32_t>& prompt : sequences_.prompts) requests.push_back({prompt, 0});
    std::vector<Completion> completions(requests.size());
    policy.Generate(
        requests, {.max_new_tokens = 24, .temperature = 0}, [&](const Completion& c) { completions[c.request] = c; },
        [] { return false; });
    std::vector<ScoredSequence> sequences;
    std::vector<float> generated;
    for (const Completion& completion : completions) {
      sequences.push_back({sequences_.prompts[completion.request], completion.ids});
      generated.insert(generated.end(), completion.logprobs.begin(), completion.logprobs.end());
    }
    std::vector<float> scored(generated.size());
    policy.Forward(sequences, Copy::kCurrent, 1.0, false, ViewOf(scored), {});
    return GreatestDifference(generated, scored);
  }

  c10::InferenceMode inference_;
  nlohmann::json expected_ = Expected(BaseOf(GetParam())), golden_ = Expected("adapters/" + GetParam());
  GoldenSequences sequences_{expected_};
};

TEST_P(AdapterTest, LogprobsArePeftsWithTheAdapterOnAndOff) {
  Policy on(Adapted(GetParam()), 0);
  EXPECT_LT(GreatestDifference(Score(on), golden_["on"].get<std::vector<float>>()), 2e-5);
  PolicyOptions options = Adapted(GetParam());
  options.adapter->start.clear();
  Policy off(options, 0), plain(GoldenOptions(BaseOf(GetParam())), 0);  // a new adapter changes nothing
  EXPECT_LT(GreatestDifference(Score(off), golden_["off"].get<std::vector<float>>()), 2e-5);
  EXPECT_EQ(Score(off), Score(plain));
}

TEST_P(AdapterTest, GradientsArePefts) {
  const Policy shape(Adapted(GetParam()), 0);
  for (const auto& [tokens, memory] : std::vector<std::pair<int64_t, int64_t>>{{4096, 1024}, {20, 0}}) {
    PolicyOptions options = Adapted(GetParam());
    options.max_tokens_per_chunk = tokens;
    options.activation_memory_mib = memory;
    Policy policy(options, 0);
    Differentiate(policy);
    AdapterSet expected(policy.config(), policy.adapter()->config(), at::kCPU);
    ReadAdapter(AdapterFolder(GetParam()) + "/gradients", "", expected);
    for (size_t i = 0; i < expected.specs().size(); ++i) {
      EXPECT_LT(RelativeL2(ToDoubles(policy.adapter()->gradients().Get(i)), ToDoubles(expected.Get(i))), 2e-5)
          << expected.specs()[i].name << ", chunks of " << tokens << " tokens, " << memory << " MiB";
    }
  }
}

TEST_P(AdapterTest, GeneratesWithTheMergedWeights) {
  Policy policy(Adapted(GetParam()), 0);
  EXPECT_LT(GenerationAgainstForward(policy), 1e-4);
  // The merged weights follow every change of the factors.
  const at::Tensor factors = policy.adapter()->factors().buffer();
  at::Tensor(factors).mul_(-1.3);
  EXPECT_LT(GenerationAgainstForward(policy), 1e-4);
  policy.Load(Copy::kCurrent, AdapterFolder(GetParam()));
  EXPECT_LT(GenerationAgainstForward(policy), 1e-4);
}

TEST_P(AdapterTest, AMergedModelIsTheAdaptedOne) {
  PolicyOptions options = GoldenOptions(BaseOf(GetParam()));
  options.model = AdapterFolder(GetParam());
  Policy merged(options, 0);
  EXPECT_LT(GreatestDifference(Score(merged), golden_["on"].get<std::vector<float>>()), 5e-5);
  const TemporaryFolder folder;
  merged.Save(Copy::kCurrent, folder.path());
  options.model = folder.path();
  Policy again(options, 0);
  EXPECT_EQ(Score(again), Score(merged));
  // And so is a whole policy that loads the adapter, as `eval policy` does.
  Policy plain(GoldenOptions(BaseOf(GetParam())), 0);
  plain.Load(Copy::kCurrent, AdapterFolder(GetParam()));
  EXPECT_EQ(Score(plain), Score(merged));
}

TEST_P(AdapterTest, TheReferenceIsAnAdapterOnTheSameWeights) {
  Policy policy(Adapted(GetParam()), 0);
  EXPECT_THAT(MessageOf([&] { Score(policy, Copy::kReference); }), HasSubstr("no reference copy yet"));
  const std::vector<float> frozen = Score(policy);
  policy.FreezeReference();
  const at::Tensor before = policy.parameters().buffer().clone();
  at::Tensor(policy.adapter()->factors().buffer()).mul_(0.5);
  EXPECT_NE(Score(policy), frozen);
  EXPECT_EQ(Score(policy, Copy::kReference), frozen);
  Differentiate(policy);
  EXPECT_TRUE(at::equal(policy.parameters().buffer(), before)) << "the base is frozen";

  // Both come back bit for bit.
  const TemporaryFolder current, reference;
  policy.Save(Copy::kCurrent, current.path());
  policy.Save(Copy::kReference, reference.path());
  PolicyOptions options = Adapted(GetParam());
  Policy other(options, 0);
  const void* address = other.adapter()->factors().buffer().const_data_ptr();
  other.Load(Copy::kCurrent, current.path());
  other.Load(Copy::kReference, reference.path());
  EXPECT_EQ(other.adapter()->factors().buffer().const_data_ptr(), address) << "views must stay valid";
  EXPECT_TRUE(at::equal(other.adapter()->factors().buffer(), policy.adapter()->factors().buffer()));
  EXPECT_EQ(Score(other, Copy::kReference), frozen);

  // Of a new adapter it is the model with the adapter off, which a folder holds as zeros.
  options.adapter->start.clear();
  Policy fresh(options, 0), plain(GoldenOptions(BaseOf(GetParam())), 0);
  fresh.FreezeReference();
  at::Tensor(fresh.adapter()->factors().buffer()).add_(0.1);
  EXPECT_EQ(Score(fresh, Copy::kReference), Score(plain));
}

TEST_P(AdapterTest, BFloat16IsCloseToFloat32) {
  PolicyOptions options = Adapted(GetParam());
  Policy exact(options, 0);
  options.bfloat16 = true;
  Policy rounded(options, 0);
  Differentiate(exact);
  Differentiate(rounded);
  EXPECT_EQ(rounded.adapter()->factors().buffer().scalar_type(), at::kFloat) << "the factors stay float32";
  EXPECT_LT(
      RelativeL2(ToDoubles(rounded.adapter()->gradients().buffer()), ToDoubles(exact.adapter()->gradients().buffer())),
      0.1);
  EXPECT_LT(GenerationAgainstForward(rounded), 0.3);
}

INSTANTIATE_TEST_SUITE_P(All, AdapterTest,
                         ::testing::Values("qwen2", "qwen3", "llama", "qwen2-patterns", "llama-layers"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(NewAdapterTest, IsAPureFunctionOfTheSeed) {
  const c10::InferenceMode inference;
  PolicyOptions options = GoldenOptions("qwen2");
  options.adapter = AdapterOptions{.rank = 8, .targets = std::vector<std::string>{"v_proj", "q_proj"}};
  Policy first(options, 3), same(options, 3), other(options, 4);
  EXPECT_TRUE(at::equal(first.adapter()->factors().buffer(), same.adapter()->factors().buffer()));
  EXPECT_FALSE(at::equal(first.adapter()->factors().buffer(), other.adapter()->factors().buffer()));
  const AdapterSet& set = first.adapter()->factors();
  ASSERT_EQ(set.specs().size(), 8U);  // two layers, two targets, A and B
  EXPECT_EQ(set.specs()[0].name, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_TRUE(set.IsOff());
  const std::vector<double> a = ToDoubles(set.Get(0));
  const double bound = 1 / std::sqrt(32.0);
  double squares = 0;
  for (const double value : a) {
    EXPECT_LE(std::abs(value), bound);
    squares += value * value;
  }
  EXPECT_NEAR(squares / static_cast<double>(a.size()), bound * bound / 3, bound * bound / 10);
}

TEST(AdapterFolderTest, ItsOwnTokenizerIsUsed) {
  const c10::InferenceMode inference;
  const TemporaryFolder folder, saved;
  Rewrite(AdapterFolder("qwen2"), folder.path(), "base_model_name_or_path", GoldenFolder("qwen2"));
  PolicyOptions merged = GoldenOptions("qwen2"), trained = merged;
  merged.model = folder.path();
  trained.adapter = AdapterOptions{.start = folder.path()};
  for (const PolicyOptions& options : {merged, trained})  // without one, the base's
    EXPECT_EQ(Policy(options, 0).tokenizer().Encode("<|im_end|>"), std::vector<int32_t>{2});
  // The base's with another name for a token.
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::ifstream from(GoldenFolder("qwen2") + "/" + name);
    std::string text{std::istreambuf_iterator<char>(from), {}};
    for (size_t at; (at = text.find("<|im_end|>")) != std::string::npos;) text.replace(at, 10, "<|im_out|>");
    std::ofstream(folder.path() + "/" + name) << text;
  }
  for (PolicyOptions options : {merged, trained}) {
    options.chat_template = "auto";  // ChatML's end token is not in this vocabulary
    Policy policy(options, 0);
    EXPECT_EQ(policy.tokenizer().Encode("<|im_out|>"), std::vector<int32_t>{2});
    EXPECT_GT(policy.tokenizer().Encode("<|im_end|>").size(), 1U);
    policy.Save(Copy::kCurrent, saved.path());
    std::ifstream written(saved.path() + "/tokenizer_config.json");
    EXPECT_THAT((std::string{std::istreambuf_iterator<char>(written), {}}), HasSubstr("<|im_out|>"));
  }
  std::filesystem::remove(folder.path() + "/tokenizer.json");
  EXPECT_THAT(MessageOf([&] { Policy(merged, 0); }), HasSubstr("holds tokenizer_config.json, but no tokenizer.json"));
}

TEST(AdapterFolderTest, FilesThatDoNotTellWhatIsMeant) {
  const c10::InferenceMode inference;
  const TemporaryFolder folder;
  Rewrite(AdapterFolder("qwen2"), folder.path(), "base_model_name_or_path", GoldenFolder("qwen2"));
  PolicyOptions options = GoldenOptions("qwen2");
  options.model = folder.path();
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"}) {
    std::ofstream(folder.path() + "/" + name) << "a model";
    EXPECT_THAT(MessageOf([&] { Policy(options, 0); }),
                HasSubstr(std::string("holds an adapter (adapter_config.json) and a whole model (") + name + ")"));
    std::filesystem::remove(folder.path() + "/" + name);
  }
  std::filesystem::rename(folder.path() + "/adapter_model.safetensors", folder.path() + "/adapter_model.bin");
  EXPECT_THAT(
      MessageOf([&] { Policy(options, 0); }),
      HasSubstr("adapter_model.bin: only adapter_model.safetensors is read; convert it in that folder: python"));
}

TEST(AdapterFolderTest, PeftsDefaultsAndExpressions) {
  const TemporaryFolder folder;
  Rewrite(AdapterFolder("qwen2"), folder.path(), "target_modules", R"(\A(?P<part>.*)[]_]proj\Z)");
  nlohmann::json config = nlohmann::json::parse(std::ifstream(folder.path() + "/adapter_config.json"));
  for (const char* key : {"r", "lora_alpha"}) config.erase(key);
  config["rank_pattern"] = {{R"(q_proj\Z)", 3}};
  std::ofstream(folder.path() + "/adapter_config.json") << config;
  const AdapterConfig read = ReadAdapterConfig(folder.path());
  EXPECT_EQ(read.rank, 8);
  EXPECT_EQ(read.alpha, 8);
  const AdapterSelection selection(read);
  EXPECT_EQ(selection.Find("model.layers.0.self_attn.q_proj", 0).value().rank, 3);
  EXPECT_EQ(selection.Find("model.layers.0.self_attn.k_proj", 0).value().rank, 8);
  EXPECT_FALSE(selection.Find("model.layers.0.self_attn.k_norm", 0).has_value());
}

TEST(AdapterFolderTest, WrongOnesAreRefusedInASentence) {
  const c10::InferenceMode inference;
  const TemporaryFolder folder;
  const auto start = [&](const std::string& model, const std::string& from) {
    PolicyOptions options = GoldenOptions(model);
    options.adapter = AdapterOptions{.start = from};
    return MessageOf([&] { Policy(options, 0); });
  };
  EXPECT_THAT(start("llama", AdapterFolder("qwen2")),
              testing::AllOf(HasSubstr("adapter_model.safetensors belongs to another model than " +
                                       GoldenFolder("llama") + ": \""),
                             HasSubstr("q_proj.lora_A.weight\" is [4, 32] and would be [4, 48]")));
  // A model of more layers, and one of fewer.
  EXPECT_THAT(start("llama", AdapterFolder("qwen3")), HasSubstr("belongs to another model"));
  EXPECT_THAT(start("llama_one_layer", AdapterFolder("qwen2")), HasSubstr("belongs to another model"));
  const auto rewritten = [&](const std::string& key, const nlohmann::json& value) {
    Rewrite(AdapterFolder("qwen2"), folder.path(), key, value);
    return start("qwen2", folder.path());
  };
  EXPECT_THAT(rewritten("use_dora", true), HasSubstr("\"use_dora\" is in use, which is not supported"));
  EXPECT_THAT(rewritten("peft_type", "IA3"), HasSubstr("\"peft_type\" is \"IA3\"; only LORA is supported"));
  EXPECT_THAT(rewritten("target_modules", {"q_proj", "lm_head"}), HasSubstr("\"target_modules\" selects lm_head"));
  EXPECT_THAT(rewritten("target_modules", "(q_proj"),
              HasSubstr("adapter_config.json: \"(q_proj\" is not a regular expression that kgrpo reads"));
  // A text that no path ends by: the search ends, too.
  EXPECT_THAT(rewritten("target_modules", "(([a-z._0-9]*)*)*X"), HasSubstr("select none of the model's linear layers"));
  EXPECT_THAT(rewritten("target_modules", std::string(60000, '(')), HasSubstr("is not a regular expression"));
  EXPECT_THAT(rewritten("target_modules", {"c_attn"}), HasSubstr("select none of the model's linear layers"));
  EXPECT_THAT(rewritten("rank_pattern", {{"q_proj", 0}}), HasSubstr("\"rank_pattern\": \"q_proj\" is 0"));
  EXPECT_THAT(rewritten("rank_pattern", "q_proj"),
              HasSubstr("\"rank_pattern\" is \"q_proj\", which peft does not write"));
  EXPECT_THAT(rewritten("layers_to_transform", "all"), HasSubstr("\"layers_to_transform\" is \"all\""));
  EXPECT_THAT(rewritten("task_type", "SEQ_CLS"), HasSubstr("only CAUSAL_LM is supported"));
  for (const char* kind : {"pissa", "pissa_niter_16", "olora", "corda", "loftq", "mica"}) {
    EXPECT_THAT(rewritten("init_lora_weights", kind),
                HasSubstr(std::string("\"init_lora_weights\" is \"") + kind + "\", after which A and B need not be"));
  }
  for (const char* key : {"lora_bias", "layer_replication", "megatron_config", "trainable_token_indices",
                          "modules_to_save", "target_parameters", "alora_invocation_tokens", "a_later_key"}) {
    for (const nlohmann::json& value : std::vector<nlohmann::json>{true, 3, {1, 2}, {{"a", 1}}, "x"})
      EXPECT_THAT(rewritten(key, value), HasSubstr("\"" + std::string(key) + "\" is in use")) << value;
    for (const nlohmann::json& value : std::vector<nlohmann::json>{false, nullptr, "", nlohmann::json::array()})
      EXPECT_EQ(rewritten(key, value), "nothing thrown") << key << " " << value;
  }
  for (const nlohmann::json& value : std::vector<nlohmann::json>{true, false, nullptr, "gaussian", "eva", "lora_ga"})
    EXPECT_EQ(rewritten("init_lora_weights", value), "nothing thrown") << value;
  EXPECT_THAT(rewritten("r", 0), HasSubstr("\"r\" is 0"));
  EXPECT_THAT(rewritten("target_modules", {"q_proj"}), HasSubstr("which that model's adapter does not have"));
  Rewrite(AdapterFolder("qwen2"), folder.path(), "base_model_name_or_path", "Qwen/Nowhere");
  PolicyOptions merged = GoldenOptions("qwen2");
  merged.model = folder.path();
  EXPECT_THAT(MessageOf([&] { Policy(merged, 0); }),
              HasSubstr("is \"Qwen/Nowhere\", which is not a model folder on this machine"));

  PolicyOptions options = Adapted("qwen2");
  options.adapter->rank = 5;
  EXPECT_THAT(MessageOf([&] { Policy(options, 0); }),
              HasSubstr("has rank 4, alpha 6, targets 14 paths, and the options say"));
  options = Adapted("qwen2");
  options.model = AdapterFolder("qwen2");
  EXPECT_THAT(MessageOf([&] { Policy(options, 0); }), HasSubstr("and adapter.start to it"));
  options = GoldenOptions("qwen2");
  options.adapter = AdapterOptions{.rank = 17};  // the keys' size is 16
  EXPECT_EQ(MessageOf([&] { Policy(options, 0); }), "nothing thrown");
  options.adapter = AdapterOptions();
  options.random_weights = true;
  EXPECT_THAT(MessageOf([&] { Policy(options, 0); }), HasSubstr("needs pretrained weights"));
  Policy policy(Adapted("qwen2"), 0);
  EXPECT_THAT(MessageOf([&] { policy.Load(Copy::kCurrent, GoldenFolder("qwen2")); }), HasSubstr("holds no adapter"));
  EXPECT_THAT(MessageOf([&] { policy.Load(Copy::kCurrent, AdapterFolder("qwen3")); }),
              HasSubstr("holds an adapter of rank 3"));
}

}  // namespace
}  // namespace kgrpo::policy
