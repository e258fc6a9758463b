// evaluator_sim through its ABI alone, as the host uses it: the built plugin, a problem, an evaluation, a report.
#include <dlfcn.h>
#include <kgrpo/draft/evaluator_tools.h>
#include <kgrpo/sdk/host.h>
#include <unistd.h>

#include <kgrpo/support/evaluation.h>
#include "base/services.h"
#include "test.h"

namespace kgrpo {
namespace {

struct Kept {
  Evaluation evaluation;
  int count = 0;

  double Metric(const std::string& name) const {
    for (const kgrpo::Metric& metric : evaluation.metrics)
      if (metric.name == name) return metric.value;
    return std::numeric_limits<double>::quiet_NaN();
  }
};

void Keep(void* context, const kgrpo_evaluation* evaluation) {
  auto* kept = static_cast<Kept*>(context);
  *kept = {Evaluation::FromC(*evaluation), kept->count + 1};
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

  const std::filesystem::path root = testing::TempDir() + "/plugin_test_" + std::to_string(getpid());
  HostOptions options;
  options.cache_root = root;
  HostServices services(options);
  const kgrpo_host* host = services.ForInstance("evaluator");
  const std::string cache = (root / "evaluator").string();

  kgrpo_evaluator* evaluator = nullptr;
  Check(table->create(host, Str("{}"), &evaluator));
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
  kgrpo_evaluate_request reference = {sizeof reference, info->source, 0, 0, 0, /*reference=*/1};
  Check(table->evaluate(evaluator, problem, &reference, {&baseline, Keep}));
  EXPECT_EQ(baseline.evaluation.verdict, KGRPO_VERDICT_CORRECT) << baseline.evaluation.diagnosis;
  EXPECT_TRUE(baseline.evaluation.modelled);
  EXPECT_THAT(baseline.evaluation.time_source, testing::HasSubstr("model"));
  EXPECT_GT(baseline.evaluation.seconds, 0);
  EXPECT_EQ(baseline.evaluation.speedup, 0) << "nothing is timed side by side";
  EXPECT_GT(baseline.Metric("registers"), 0);
  for (const char* figure : {"spill_bytes", "static_shared_bytes", "stack_bytes", "constant_bytes"})
    EXPECT_GE(baseline.Metric(figure), 0) << figure;
  const MetricRegistry& names = services.metrics();
  for (const Metric& metric : baseline.evaluation.metrics)
    EXPECT_NE(names.Find(metric.name), nullptr) << metric.name << " is not declared";
  std::vector<std::string> listed;  // as a coder is told of them
  Host(host).ForEachDeclaration(
      [&](const kgrpo_metric_declaration& declaration) { listed.push_back(Copy(declaration.name)); });
  EXPECT_THAT(listed, testing::Contains("seconds/"));
  EXPECT_EQ(listed.front(), "modelled_seconds");
  std::set<std::string> remarks;
  for (const Remark& remark : baseline.evaluation.remarks) {
    remarks.insert(remark.group);
    EXPECT_EQ(remark.line > 0, remark.share > 0) << remark.text;
  }
  EXPECT_THAT(remarks, testing::ElementsAre("By source line", "Occupancy"));

  std::string html;
  const EvaluationView view = baseline.evaluation.ToC();
  const kgrpo_report_request asked = {sizeof asked, info->source, Str("affine.cu"), view.c(), view.c()};
  EXPECT_EQ(table->get_extension(evaluator, Str("kgrpo.other/1")), nullptr);
  const auto* tools = static_cast<const kgrpo_evaluator_tools*>(
      table->get_extension(evaluator, KGRPO_LITERAL(KGRPO_EVALUATOR_TOOLS_INTERFACE)));
  ASSERT_NE(tools, nullptr);
  Check(tools->report(evaluator, problem, &asked,
                      {&html, [](void* page, kgrpo_str text) { *static_cast<std::string*>(page) += View(text); }}));
  EXPECT_THAT(html, testing::HasSubstr("affine.cu for affine: correct"));
  EXPECT_THAT(html, testing::HasSubstr("sandbox: "));

  const std::string source = "extern \"C\" void launch(const float*, const float*, float*, int) {}";
  kgrpo_evaluate_request request = {sizeof request, Str(source), 7, 0, 0, 0};
  Check(table->evaluate(evaluator, problem, &request, {&candidate, Keep}));
  EXPECT_EQ(candidate.evaluation.verdict, "no_launch");
  EXPECT_FALSE(candidate.evaluation.correct);
  EXPECT_EQ(candidate.count, 1);
  std::map<std::string, double> metrics = services.TakeMetrics();
  EXPECT_EQ(metrics.at("evaluator/cached"), 0);
  EXPECT_EQ(metrics.at("evaluator/compile_cached"), 0);
  EXPECT_GT(metrics.at("evaluator/compile_seconds"), 0);
  table->close_problem(evaluator, problem);
  table->destroy(evaluator);

  // Without its evaluations a later run judges again, but does not compile again.
  for (const char* file : {"/evaluations.sqlite", "/evaluations.sqlite-wal", "/evaluations.sqlite-shm"})
    std::filesystem::remove(cache + file);
  Check(table->create(host, Str("{}"), &evaluator));
  Check(table->open_problem(evaluator, Str(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine"),
                            &problem));
  reference.source = table->problem_info(problem)->source;
  Check(table->evaluate(evaluator, problem, &reference, {&candidate, Keep}));
  EXPECT_EQ(candidate.evaluation.metrics, baseline.evaluation.metrics);
  EXPECT_EQ(candidate.evaluation.seconds, baseline.evaluation.seconds);
  metrics = services.TakeMetrics();
  EXPECT_EQ(metrics.at("evaluator/cached"), 0);
  EXPECT_EQ(metrics.at("evaluator/compile_cached"), 1);
  table->close_problem(evaluator, problem);
  table->destroy(evaluator);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace kgrpo
