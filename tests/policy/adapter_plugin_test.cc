// An adapter through kgrpo.policy/1, as trainers use it: its group trains, the weights' groups are frozen, and one step
// of the trainers' AdamW equals PyTorch's on peft's model (tests/golden/policy/make_adapters.py).
#include <dlfcn.h>
#include <kgrpo/host.h>
#include <kgrpo/policy.h>
#include <kgrpo/sdk/policy_client.h>
#include <kgrpo/sdk/text.h>

#include "golden.h"
#include "policy_qwen/model/adapter.h"
#include "trainer_shared/adamw.h"

namespace kgrpo::policy {
namespace {

const kgrpo_policy_interface& Api() {
  static const auto* const api = [] {
    void* library = ::dlopen(KGRPO_BINARY_DIR "/lib/kgrpo/policy_qwen.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    const auto entry = reinterpret_cast<kgrpo_plugin_entry_function>(::dlsym(library, KGRPO_PLUGIN_ENTRY));
    return static_cast<const kgrpo_policy_interface*>(entry()->get_interface(Str(KGRPO_POLICY_INTERFACE)));
  }();
  return *api;
}

// A host that offers nothing but what creating a policy takes.
const kgrpo_host* Host() {
  static const kgrpo_host_interface api = [] {
    kgrpo_host_interface made = {};
    made.struct_size = sizeof(made);
    made.log = [](void*, uint32_t, kgrpo_str) {};
    made.cancelled = [](void*) -> int32_t { return 0; };
    made.random = [](void*, const uint64_t*, size_t, uint64_t) { return uint64_t{1}; };
    made.lock_device = [](void*, kgrpo_str) -> kgrpo_error* { return nullptr; };
    made.unlock_device = [](void*, kgrpo_str) {};
    return made;
  }();
  static const kgrpo_host host = {
      nullptr, [](void*, kgrpo_str id) -> const void* { return View(id) == KGRPO_HOST_INTERFACE ? &api : nullptr; }};
  return &host;
}

class AdapterPluginTest : public ::testing::TestWithParam<std::string> {};

TEST_P(AdapterPluginTest, AStepIsPyTorchsOnPeftsModel) {
  const std::string start = GoldenFolder("adapters/" + GetParam());
  const nlohmann::json golden = Expected("adapters/" + GetParam()), tokens = Expected(GetParam());
  const nlohmann::json options = {{"model", GoldenFolder(GetParam())},
                                  {"chat_template", "chatml"},
                                  {"adapter", {{"start", start}, {"rank", nullptr}}}};
  kgrpo_policy* policy = nullptr;
  const std::string text = options.dump();
  ASSERT_EQ(Api().create(Host(), Str(text), &policy), nullptr);

  const kgrpo_parameter_group* const* groups = nullptr;
  size_t count = 0;
  ASSERT_EQ(Api().parameters(policy, &groups, &count), nullptr);
  ASSERT_EQ(count, 3U);
  for (size_t i = 0; i < count; ++i) {
    const kgrpo_parameter_group& group = *groups[i];
    EXPECT_EQ(View(group.name) == "adapter", group.trainable != 0) << View(group.name);
    EXPECT_EQ(group.flat_gradient != nullptr, group.trainable != 0);
    for (size_t j = 0; j < group.parameter_count; ++j)
      EXPECT_EQ(group.parameters[j]->gradient != nullptr, group.trainable != 0);
  }

  {
    trainer::AdamW optimizer(trainer::ViewParameters(Api(), policy), {.weight_decay = golden["decay"].get<double>()},
                             nullptr);
    const GoldenSequences sequences(tokens);
    std::vector<kgrpo_sequence> views;
    for (const ScoredSequence& view : sequences.views)
      views.push_back({view.prompt.data(), view.prompt.size(), view.completion.data(), view.completion.size()});
    PolicyClient client(Api(), policy);
    client.ZeroGradients();
    client.Differentiate(views, golden["temperature"], [&](const TokenScores& scores) {
      EXPECT_NEAR(scores.logprobs[0], golden["on"][0].get<double>(), 2e-5);
      return golden["coefficients"].get<std::vector<float>>();
    });
    optimizer.Step(golden["rate"].get<double>(), 1.0);
    const std::vector<float> updated =
        client.Score(views, KGRPO_POLICY_CURRENT, golden["temperature"].get<double>()).logprobs;
    for (size_t i = 0; i < updated.size(); ++i)
      EXPECT_NEAR(updated[i], golden["updated"][i].get<double>(), 2e-4) << "token " << i;
  }

  const TemporaryFolder saved;
  ASSERT_EQ(Api().save(policy, KGRPO_POLICY_CURRENT, Str(saved.path())), nullptr);
  Api().destroy(policy);
  EXPECT_FALSE(std::filesystem::exists(saved.path() + "/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(saved.path() + "/config.json"));
  const ModelConfig config = ReadModelConfig(GoldenFolder(GetParam()));
  const AdapterConfig adapter = ReadAdapterConfig(saved.path());
  EXPECT_EQ(adapter, ReadAdapterConfig(start));
  EXPECT_EQ(BaseOfAdapter(saved.path()), GoldenFolder(GetParam()));
  const auto read = [&](const std::string& folder) {
    AdapterSet set(config, adapter, at::kCPU);
    ReadAdapter(folder, "", set);
    return ToDoubles(set.buffer());
  };
  const std::vector<double> before = read(start);
  std::vector<double> change = read(saved.path()), expected = read(start + "/updated");
  for (size_t i = 0; i < before.size(); ++i) {
    change[i] -= before[i];
    expected[i] -= before[i];
  }
  EXPECT_LT(RelativeL2(change, expected), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(All, AdapterPluginTest, ::testing::Values("qwen2", "qwen3", "llama"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kgrpo::policy
