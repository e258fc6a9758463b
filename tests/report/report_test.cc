// The page of a run: the database's values can be read back from the page, with any text in them; kernels are stored
// once; runs that cannot be read are reported and the others shown.
#include "report/report.h"

#include <kgrpo/support/sqlite.h>
#include <zlib.h>

#include "base/files.h"
#include "store/database.h"
#include "test.h"

namespace kgrpo {
namespace {

constexpr const char* kNasty = "</script><script>alert(1)</script><!-- \"quoted\" & \u00e9 \n\\";

std::string KernelText(int number) {
  return "__global__ void k(float* x) { x[threadIdx.x] += " + std::to_string(number) + "; } // </script>\n";
}

// A sample of a usual size that is like no other: 24 tokens, and a kernel of 60 lines.
void Vary(RoundRecord& round, uint64_t number) {
  std::mt19937_64 random(number);
  round.completion_ids.clear();
  round.logprobs.clear();
  for (int i = 0; i < 24; ++i) {
    round.completion_ids.push_back(1 + static_cast<int32_t>(random() % 3));
    round.logprobs.push_back(-static_cast<float>(random() % 5000) / 1000.0F);
  }
  std::string source;
  for (int i = 0; i < 60; ++i)
    source += "  x[" + std::to_string(i) + "] = y[" + std::to_string(random() % 4096) + "] * 2;\n";
  round.answer.source = source;
  round.suggestion = "unroll the loop " + std::to_string(number) + " times";
}

// A run of `steps` steps: so many trajectories a step with one round each, and a held-out one after the last.
fs::path WriteRun(const std::string& name, uint64_t seed, uint64_t steps = 3, uint64_t trajectories = 1) {
  const fs::path folder = fs::path(KGRPO_BINARY_DIR) / "test_runs" / ("report_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder / "final");
  std::ofstream(folder / "resolved.yaml") << "name: r\nseed: " << seed << "\nloop: {rounds: 1}\n";
  std::ofstream(folder / "final" / "tokenizer.json")
      << R"({"model": {"vocab": {"Ġfast": 1, "Ã": 2}}, "added_tokens": [{"id": 3, "content": "<|end|>"}]})";
  RunDatabase database(folder / "run.sqlite");
  ProblemRecord problem;
  problem.name = problem.title = "softmax";
  problem.source = KernelText(0);
  problem.baseline.seconds = 1e-5;
  database.WriteProblems(Purpose::kTrain, {problem});
  for (uint64_t step = 1; step <= steps; ++step) {
    StepRecord record;
    record.step = step;
    record.stage_name = "trainer_grpo";
    record.has_rollouts = true;
    record.reward_mean = static_cast<double>(step);
    record.metrics = {{"reward", static_cast<double>(step)}, {"time/train", 2}, {"kl", step == 2 ? 1000 : 0.5}};
    TrajectoryRecord trajectory;
    trajectory.problem_name = "softmax";
    trajectory.rounds = 1;
    RoundRecord round;
    round.messages = {{"user", "Make this fast:\n" + KernelText(1) + "before: " + KernelText(0) + kNasty}};
    round.suggestion = kNasty;
    round.completion_ids = {1, 2, 3, 9};
    round.logprobs = {-0.25F, -1.5F, -0.001F, -3};
    round.code_a = KernelText(0);
    round.code_b = KernelText(1);
    round.answer.source = KernelText(static_cast<int>(step) + 1);
    round.answer.outcome = KGRPO_CODER_OK;
    round.answer.summary = "unroll";
    round.evaluation.emplace();
    round.evaluation->compiled = round.evaluation->correct = true;
    round.evaluation->verdict = "correct";
    round.evaluation->diagnosis = "bound by \xff";
    round.evaluation->seconds = 5e-6;
    round.speedup = 2;
    round.reward = static_cast<double>(step);
    round.reward_parts = {{"speedup", 2}};
    round.outcome = Trainer::SampleOutcome{2.5, -0.5};
    trajectory.rounds_done = {round};
    for (uint64_t i = 0; i < trajectories; ++i) {
      trajectory.trajectory = i;
      if (trajectories > 1) Vary(trajectory.rounds_done[0], step * 1000 + i);
      record.trajectories.push_back(trajectory);
    }
    trajectory.trajectory = 0;
    if (step == steps) record.heldout = {trajectory};
    database.WriteStep(record, {});
  }
  database.SetFinished(1);
  return folder;
}

std::string Page(const std::vector<fs::path>& folders, bool samples = true,
                 std::vector<std::string>* left_out = nullptr) {
  std::vector<std::string> names, none;
  for (const fs::path& folder : folders) names.push_back(folder.string());
  std::vector<std::string>& told = left_out == nullptr ? none : *left_out;
  auto runs = ReadRuns(names, &told);
  return MakeReport(std::move(runs), samples, told);
}

std::string TextOf(const std::string& page, const std::string& id) {
  const std::string begin = "id=\"" + id + "\">";
  const size_t at = page.find(begin);
  if (at == std::string::npos) return "";
  return page.substr(at + begin.size(), page.find("</script>", at) - at - begin.size());
}

json DataOf(const std::string& page) { return json::parse(TextOf(page, "data")); }

// Unpacks a part as the page's script does: base64, then zlib.
json PartOf(const std::string& page, const std::string& id) {
  static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : TextOf(page, id)) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(kDigits.find(c));
    if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  std::string text(1 << 20, '\0');
  uLongf size = text.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(text.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                       bytes.size()),
            Z_OK);
  text.resize(size);
  return json::parse(text);
}

// For browser_test.py, which opens it.
TEST(ReportTest, APageOf6400SamplesIsBelow20Megabytes) {
  const std::string page = Page({WriteRun("browser", 1, 100, 64)});
  EXPECT_LT(page.size(), 20'000'000U);
  WriteFileAtomically(fs::path(KGRPO_BINARY_DIR) / "test_runs" / "report_browser.html", page);
}

// For browser_test.py too.
TEST(ReportTest, APageOfRunsWithOtherStages) {
  const fs::path one = WriteRun("stages_one", 1), two = WriteRun("stages_two", 2);
  Database(one / "run.sqlite").Execute("UPDATE steps SET stage = 1, stage_name = 'second' WHERE step > 2");
  const std::string page = Page({one, two});
  EXPECT_EQ(DataOf(page)["runs"][0]["figures"]["stages"].dump(), R"([["trainer_grpo",1],["second",3]])");
  EXPECT_EQ(DataOf(page)["runs"][1]["figures"]["stages"].dump(), R"([["trainer_grpo",1]])");
  WriteFileAtomically(fs::path(KGRPO_BINARY_DIR) / "test_runs" / "report_browser_stages.html", page);
}

TEST(ReportTest, EverySampleCanBeReadFromThePageAgain) {
  const std::string page = Page({WriteRun("whole", 1)});
  const json data = DataOf(page);
  const json& run = data["runs"][0];
  ASSERT_EQ(run["samples"]["steps"].size(), 4U);  // three of training, one held-out
  EXPECT_EQ(run["samples"]["tokens"], json({{"1", " fast"}, {"2", "<C3>"}, {"3", "<|end|>"}}));
  for (const json& entry : run["samples"]["steps"]) {
    if (entry[0] != "train") continue;
    const json step = PartOf(page, "step" + entry[2].dump());
    const json& round = step["trajectories"][0]["rounds"][0];
    EXPECT_EQ(round["suggestion"], kNasty);
    EXPECT_EQ(round["ids"], json({1, 2, 3, 9}));
    EXPECT_EQ(round["logprobs"], json({-0.25, -1.5, -0.001, -3}));
    EXPECT_EQ(round["verdict"], "correct");
    EXPECT_EQ(round["diagnosis"], "bound by \uFFFD");
    EXPECT_EQ(round["return"], 2.5);
    EXPECT_EQ(round["advantage"], -0.5);
    EXPECT_EQ(round["parts"], json({{"speedup", 2}}));
    const json sources = PartOf(page, "sources0");
    EXPECT_EQ(sources[round["code"][0].get<size_t>()], KernelText(0));
    EXPECT_EQ(sources[round["code"][1].get<size_t>()], KernelText(1));
    EXPECT_EQ(sources[round["code"][2].get<size_t>()], KernelText(entry[1].get<int>() + 1));
    EXPECT_EQ(round["prompt"][0][1], std::string("Make this fast:\n\001B\001before: \001A\001") + kNasty);
    EXPECT_EQ(sources.size(), 5U) << "a kernel is stored once";
  }
}

TEST(ReportTest, NoTextOfARunEndsTheScriptThatHoldsIt) {
  const std::string page = Page({WriteRun("nasty", 1)});
  const std::regex element("<script[^>]*>|</script>");
  int depth = 0;
  for (auto match = std::sregex_iterator(page.begin(), page.end(), element); match != std::sregex_iterator(); ++match) {
    depth += match->str().starts_with("</") ? -1 : 1;
    ASSERT_TRUE(depth == 0 || depth == 1) << match->position();
  }
  EXPECT_EQ(page.find("<script>alert(1)"), std::string::npos);
  EXPECT_EQ(page.find("http://"), page.find("http://www.w3.org/2000/svg")) << "nothing is loaded";
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

// The coder names only what it applied.
TEST(ReportTest, ASuggestionIsOneRowWhetherItAppliedOrNot) {
  const fs::path folder = WriteRun("applied", 1);
  Database(folder / "run.sqlite").Execute("UPDATE rounds SET coder_outcome = 1, coder_summary = '' WHERE step = 3");
  const json suggestions = DataOf(Page({folder}))["runs"][0]["figures"]["suggestions"];
  ASSERT_EQ(suggestions.size(), 1U);
  EXPECT_EQ(suggestions[0]["summary"], "unroll");
  EXPECT_EQ(suggestions[0]["count"], 3);
  EXPECT_NEAR(suggestions[0]["applied"].get<double>(), 2.0 / 3, 1e-12);
}

TEST(ReportTest, FiguresAreThoseOfTheDatabase) {
  const json figures = DataOf(Page({WriteRun("figures", 1)}))["runs"][0]["figures"];
  EXPECT_EQ(figures["curves"]["reward"], json({{1, 1.0}, {2, 2.0}, {3, 3.0}}));
  EXPECT_EQ(figures["outcomes"]["steps"][0], json({1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(figures["times"]["time/train"], 6.0);
  EXPECT_EQ(figures["suggestions"][0]["label"], "</script><script>alert(1)</script><!-- \"quoted\" & \u00e9 \\");
  EXPECT_EQ(figures["suggestions"][0]["summary"], "unroll");
  EXPECT_EQ(figures["suggestions"][0]["applied"], 1.0);
  EXPECT_EQ(figures["suggestions"][0]["count"], 3);
  EXPECT_EQ(figures["suggestions"][0]["reward"], 2.0);
  EXPECT_NEAR(figures["suggestions"][0]["speedup"].get<double>(), 2, 1e-12);
  EXPECT_EQ(figures["suggestions"][0]["advantage"], -0.5);
  const json& heldout = figures["heldout"]["problems"][0];
  EXPECT_EQ(heldout["last"]["reward"], 3.0);
  EXPECT_NEAR(heldout["last"]["speedup"].get<double>(), 2, 1e-12);
}

TEST(ReportTest, TheHeadlineHasCompareSFigures) {
  const fs::path folder = WriteRun("headline", 1);
  const json values = DataOf(Page({folder}))["runs"][0]["values"];
  EXPECT_NEAR(values["heldout_best"].get<double>(), 2, 1e-12);
  EXPECT_EQ(values, json(ReadMeasures(folder, "").values));
}

TEST(ReportTest, WithoutSamplesThePageHoldsNone) {
  const std::string page = Page({WriteRun("small", 1)}, false);
  EXPECT_FALSE(DataOf(page)["runs"][0].contains("samples"));
  EXPECT_EQ(page.find("id=\"step0\""), std::string::npos);
}

TEST(ReportTest, ADamagedRunIsToldOfAndTheOthersAreShown) {
  const fs::path good = WriteRun("good", 1), damaged = WriteRun("damaged", 2), foreign = WriteRun("foreign", 3);
  {
    std::fstream file(damaged / "run.sqlite", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    for (int i = 0; i < 100'000; ++i) file.put('\x5a');
  }
  std::ofstream(foreign / "run.sqlite", std::ios::trunc) << "this is no database, but as long as a header has to be, "
                                                            "and then some more so that it is looked at as one at all.";
  std::vector<std::string> left_out;
  const json data = DataOf(Page({good, damaged, foreign}, true, &left_out));
  EXPECT_EQ(data["runs"].size(), 1U);
  ASSERT_EQ(left_out.size(), 2U);
  EXPECT_THAT(left_out[0], HasSubstr("report_damaged is left out: "));
  EXPECT_THAT(left_out[1], HasSubstr("report_foreign is left out: "));
  EXPECT_EQ(data["comparison"]["notes"][0], left_out[0]);
  std::vector<std::string> again;
  EXPECT_THROW(ReadRuns({damaged.string()}, &again), Error);
  const std::string nowhere = (good.parent_path() / "report_nowhere").string();
  EXPECT_THROW(ReadRuns({good.string(), nowhere}, &again), Error) << "a misspelt name is no run that is left out";
}

TEST(ReportTest, SeedsOfOneConfigurationAreOneGroup) {
  const json data = DataOf(Page({WriteRun("seed1", 1), WriteRun("seed2", 2)}));
  ASSERT_EQ(data["groups"].size(), 1U);
  EXPECT_EQ(data["groups"][0]["runs"], json({0, 1}));
  EXPECT_EQ(data["runs"][1]["seed"], 2);
}

}  // namespace
}  // namespace kgrpo
