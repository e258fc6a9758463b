// `plugins validate`: a sound plugin passes, and each broken one is found, with a sentence of its own.
#include "validate/validate.h"

#include "base/log.h"
#include "in_process.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::kBad;
using test::kGood;

ValidateOptions Quick() {
  ValidateOptions options;
  options.seconds = 20;
  return options;
}

// The checks of that outcome, each as "name: detail".
std::vector<std::string> Found(const fs::path& path, CheckOutcome outcome, const ValidateOptions& options = Quick()) {
  std::vector<std::string> found;
  for (const ContractCheck& check : ValidatePlugin(path, options)) {
    if (check.outcome == outcome) found.push_back(check.name + ": " + check.detail);
  }
  return found;
}

std::string FirstFailure(const std::string& bad, const ValidateOptions& options = Quick()) {
  const std::vector<std::string> found = Found(kBad / (bad + ".so"), CheckOutcome::kFailed, options);
  return found.empty() ? "none" : found.front();
}

TEST(ValidatePlugin, PassesASoundOne) {
  ValidateOptions options = Quick();
  options.options = {{"policy", {{"model", "random"}}}};
  options.problem = KGRPO_SOURCE_DIR "/problems/transpose";
  const std::vector<ContractCheck> checks = ValidatePlugin(kGood / "fakes.so", options);
  EXPECT_GE(checks.size(), 80U);
  for (const ContractCheck& check : checks)
    EXPECT_EQ(check.outcome, CheckOutcome::kPassed) << check.name << ": " << check.detail;
}

// Those that need a GPU, a model or a program say so, and skip the calls.
TEST(ValidatePlugin, PassesWhatIsShipped) {
  InitLog(LogLevel::kWarning);  // to standard error, as in the host
  size_t plugins = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(KGRPO_BINARY_DIR) / "lib" / "kgrpo")) {
    if (entry.path().extension() != ".so") continue;
    ++plugins;
    EXPECT_THAT(Found(entry.path(), CheckOutcome::kFailed), testing::IsEmpty()) << entry.path();
  }
  EXPECT_GE(plugins, 5U);
}

TEST(ValidatePlugin, SkipsTheCallsOfOneThatNeedsOptions) {
  EXPECT_THAT(
      Found(kGood / "fakes.so", CheckOutcome::kSkipped),
      testing::ElementsAre("policy: create with defaults works or says why not: give options with --options FILE.json",
                           "policy: an instance for the calls: give options with --options FILE.json",
                           "evaluator: the problem opens: name a problem's folder with --problem DIR"));
}

TEST(ValidatePlugin, RefusesOptionsThatTheSchemaRefuses) {
  ValidateOptions options = Quick();
  options.options = {{"policy", {{"modle", "random"}}}};
  EXPECT_THAT(Found(kGood / "fakes.so", CheckOutcome::kFailed, options), testing::Contains(HasSubstr("modle")));
}

TEST(ValidatePlugin, FindsABrokenLibrary) {
  EXPECT_THAT(FirstFailure("wrong_major"), HasSubstr("bootstrap is sound: built for plugin ABI 2"));
  EXPECT_THAT(FirstFailure("no_entry"), HasSubstr("not a kgrpo plugin: it does not export kgrpo_plugin_entry"));
  EXPECT_THAT(FirstFailure("null_entry"), HasSubstr("kgrpo_plugin_entry returned NULL"));
  EXPECT_THAT(FirstFailure("short_bootstrap"), HasSubstr("its kgrpo_plugin has struct_size 12, below 72"));
  EXPECT_THAT(FirstFailure("missing_dependency"), HasSubstr("undefined symbol: kgrpo_test_symbol_of_nobody"));
  EXPECT_THAT(FirstFailure("needs_absent_library"), HasSubstr("needs libgone.so.1, which is not installed (ldd "));
  EXPECT_THAT(FirstFailure("not_elf"), testing::AnyOf(HasSubstr("invalid ELF header"), HasSubstr("file too short")));
  EXPECT_THAT(FirstFailure("crashes_at_load"), HasSubstr("crashed with signal 9"));
  EXPECT_THAT(FirstFailure("null_table"), HasSubstr("it offers an interface: none"));
  EXPECT_THAT(FirstFailure("null_function"), HasSubstr("reward: its table is complete: function 4"));
  EXPECT_THAT(FirstFailure("short_table"), HasSubstr("reward: its table is complete: "));
  EXPECT_THAT(FirstFailure("bad_schema"), HasSubstr("rate: \"type\" cannot be \"nmber\""));
}

TEST(ValidatePlugin, FindsABrokenCreate) {
  EXPECT_THAT(FirstFailure("throws_in_create"),
              HasSubstr("create with defaults works or says why not: thrown across the boundary"));
  EXPECT_THAT(FirstFailure("crashes_in_create"),
              HasSubstr("reward: create with defaults works or says why not: crashed with signal 6"));
  EXPECT_THAT(FirstFailure("aborts_in_create"),
              HasSubstr("reward: create with defaults works or says why not: crashed with signal 6"));
}

TEST(ValidatePlugin, FindsABrokenReward) {
  const std::string score = "reward: score of a kernel of speedup 2: ";
  EXPECT_EQ(FirstFailure("idle_of_wrong_is_infinite"),
            "reward: idle reward instead of a kernel of speedup 2 made from a wrong one: the idle score is -inf: it "
            "must be finite");
  EXPECT_EQ(FirstFailure("nan_score"), score + "the score is nan: it must be finite");
  EXPECT_EQ(FirstFailure("infinite_score"), score + "the score is inf: it must be finite");
  EXPECT_EQ(FirstFailure("score_not_set"), score + "success without a score");
  EXPECT_EQ(FirstFailure("crashes_in_score"), score + "crashed with signal 11 (Segmentation fault)");
  EXPECT_EQ(FirstFailure("overflows_in_score"), score + "crashed with signal 11 (Segmentation fault)");
  EXPECT_EQ(FirstFailure("exits_in_score"), score + "ended the process with status 0 (it called exit)");
  EXPECT_EQ(FirstFailure("forgetful_score"), score + "the same request gave 0, then 1: a reward keeps no state");
  EXPECT_EQ(FirstFailure("parts_do_not_sum"), score + "the parts sum up to 0.75, the score is 1");
  EXPECT_EQ(FirstFailure("error_and_score"), score + "it returned an error and yet set the score");
  EXPECT_EQ(FirstFailure("error_without_message"), score + "the error has no message");
  EXPECT_EQ(FirstFailure("prints_in_score"),
            score +
                "it wrote 72 bytes on the standard output (\"score: 1\\nscore: 1\\nscore: 1\\nscore: 1\\nscor\"), "
                "where the host's results stand: log through the host instead");
  ValidateOptions impatient;
  impatient.seconds = 2;
  EXPECT_EQ(FirstFailure("hangs_in_score", impatient), score + "did not finish within 2 s");
}

TEST(ValidatePlugin, FindsABrokenCoder) {
  const std::string implement = "coder: implement answers each request once: ";
  EXPECT_EQ(FirstFailure("echoes_input"),
            implement + "it returned the kernel that it was given as a new one: answer not_applicable instead");
  EXPECT_EQ(FirstFailure("answers_twice"), implement + "a request was answered twice");
  EXPECT_EQ(FirstFailure("kernel_without_ok"), implement + "the coder delivered outcome \"no_code\" with a kernel");
  ValidateOptions impatient;
  impatient.seconds = 3;
  EXPECT_EQ(FirstFailure("never_answers", impatient), implement + "a request was not answered within 1 s");
}

TEST(ValidatePlugin, FindsABrokenEvaluator) {
  EXPECT_EQ(
      FirstFailure("opens_nothing"),
      "evaluator: open_problem refuses a folder that is absent: it opened a problem in a folder that does not exist");
  ValidateOptions judging = Quick();
  judging.problem = KGRPO_SOURCE_DIR "/problems/transpose";
  EXPECT_EQ(
      FirstFailure("evaluates_twice", judging),
      "evaluator: evaluate measures the reference, twice with the same result: it pushed 2 evaluations: it is to push "
      "one");
  EXPECT_EQ(FirstFailure("all_is_correct", judging),
            "evaluator: evaluate rejects a kernel that does not compile: a file of one #error is correct");
  EXPECT_EQ(FirstFailure("bound_without_json", judging),
            "evaluator: explain_bound compares the reference with the problem's needs: what it pushes into json is no "
            "JSON object");
  EXPECT_THAT(FirstFailure("crashes_in_evaluate", judging),
              HasSubstr("evaluator: evaluate measures the reference, twice with the same result: "));
}

// The evaluator that needs no GPU judges a real problem, where there is a compiler for it.
TEST(ValidatePlugin, JudgesAProblemThatIsNamed) {
  ValidateOptions judging;
  judging.problem = KGRPO_SOURCE_DIR "/problems/transpose";
  const fs::path sim = fs::path(KGRPO_BINARY_DIR) / "lib/kgrpo/evaluator_sim.so";
  if (!fs::exists(sim)) GTEST_SKIP() << "evaluator_sim was not built";
  const std::vector<ContractCheck> checks = ValidatePlugin(sim, judging);
  for (const ContractCheck& check : checks) {
    if (check.detail.find("no CUDA toolkit") != std::string::npos) GTEST_SKIP() << check.detail;
    EXPECT_NE(check.outcome, CheckOutcome::kFailed) << check.name << ": " << check.detail;
  }
  EXPECT_EQ(checks.back().outcome, CheckOutcome::kPassed) << checks.back().name;
}

TEST(ValidatePlugin, FindsABrokenPolicy) {
  EXPECT_EQ(FirstFailure("random_completions"),
            "policy: generate writes the same from call to call: its info says reproducible, and the same prompt and "
            "seed gave another completion in a "
            "batch of three");
  EXPECT_EQ(FirstFailure("lossy_decode"),
            "policy: encode and decode are each other's inverse: the text came back as \"int main() { return 0; }\"");
  EXPECT_THAT(FirstFailure("crashes_in_forward"), HasSubstr("policy: forward"));
  EXPECT_THAT(FirstFailure("crashes_in_forward"), HasSubstr("crashed with signal 11 (Segmentation fault)"));
  EXPECT_EQ(
      FirstFailure("tells_too_early"),
      "policy: backward_in_pieces pushes only final gradients: element 0 of a piece was 0, and changed afterwards");
  EXPECT_EQ(FirstFailure("no_gradient"), "policy: forward and backward are finite: backward left all gradients at 0");
  EXPECT_EQ(FirstFailure("frozen_with_gradient"),
            "policy: its parameter groups are sound: parameter \"logits\": not trainable, and yet a gradient");
}

TEST(ValidatePlugin, FindsABrokenTrainer) {
  EXPECT_EQ(FirstFailure("trains_nothing"), "trainer: update trains: success, and no parameter has changed");
  EXPECT_EQ(FirstFailure("nan_parameters"), "trainer: update trains: it left parameters that are not finite");
  EXPECT_EQ(FirstFailure("nan_loss"), "trainer: update trains: the metric \"loss\" is nan");
}

TEST(ValidatePlugin, FindsABrokenObserver) {
  EXPECT_EQ(FirstFailure("observer_crashes"),
            "observer: round without a kernel: crashed with signal 11 (Segmentation fault)");
}

}  // namespace
}  // namespace kgrpo
