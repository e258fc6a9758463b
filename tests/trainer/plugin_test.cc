// The shared libraries trainer_grpo, trainer_sft and reward_speedup as the host sees them: one symbol, tables, errors.
#include <dlfcn.h>
#include <kgrpo/reward.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/trainer.h>

#include <stdexcept>

#include "fake_host.h"
#include "options_json.h"
#include "recorded_sink.h"
#include "test.h"

namespace kgrpo {
namespace {

using kgrpo::testing::FakeHost;
using kgrpo::testing::OptionsJson;

// Never closed: a library that links libtorch does not survive it.
const kgrpo_plugin* Load(const std::string& name) {
  void* library = dlopen((KGRPO_BINARY_DIR "/lib/kgrpo/" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<kgrpo_plugin_entry_function>(dlsym(library, KGRPO_PLUGIN_ENTRY))();
}

template <typename Interface>
const Interface& InterfaceOf(const std::string& name, const char* id) {
  const kgrpo_plugin* plugin = Load(name);
  EXPECT_EQ(plugin->struct_size, sizeof(kgrpo_plugin));
  EXPECT_EQ(View(plugin->name), name);
  EXPECT_EQ(plugin->abi_major, static_cast<uint32_t>(KGRPO_ABI_MAJOR));
  EXPECT_EQ(plugin->get_interface(Str("kgrpo.nothing/1")), nullptr);
  return *static_cast<const Interface*>(plugin->get_interface(Str(id)));
}

class TrainerPlugin : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainerPlugin, IsMadeFromItsDefaultsAndReportsFailuresAsErrors) {
  const auto& api = InterfaceOf<kgrpo_trainer_interface>(GetParam(), KGRPO_TRAINER_INTERFACE);
  EXPECT_EQ(api.struct_size, sizeof(kgrpo_trainer_interface));
  FakeHost host;
  kgrpo_trainer* trainer = nullptr;
  const std::string options = OptionsJson(View(api.options_schema()));
  ASSERT_EQ(api.create(host.get(), Str(options), &trainer), nullptr);
  ASSERT_NE(trainer, nullptr);

  kgrpo::testing::RecordedSink sink;
  kgrpo_error* error = api.update(trainer, nullptr, 0, sink.get());
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->code, static_cast<uint32_t>(KGRPO_ERROR_INVALID));
  EXPECT_THAT(Copy(error->message), HasSubstr("begin comes before"));
  error->release(error);
  api.destroy(trainer);
  api.destroy(nullptr);
}

TEST_P(TrainerPlugin, DeclaresItsMetricsWhenItIsMade) {
  const auto& api = InterfaceOf<kgrpo_trainer_interface>(GetParam(), KGRPO_TRAINER_INTERFACE);
  FakeHost host;
  kgrpo_trainer* trainer = nullptr;
  Check(api.create(host.get(), Str(OptionsJson(View(api.options_schema()))), &trainer));
  api.destroy(trainer);
  std::map<std::string, uint32_t> directions;
  for (const FakeHost::Declared& metric : host.declared) {
    EXPECT_FALSE(metric.label.empty()) << metric.name;
    EXPECT_EQ(metric.group, "Training") << metric.name;
    EXPECT_TRUE(directions.emplace(metric.name, metric.direction).second) << metric.name << " twice";
  }
  EXPECT_EQ(directions.at("loss"), static_cast<uint32_t>(KGRPO_METRIC_LOWER_IS_BETTER));
  EXPECT_EQ(directions.at("grad_norm"), static_cast<uint32_t>(KGRPO_METRIC_NEUTRAL));
}

INSTANTIATE_TEST_SUITE_P(All, TrainerPlugin, ::testing::Values("trainer_grpo", "trainer_sft"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TrainerPlugins, SayWhatTheyLearnFrom) {
  FakeHost host;
  auto made = [&](const char* name, const nlohmann::json& changes, auto&& use) {
    const auto& api = InterfaceOf<kgrpo_trainer_interface>(name, KGRPO_TRAINER_INTERFACE);
    kgrpo_trainer* trainer = nullptr;
    Check(api.create(host.get(), Str(OptionsJson(View(api.options_schema()), changes)), &trainer));
    use(api, trainer);
    api.destroy(trainer);
  };
  made("trainer_grpo", nlohmann::json::object(), [](const auto& api, auto* trainer) {
    EXPECT_EQ(api.source(trainer), static_cast<uint32_t>(KGRPO_TRAINER_ROLLOUTS));
    EXPECT_NE(api.needs_reference(trainer), 0);
  });
  made("trainer_grpo", {{"beta", 0}},
       [](const auto& api, auto* trainer) { EXPECT_EQ(api.needs_reference(trainer), 0); });
  made("trainer_sft", nlohmann::json::object(), [](const auto& api, auto* trainer) {
    EXPECT_EQ(api.source(trainer), static_cast<uint32_t>(KGRPO_TRAINER_DEMONSTRATIONS));
    EXPECT_EQ(api.needs_reference(trainer), 0);
  });
  made("trainer_sft", {{"pairs", "pairs.jsonl"}}, [](const auto& api, auto* trainer) {
    EXPECT_EQ(api.source(trainer), static_cast<uint32_t>(KGRPO_TRAINER_OWN_DATA));
  });
}

TEST(RewardPlugin, PushesPartsThatSumToTheScore) {
  const auto& api = InterfaceOf<kgrpo_reward_interface>("reward_speedup", KGRPO_REWARD_INTERFACE);
  FakeHost host;
  kgrpo_reward* reward = nullptr;
  Check(api.create(host.get(), Str(OptionsJson(View(api.options_schema()))), &reward));
  kgrpo_evaluation baseline = {}, kernel = {};
  baseline.compiled = baseline.correct = kernel.compiled = kernel.correct = 1;
  baseline.seconds = 3e-3;
  kernel.seconds = 1e-3;
  baseline.speedup = 1;
  kernel.speedup = 3;
  kgrpo_reward_request request = {};
  request.struct_size = sizeof(request);
  request.baseline = request.current = &baseline;
  request.candidate = &kernel;
  std::map<std::string, double> parts;
  const kgrpo_metric_sink sink = {&parts, [](void* context, kgrpo_metric metric) {
                                    (*static_cast<std::map<std::string, double>*>(context))[Copy(metric.name)] =
                                        metric.value;
                                  }};
  double score = 0, idle = 0;
  Check(api.score(reward, &request, sink, &score));
  Check(api.idle(reward, &request, &idle));
  EXPECT_DOUBLE_EQ(score, 3.3);
  EXPECT_DOUBLE_EQ(idle, 1.3);
  EXPECT_EQ(parts, (std::map<std::string, double>{{"outcome", 0.0}, {"correct", 0.3}, {"speedup", 3.0}}));

  kernel.speedup = 0;
  score = 7;
  kgrpo_error* error = api.score(reward, &request, sink, &score);
  ASSERT_NE(error, nullptr);
  EXPECT_THAT(Copy(error->message), HasSubstr("must be above 0"));
  error->release(error);
  EXPECT_EQ(score, 7) << "outputs are untouched on failure";
  api.destroy(reward);
}

}  // namespace
}  // namespace kgrpo
