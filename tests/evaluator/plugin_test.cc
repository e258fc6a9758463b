// evaluator_sim through its ABI alone, as the host uses it: a fake host, the built plugin, a problem, a judgement.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

namespace kgrpo {
namespace {

struct Kept {
  std::string verdict, diagnosis, time_source;
  double seconds = 0;
  int correct = 0, modelled = 0, count = 0;
  std::map<std::string, double> metrics;
};

void Keep(void* context, const kgrpo_evaluation* evaluation) {
  auto* kept = static_cast<Kept*>(context);
  *kept = {Copy(evaluation->verdict),
           Copy(evaluation->diagnosis),
           Copy(evaluation->time_source),
           evaluation->seconds,
           evaluation->correct,
           evaluation->modelled,
           kept->count + 1,
           {}};
  for (size_t i = 0; i < evaluation->metric_count; ++i)
    kept->metrics[Copy(evaluation->metrics[i].name)] = evaluation->metrics[i].value;
}

TEST(EvaluatorSimPlugin, JudgesThroughTheAbi) {
  void* library =
      dlopen((std::string(KGRPO_BINARY_DIR) + "/lib/kgrpo/evaluator_sim.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto entry = reinterpret_cast<kgrpo_plugin_entry_function>(dlsym(library, KGRPO_PLUGIN_ENTRY));
  ASSERT_NE(entry, nullptr);
  const auto* table =
      static_cast<const kgrpo_evaluator_interface*>(entry()->get_interface(Str(KGRPO_EVALUATOR_INTERFACE)));
  ASSERT_NE(table, nullptr);
  const nlohmann::json schema = nlohmann::json::parse(View(table->options_schema()));
  for (const auto& [name, property] : schema["properties"].items()) {
    EXPECT_TRUE(property.contains("default") && property.contains("description")) << name;
  }

  static std::string cache = testing::TempDir() + "/plugin_test_" + std::to_string(getpid());
  std::filesystem::create_directories(cache);
  kgrpo_host host = {};
  host.struct_size = sizeof host;
  host.log = [](void*, uint32_t, kgrpo_str) {};
  host.cancelled = [](void*) { return 0; };
  static std::map<std::string, double> metrics;
  host.metric = [](void*, kgrpo_str name, double value) { metrics[Copy(name)] = value; };
  host.cache_directory = [](void*) { return Str(cache); };
  host.artifact_directory = [](void*) { return Str(cache); };

  kgrpo_evaluator* evaluator = nullptr;
  Check(table->create(&host, Str("{}"), &evaluator));
  EXPECT_THAT(Copy(table->describe(evaluator)), testing::HasSubstr("sandbox: "));
  kgrpo_problem* problem = nullptr;
  kgrpo_error* error = table->open_problem(evaluator, Str("/no/such/problem"), &problem);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->code, KGRPO_ERROR_NOT_FOUND);
  error->release(error);
  Check(table->open_problem(evaluator, Str(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine"),
                            &problem));
  const kgrpo_problem_info* info = table->problem_info(problem);
  EXPECT_EQ(View(info->name), "affine");
  EXPECT_EQ(View(info->split), "train");
  EXPECT_EQ(info->trait_count, 1u);
  EXPECT_THAT(Copy(info->task), testing::HasSubstr("n=1000"));
  EXPECT_THAT(Copy(info->task), testing::Not(testing::HasSubstr("777")));  // a hidden size

  Kept baseline, candidate;
  Check(table->baseline(evaluator, problem, {&baseline, Keep}));
  EXPECT_EQ(baseline.verdict, KGRPO_VERDICT_RIGHT) << baseline.diagnosis;
  EXPECT_EQ(baseline.modelled, 1);
  EXPECT_THAT(baseline.time_source, testing::HasSubstr("model"));
  EXPECT_GT(baseline.seconds, 0);
  EXPECT_GT(baseline.metrics["registers"], 0);
  for (const char* figure : {"spill_bytes", "static_shared_bytes", "stack_bytes", "constant_bytes"})
    EXPECT_EQ(baseline.metrics.count(figure), 1u) << figure;
  const std::string source = "extern \"C\" void launch(const float*, const float*, float*, int) {}";
  kgrpo_evaluate_request request = {sizeof request, Str(source), 7, 0, 0, 0};
  Check(table->evaluate(evaluator, problem, &request, {&candidate, Keep}));
  EXPECT_EQ(candidate.verdict, "no_launch");
  EXPECT_EQ(candidate.correct, 0);
  EXPECT_EQ(candidate.count, 1);
  EXPECT_EQ(metrics.at("evaluator/cached"), 0);
  EXPECT_EQ(metrics.at("evaluator/compile_cached"), 0);
  EXPECT_GT(metrics.at("evaluator/compile_seconds"), 0);
  table->close_problem(evaluator, problem);
  table->destroy(evaluator);

  // Without its judgements a later run judges again, but does not compile again.
  for (const char* file : {"/judgements.sqlite", "/judgements.sqlite-wal", "/judgements.sqlite-shm"})
    std::filesystem::remove(cache + file);
  metrics.clear();
  Check(table->create(&host, Str("{}"), &evaluator));
  Check(table->open_problem(evaluator, Str(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine"),
                            &problem));
  Check(table->baseline(evaluator, problem, {&candidate, Keep}));
  EXPECT_EQ(candidate.metrics, baseline.metrics);
  EXPECT_EQ(candidate.seconds, baseline.seconds);
  EXPECT_EQ(metrics.at("evaluator/cached"), 0);
  EXPECT_EQ(metrics.at("evaluator/compile_cached"), 1);
  table->close_problem(evaluator, problem);
  table->destroy(evaluator);
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace kgrpo
