// `eval kernel`: its options for thoroughness, inputs and the problem, and its output. Some tests use fakes that
// report their requests, the others evaluator_sim.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Result;

class EvalKernelTest : public CliTest {
 protected:
  std::string Asked(const std::string& flags) {
    Write("k.cu", "void launch() {} // asked\n");
    const Result result = Run("eval kernel k.cu --problem one --evaluator fakes --json " + flags);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? json::parse(result.out)["diagnosis"].get<std::string>() : "";
  }

  // Of the problem `affine` (out = 2 x + y), with evaluator_sim.
  std::string Affine(const std::string& expression, const std::string& flags) {
    Write("affine.cu",
          "#include <cuda_fp16.h>\n"
          "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
          "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
          "  if (i < n) out[i] = " +
              expression +
              ";\n}\nextern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
              "  k<<<(n + 255) / 256, 256>>>(x, y, out, n);\n}\n");
    const Result result =
        Run("eval kernel affine.cu --problem " KGRPO_SOURCE_DIR "/tests/evaluator/problems/affine " + flags);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
  double WorstError(const std::string& flags) {
    const json judged = json::parse(Affine("2.0f * x[i] + y[i]", "--json " + flags));
    EXPECT_EQ(judged["verdict"], "correct");
    EXPECT_EQ(judged["worst_error"]["output"], "out");
    EXPECT_EQ(judged["worst_error"]["of_tolerance"], judged["metrics"]["worst_error/out"]);
    return judged["worst_error"]["of_tolerance"].get<double>();
  }
};

// Several files and folders: one evaluator, a line each, in their order.
TEST_F(EvalKernelTest, SeveralKernelsGetALineEach) {
  Write("k.cu", "void launch() {} // asked\n");
  Write("more/b.cu", "void launch() {} // broken\n");
  Write("more/a.cu", "void launch() {} // asked\n");
  Write("more/notes.txt", "");
  const std::string eval = "eval kernel k.cu more --problem one --evaluator fakes";
  const Result result = Run(eval + " --json --jobs 2");
  EXPECT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<std::string> files;
  for (std::string line; std::getline(lines, line);) {
    const json one = json::parse(line);
    files.push_back(one["kernel"]);
    EXPECT_EQ(one["problem"], "one");
    EXPECT_EQ(one["diagnosis"].get<std::string>().find("seed 0, thorough") == 0, files.back() != "more/b.cu") << line;
  }
  EXPECT_EQ(files, (std::vector<std::string>{"k.cu", "more/a.cu", "more/b.cu"}));
  const std::string text = Run(eval).out;
  EXPECT_THAT(text, HasSubstr("k.cu       correct "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(Run(eval + " --report k.html").code, 2);
  // One file in a folder, or one file with --jobs, also gets a line.
  std::filesystem::remove(directory_.path() / "more/b.cu");
  for (const char* one : {"more", "more --jobs 2", "more/a.cu --jobs 2"}) {
    const Result line = Run(std::string("eval kernel --json --problem one --evaluator fakes ") + one);
    EXPECT_EQ(line.code, 0) << one << ": " << line.err;
    EXPECT_EQ(std::count(line.out.begin(), line.out.end(), '\n'), 1) << line.out;
    EXPECT_EQ(json::parse(line.out)["kernel"], "more/a.cu");
  }
  EXPECT_EQ(Run("eval policy p.yaml --policy uniform --jobs 2").code, 2);
  EXPECT_EQ(Run("eval kernel k.cu none.cu --problem one --evaluator fakes").code, 3);
}

// A kernel's own headers, beside it or in a folder of --include; messages name their lines, and the kernel's own.
TEST_F(EvalKernelTest, ReadsTheHeadersBesideAKernel) {
  const auto judged = [&](const std::string& header, const std::string& flags, const std::string& body = "") {
    Write("more/own.cuh", "#pragma once\n" + header);
    Write("more/mine.cu",
          "#include \"own.cuh\"\n__global__ void k(const float* x, const float* y, float* out, int n) {\n"
          "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
              body +
              "  if (i < n) Put(out, i, Twice(x[i]) + y[i]);\n}\n"
              "void launch(const float* x, const float* y, float* out, int n) {\n"
              "  k<<<(n + 255) / 256, 256>>>(x, y, out, n);\n}\n");
    const Result result =
        Run("eval kernel more/mine.cu --problem " KGRPO_SOURCE_DIR "/tests/evaluator/problems/affine --quick --json " +
            flags);
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out);
  };
  const std::string put = "__device__ __noinline__ void Put(float* out, int i, float v) { out[i] = v; }\n";
  const std::string twice = "__device__ float Twice(float v) { return 2 * v; }\n";
  EXPECT_EQ(judged(put + twice, "")["verdict"], "correct");
  const json missing = judged(put, "");
  EXPECT_EQ(missing["verdict"], "not_compiled");
  EXPECT_THAT(missing["diagnosis"].get<std::string>(), HasSubstr("kernel.cu(4)"));
  const json broken = judged(put + "__device__ float Twice(float v) { return 2 * w; }\n", "");
  EXPECT_THAT(broken["diagnosis"].get<std::string>(), HasSubstr("own.cuh(3)"));
  const json outside =
      judged("__device__ __noinline__ void Put(float* out, int i, float v) { out[i + 1] = v; }\n" + twice, "");
  EXPECT_EQ(outside["verdict"], "out_of_bounds");
  EXPECT_THAT(outside["diagnosis"].get<std::string>(), HasSubstr("kernel 'k', own.cuh:2: "));
  EXPECT_THAT(outside["diagnosis"].get<std::string>(), HasSubstr("out[i + 1] = v"));
  const json kernel = judged(put + twice, "", "  if (i == n) out[i] = 0;\n");
  EXPECT_THAT(kernel["diagnosis"].get<std::string>(), HasSubstr("line 4: "));
  EXPECT_THAT(kernel["diagnosis"].get<std::string>(), HasSubstr("if (i == n) out[i] = 0;"));
  // Where no compiler reads them, lines keep their numbers and the kernel's own are quoted.
  const json inactive = judged(put + twice + "#ifdef DEBUG_BUILD\n#include \"debug.cuh\"\n#endif\n", "",
                               "#ifdef DEBUG_BUILD\n#include \"own.cuh\"\n#endif\n  if (i == n) out[i] = 0;\n");
  EXPECT_THAT(inactive["diagnosis"].get<std::string>(), HasSubstr("line 7: "));
  EXPECT_THAT(inactive["diagnosis"].get<std::string>(), HasSubstr("if (i == n) out[i] = 0;"));
  Write("parts.cuh", twice);
  EXPECT_EQ(judged("#include \"../parts.cuh\"\n" + put, "")["verdict"], "forbidden");
  EXPECT_EQ(judged("#include \"parts.cuh\"\n" + put, "--include .")["verdict"], "correct");
}

// For CI: an exit code for what is required, and reports in the forms that other systems read.
TEST_F(EvalKernelTest, RequiresAndReports) {
  Write("good.cu", "void launch() {} // a // b // c\n");  // four times as fast as the reference
  Write("bad.cu", "void launch() {} // wrong <&>\n");
  const std::string eval = "eval kernel good.cu bad.cu --problem one --evaluator fakes ";
  EXPECT_EQ(Run(eval).code, 0);
  const Result required = Run(eval + "--require correct");
  EXPECT_EQ(required.code, 5);
  EXPECT_THAT(required.err, HasSubstr("bad.cu: verdict wrong where correct is required"));
  EXPECT_THAT(required.err, testing::Not(HasSubstr("good.cu")));
  const std::string one = "eval kernel good.cu --problem one --evaluator fakes ";
  EXPECT_EQ(Run(one + "--min-speedup 3.9 --require correct").code, 0);
  const Result slow = Run(one + "--min-speedup 4.5");
  EXPECT_EQ(slow.code, 5);
  EXPECT_THAT(slow.err, HasSubstr("good.cu: speedup 4 is below the required 4.5"));
  EXPECT_THAT(slow.out, HasSubstr("speedup    4\n"));
  EXPECT_EQ(Run(one + "--require wrong").code, 2);
  EXPECT_EQ(Run(one + "--json --format sarif").code, 2);
  EXPECT_EQ(json::parse(Run(one + "--format json").out), json::parse(Run(one + "--json").out));

  const Result junit = Run(eval + "--format junit");
  EXPECT_EQ(junit.code, 0);
  Write("report.xml", junit.out);
  const std::string reads = "cd '" + directory_.path().string() +
                            "' && python3 -c \"import xml.etree.ElementTree as t; r = t.parse('report.xml').getroot(); "
                            "assert (r.get('tests'), [len(c.findall('failure')) for c in r]) == ('2', [0, 1])\"";
  EXPECT_EQ(std::system(reads.c_str()), 0) << junit.out;
  const json sarif = json::parse(Run(eval + "--format sarif").out);
  ASSERT_EQ(sarif["runs"][0]["results"].size(), 1U);
  EXPECT_EQ(sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "bad.cu");

  const Result error = Run("eval kernel none.cu --problem one --evaluator fakes --json");
  EXPECT_EQ(error.code, 3);
  EXPECT_EQ(json::parse(error.out)["error"]["code"], "invalid");
  EXPECT_THAT(json::parse(error.out)["error"]["message"].get<std::string>(), HasSubstr("none.cu"));
}

TEST_F(EvalKernelTest, IsThoroughUnlessItIsToBeQuick) {
  EXPECT_EQ(Asked(""), "seed 0, thorough");
  EXPECT_EQ(Asked("--thorough --seed 7"), "seed 7, thorough");
  EXPECT_EQ(Asked("--quick --seed 7"), "seed 7");
  EXPECT_EQ(Asked("--show-hidden"), "seed 0, thorough, hidden shown");
  EXPECT_EQ(Run("eval kernel k.cu --problem one --evaluator fakes --quick --thorough").code, 2);
  EXPECT_THAT(Affine("2.0f * x[i] + y[i]", "-v"), HasSubstr("\nEvaluator (thorough evaluation)\n  compiler: "));
  EXPECT_THAT(Affine("2.0f * x[i] + y[i]", "-v --quick"), HasSubstr("\nEvaluator (quick evaluation)\n  compiler: "));
  EXPECT_EQ(json::parse(Affine("2.0f * x[i] + y[i]", "--quick --json"))["thorough"], false);
  for (const char* flag : {"--show-hidden", "--quick", "--seed 1"})
    EXPECT_EQ(Run(std::string("eval policy p.yaml --policy uniform ") + flag).code, 2) << flag;
}

// `eval --kernel` and `eval FILE --policy` are the spelling of before.
TEST_F(EvalKernelTest, TheSpellingOfBeforeIsUnderstoodWithANote) {
  Write("k.cu", "void launch() {} // asked\n");
  Write("ks/one.cu", "void launch() {} //\n");
  for (const auto& [before, now] :
       std::map<std::string, std::string>{{"eval p.yaml --kernel k.cu --problem one --seed 3 --json",
                                           "eval kernel k.cu --pipeline p.yaml --problem one --seed 3 --json"},
                                          {"eval --json --seed=3 --problem one --quick p.yaml --kernel=k.cu",
                                           "eval kernel k.cu --pipeline p.yaml --problem one --seed 3 --quick --json"},
                                          {"-q eval --kernel k.cu ks --problem one --evaluator fakes",
                                           "eval kernel k.cu ks --problem one --evaluator fakes"}}) {
    const test::Result old = Run(before);
    EXPECT_EQ(old.code, 0) << old.err;
    EXPECT_THAT(old.err, HasSubstr("note: this spelling goes with the next release: write `eval kernel`")) << before;
    EXPECT_EQ(old.out, Run(now).out) << before;
  }
  EXPECT_THAT(Run("eval p.yaml --policy uniform --episodes 1 --json").out, HasSubstr("\"policy\": \"uniform\""));
  EXPECT_EQ(Run("eval --suite 'problems/*' --kernels ks --evaluator fakes").code, 2);
  EXPECT_EQ(Run("eval p.yaml --policy uniform --quick").code, 2) << "refused as in the new spelling";
}

TEST_F(EvalKernelTest, TakesAProblemByName) {
  Write("k.cu", "void launch() {}\n");
  EXPECT_THAT(Run("eval kernel k.cu --problem two --evaluator fakes").out, HasSubstr("problem    two\n"));
  EXPECT_THAT(Run("eval kernel k.cu --problem problems/two/ --evaluator fakes").out, HasSubstr("problem    two\n"));
  EXPECT_THAT(Run("eval kernel k.cu --pipeline p.yaml --problem two").out, HasSubstr("problem    two\n"));
  const Result typo = Run("eval kernel k.cu --problem twoo --evaluator fakes");
  EXPECT_EQ(typo.code, 3);
  EXPECT_EQ(typo.err, "error: --problem twoo is neither a folder nor a problem of problems/; did you mean \"two\"?\n");
  EXPECT_EQ(Run("eval kernel k.cu --problem third --evaluator fakes").err,
            "error: --problem third is neither a folder nor a problem of problems/; it has: one, two\n");
  std::filesystem::create_directory(directory_.path() / "row_sums");
  Write("row_sums/problem.yaml", "");
  EXPECT_THAT(Run("eval kernel k.cu --problem row_sum --evaluator fakes").err,
              HasSubstr("did you mean \"row_sums\"?\n"));
  Write("heldout.yaml", "extends: p.yaml\nproblems: {train: [problems/two], heldout: []}\n");
  EXPECT_THAT(Run("eval kernel k.cu --pipeline heldout.yaml --problem one").err,
              HasSubstr("--problem one is neither a folder nor a problem of heldout.yaml; "));
  EXPECT_EQ(Run("eval kernel k.cu --problem problems/two/reference.cu --evaluator fakes").err,
            "error: --problem problems/two/reference.cu is a file: name its folder, problems/two\n");
  std::filesystem::remove_all(directory_.path() / "problems");
  EXPECT_THAT(Run("eval kernel k.cu --problem one --evaluator fakes").err,
              HasSubstr("--problem one is neither a folder nor a problem of " KGRPO_SOURCE_DIR "/problems/; it has: "));
}

TEST_F(EvalKernelTest, OptimizeNamesWhatWasGiven) {
  EXPECT_EQ(Run("optimize two --policy runs/quickstart").err,
            "error: --policy runs/quickstart: there is no folder runs/quickstart. Train first (scripts/quickstart "
            "trains runs/quickstart), or use --policy uniform --pipeline configs/quickstart.yaml\n");
  EXPECT_THAT(Run("optimize two --policy unifrom").err,
              HasSubstr("error: --policy unifrom is neither \"uniform\", nor \"fixed:TECHNIQUE,...\", nor a folder"));
  EXPECT_THAT(
      Run("optimize twoo --policy uniform").err,
      HasSubstr("error: \"twoo\" is neither a file, a folder nor a problem of problems/; did you mean \"two\"?"));
}

// README's samples: what its commands print, from a checkout.
TEST_F(EvalKernelTest, PrintsWhatReadmeShows) {
  std::istringstream readme(test::Read(KGRPO_SOURCE_DIR "/README.md"));
  const auto words = [](const std::string& text) {
    std::istringstream stream(text);
    std::string joined;
    for (std::string word; stream >> word;) joined += word + " ";
    return joined;
  };
  std::filesystem::create_directory_symlink(KGRPO_BINARY_DIR, directory_.path() / "build");
  for (const char* folder : {"tests", "problems"}) {
    std::filesystem::remove_all(directory_.path() / folder);
    std::filesystem::create_directory_symlink(std::string(KGRPO_SOURCE_DIR "/") + folder, directory_.path() / folder);
  }
  int samples = 0;
  const std::string judging = test::Read(KGRPO_SOURCE_DIR "/docs/judging.md");
  for (std::string line, command, shown; std::getline(readme, line);) {
    if (line.starts_with("    $ "))
      command += line.substr(6) + "\n";
    else if (line.starts_with("    ") && !command.empty())
      shown += line + "\n";
    if (!line.empty() || shown.empty()) continue;
    Write("command", "export KGRPO_CACHE_DIR=cache\n" + command);
    EXPECT_EQ(std::system(("cd '" + directory_.path().string() + "' && sh -e command > out 2> err").c_str()) % 256, 0);
    const std::string err = test::Read(directory_.path() / "err");
    if (err.find("no CUDA toolkit with nvcc was found") != std::string::npos) GTEST_SKIP() << err;
    EXPECT_THAT(words(test::Read(directory_.path() / "out")), testing::StartsWith(words(shown))) << err;
    if (++samples == 1) {
      EXPECT_THAT(judging, HasSubstr(shown)) << "the page shows README's kernel";
    }
    command.clear();
    shown.clear();
  }
  EXPECT_EQ(samples, 2);
}

TEST_F(EvalKernelTest, EachSeedHasInputsOfItsOwn) {
  for (const char* way : {"", "--quick "}) {
    const double one = WorstError(way + std::string("--seed 1"));
    EXPECT_NE(one, WorstError(way + std::string("--seed 2"))) << way;
    EXPECT_EQ(one, WorstError(way + std::string("--seed 1"))) << way;
  }
}

TEST_F(EvalKernelTest, ShowsHowNearAKernelIsToItsTolerance) {
  EXPECT_THAT(Affine("2.0f * x[i] + y[i]", ""), testing::ContainsRegex("\nerror      at worst 0\\.0[0-9]+ of the "
                                                                       "tolerance, in out\n"));
  EXPECT_THAT(Affine("(2.0f * x[i] + y[i]) * (x[i] == rintf(x[i]) ? 1 : 1.0000012f)", "--report k.html"),
              testing::ContainsRegex("\nerror      at worst 0\\.[56789][0-9]* of the tolerance, in out \\(close: other "
                                     "inputs may exceed it\\)\n"));
  EXPECT_THAT(Affine("2.0f * x[i] + y[i]", "--report k.html"), HasSubstr("\nreport     k.html\n"));
  const std::string report = test::Read(directory_.path() / "k.html");
  EXPECT_THAT(report, HasSubstr("worst error"));
  EXPECT_THAT(report, HasSubstr("of the tolerance, in out"));
  EXPECT_THAT(Affine("__half2float(__float2half(2.0f * x[i] + y[i]))", ""), HasSubstr("verdict    wrong\n"));
}

TEST_F(EvalKernelTest, NamesTheMetricsOfACorrectKernel) {
  const std::string shown = Affine("2.0f * x[i] + y[i]", "-v");
  EXPECT_THAT(shown, testing::ContainsRegex("\nMachine code\n  registers a thread +[0-9]+ +registers\n"));
  EXPECT_THAT(shown, HasSubstr("\nThe last column is a metric's name in rewards: metric(\"modelled_seconds\")\n"));
  EXPECT_THAT(shown, Not(HasSubstr("docs/judging.md")));
}

TEST_F(EvalKernelTest, SendsAWrongKernelsAuthorToTheVerdicts) {
  const std::string shown = Affine("2.0f * x[i]", "");
  EXPECT_THAT(shown,
              testing::AllOf(HasSubstr("verdict    wrong\n"), HasSubstr("\nsee        docs/judging.md#verdicts\n"),
                             Not(HasSubstr("Machine code")), Not(HasSubstr("Cross-checks"))));
}

TEST_F(EvalKernelTest, NamesHiddenSizesWhereItIsAskedTo) {
  const std::string expression = "n == 777 ? 0.0f : 2.0f * x[i] + y[i]";
  const std::string hidden = Affine(expression, "");
  EXPECT_THAT(hidden, HasSubstr("\nfound      At a size that is not shown: "));
  EXPECT_THAT(hidden, HasSubstr("\nhint       --show-hidden names the size that is not shown\n"));
  EXPECT_THAT(Affine(expression, "--show-hidden"),
              testing::AllOf(HasSubstr("\nfound      At n=777 (hidden): "), Not(HasSubstr("hint "))));
  EXPECT_THAT(Affine(expression, "--quick --show-hidden"), HasSubstr("\nfound      At n=777 (hidden): "));
  EXPECT_THAT(Affine(expression, "--quick"), Not(HasSubstr("n=777")));
}

}  // namespace
}  // namespace kgrpo
