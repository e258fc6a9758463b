// The problem format: the problem read from a good folder, and the exact message for each mistake.
#include "judge/problem/problem.h"

#include "test.h"

namespace kgrpo::evaluator {
namespace {

const char* const kGood = R"(name: sample
title: Sample
family: elementwise
split: train
traits: [streaming]
description: out = x.
parameters:
  - {name: x, role: input, dtype: float32, shape: [n], distribution: normal}
  - {name: out, role: output, dtype: float32, shape: [n]}
  - {name: n, role: scalar, dtype: int32, value: n}
sizes:
  visible: [{n: 4}]
  hidden: [{n: 5}]
  timing: {n: 100}
needs: {bytes: "8*n", flops: 0}
)";

class ProblemTest : public testing::Test {
 protected:
  ProblemTest() : folder_(fs::path(testing::TempDir()) / ("problem_test_" + std::to_string(getpid())) / "sample") {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "reference.cu") << "extern \"C\" void launch(const float*, float*, int) {}\n";
  }
  ~ProblemTest() override { fs::remove_all(folder_.parent_path()); }

  Problem Load(const std::string& yaml) {
    std::ofstream(folder_ / "problem.yaml") << yaml;
    return LoadProblem(folder_.string());
  }

  // The messages of a problem that is refused, without the folder's name.
  std::string Errors(const std::string& yaml) {
    try {
      Load(yaml);
    } catch (const Error& error) {
      std::string text = error.what();
      for (size_t at = text.find(folder_.string() + "/"); at != std::string::npos;
           at = text.find(folder_.string() + "/")) {
        text.erase(at, folder_.string().size() + 1);
      }
      return text;
    }
    return "none";
  }

  static std::string With(const std::string& from, const std::string& to) {
    std::string text = kGood;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  fs::path folder_;
};

TEST_F(ProblemTest, ReadsAGoodOne) {
  const Problem problem = Load(kGood);
  EXPECT_EQ(problem.name, "sample");
  EXPECT_EQ(problem.Signature(), "extern \"C\" void launch(const float* x, float* out, int n)");
  EXPECT_EQ(problem.parameters.size(), 3u);
  EXPECT_EQ(problem.parameters[0].Elements(problem.timing), 100);
  EXPECT_EQ(problem.hidden[0].at("n"), 5);
  EXPECT_EQ(problem.digest.size(), 64u);
  EXPECT_FALSE(problem.oracle_source.has_value());
}

TEST_F(ProblemTest, TaskTextShowsVisibleSizesOnly) {
  EXPECT_EQ(Load(kGood).TaskText(),
            "out = x.\n"
            "Define extern \"C\" void launch(const float* x, float* out, int n). It launches on the default stream; "
            "every pointer is "
            "a device pointer.\n"
            "  x: input, float32 [n], row-major\n"
            "  out: output, float32 [n], row-major\n"
            "  n: scalar, int32 = n\n"
            "It must be correct for every size, for example: n=4.\n");
}

TEST_F(ProblemTest, DigestFollowsEveryFile) {
  const std::string first = Load(kGood).digest;
  std::ofstream(folder_ / "oracle.cc") << "extern \"C\" void oracle() {}";
  const std::string second = Load(kGood).digest;
  EXPECT_NE(first, second);
  EXPECT_NE(second, Load(With("traits: [streaming]", "traits: [stream]")).digest);
}

TEST_F(ProblemTest, EverySignatureType) {
  std::string parameters;
  for (const std::string& dtype : DTypeNames()) {
    parameters += "  - {name: " + dtype + "_in, role: input, dtype: " + dtype + ", shape: [n], distribution: " +
                  (dtype.find("float") != std::string::npos ? "normal" : "integers, low: 0, high: 9") + "}\n";
  }
  EXPECT_EQ(Load(With("  - {name: x, role: input, dtype: float32, shape: [n], distribution: normal}\n", parameters))
                .Signature(),
            "extern \"C\" void launch(const float* float32_in, const double* float64_in, const __half* float16_in, "
            "const __nv_bfloat16* bfloat16_in, const int* int32_in, const long long* int64_in, const unsigned char* "
            "uint8_in, "
            "const unsigned int* uint32_in, const signed char* int8_in, const bool* bool_in, "
            "const short* int16_in, const unsigned short* uint16_in, float* out, int n)");
}

// x as a list of two, with whatever comes between and around them.
std::string Lists(const std::string& first, const std::string& second) {
  return "  - {name: x, role: input, dtype: float32, shape: [n], distribution: normal, list: " + first +
         "}\n  - {name: y, role: input, dtype: float32, shape: [2], distribution: normal" + second + "}\n";
}

constexpr char kX[] = "  - {name: x, role: input, dtype: float32, shape: [n], distribution: normal}\n";

TEST_F(ProblemTest, AListIsOneParameterOfTheSignature) {
  const Problem problem = Load(With(kX, Lists("weights", ", list: weights")));
  EXPECT_EQ(problem.Signature(), "extern \"C\" void launch(const float* const* weights, float* out, int n)");
  EXPECT_EQ(problem.parameters.size(), 4u);
  EXPECT_EQ(problem.ListLength(0), 2u);
  EXPECT_EQ(problem.ListLength(2), 1u);
  EXPECT_THAT(problem.TaskText(), testing::HasSubstr("weights[1], y: input, float32 [2], row-major"));
  EXPECT_THAT(problem.TaskText(), testing::HasSubstr("the arrays are the host's"));
  // Two lists beside one another.
  EXPECT_EQ(Load(With(kX, Lists("a", ", list: b"))).Signature(),
            "extern \"C\" void launch(const float* const* a, const float* const* b, float* out, int n)");
}

struct Mistake {
  const char* from;
  const char* to;
  const char* message;
};

TEST_F(ProblemTest, ExactMessages) {
  const std::string between = Lists("w", "") +
                              "  - {name: z, role: input, dtype: float32, shape: [n], distribution: "
                              "normal, list: w}\n",
                    named = Lists("out", "");
  const Mistake kMistakes[] = {
      {kX, between.c_str(),
       "problem.yaml:10:84: parameters[2].list: the tensors of a list follow one another, and y is between these"},
      {kX, named.c_str(), "problem.yaml:8:84: parameters[0].list: \"out\" is a parameter's name"},
      {"dtype: int32, value: n}", "dtype: int32, value: n, list: w}",
       "problem.yaml:10:5: parameters[2].list: a scalar has no list"},
      {"title: Sample\n", "titel: Sample\n",
       "problem.yaml:1:1: title: is missing\nproblem.yaml:2:1: titel: unknown key; did you mean \"title\"?"},
      {"title: Sample\n", "title: Sample\ntitle: Again\n", "problem.yaml:3:1: title: the key is given twice"},
      {"name: sample", "name: other", "problem.yaml:1:7: name: \"other\" is not the folder's name, \"sample\""},
      {"split: train", "split: tarin",
       "problem.yaml:4:8: split: \"tarin\" is not one of train, heldout; did you mean \"train\"?"},
      {"dtype: float32, shape: [n], distribution", "dtype: flaot32, shape: [n], distribution",
       "problem.yaml:8:35: parameters[0].dtype: \"flaot32\" is not one of float32, float64, float16, bfloat16, int32, "
       "int64, uint8, "
       "uint32, int8, bool, int16, uint16; did you mean \"float32\"?"},
      {"shape: [n], distribution", "shape: [k], distribution",
       "problem.yaml:8:52: parameters[0].shape[0]: unknown symbol \"k\": the sizes do not bind it"},
      {"shape: [n], distribution", "shape: [n - 4], distribution",
       "problem.yaml:8:52: parameters[0].shape[0]: a dimension must be at least 1, not 0 (with sizes.visible[0])"},
      {"shape: [n], distribution", "shape: [n +], distribution",
       "problem.yaml:8:52: parameters[0].shape[0]: expected a number, a symbol or '(' at column 4 of \"n +\", found "
       "its end"},
      {"distribution: normal", "distribution: normall",
       "problem.yaml:8:70: parameters[0].distribution: \"normall\" is not one of normal, uniform, integers, "
       "large_offset, sparse, "
       "permutation, offsets, constant, denormals, extremes, torchscript, source; did you mean \"normal\"?"},
      {"distribution: normal", "distribution: uniform, low: 0",
       "problem.yaml:8:5: parameters[0].high: is missing: the distribution uniform needs it"},
      {"distribution: normal", "distribution: normal, low: 0",
       "problem.yaml:8:5: parameters[0].low: has no meaning for the distribution normal"},
      {"distribution: normal", "distribution: normal, ordinary: 0.5",
       "problem.yaml:8:5: parameters[0].ordinary: has no meaning for the distribution normal"},
      {"distribution: normal", "distribution: denormals, ordinary: 2",
       "problem.yaml:8:5: parameters[0].ordinary: must be in [0, 1]"},
      {"distribution: normal", "distribution: extremes, nans: often",
       "problem.yaml:8:86: parameters[0].nans: expected true or false"},
      {"value: n}", "value: n, range: [5, 2]}",
       "problem.yaml:10:60: parameters[2].range: the lowest value is above the highest"},
      {"timing: {n: 100}", "timing: {n: 100}\n  ranges: {m: [1, 5]}",
       "problem.yaml:15:12: sizes.ranges.m: is no symbol of sizes.timing"},
      {"timing: {n: 100}", "timing: {n: 100}\n  ranges: {n: [0.5, 5]}",
       "problem.yaml:15:15: sizes.ranges.n: expected whole numbers"},
      {"distribution: normal", "distribution: normal, also: sparse",
       "problem.yaml:8:84: parameters[0].also: expected a list of at least one distribution"},
      {"distribution: normal", "distribution: normal, also: [sparse, denormal]",
       "problem.yaml:8:93: parameters[0].also[1]: \"denormal\" is not one of normal, uniform, integers, large_offset, "
       "sparse, permutation, offsets, constant, denormals, extremes, torchscript, source; did you mean \"denormals\"?"},
      {"distribution: normal", "distribution: normal, also: [{distribution: uniform, low: m, high: 1}]",
       "problem.yaml:8:114: parameters[0].also[0].low: unknown symbol \"m\": the sizes do not bind it"},
      {"distribution: normal", "distribution: normal, also: [{low: 0}]",
       "problem.yaml:8:85: parameters[0].also[0].distribution: is missing"},
      {"distribution: normal", "distribution: normal, also: [{distribution: sparse, nans: true}]",
       "problem.yaml:8:85: parameters[0].also[0].nans: has no meaning for the distribution sparse"},
      {"distribution: normal", "distribution: normal, also: [{distribution: sparse, value: 1}]",
       "problem.yaml:8:115: parameters[0].also[0].value: has no meaning for the distribution sparse"},
      {"distribution: normal", "distribution: normal, also: [permutation]",
       "problem.yaml:8:85: parameters[0].also[0].distribution: permutation needs an integer dtype"},
      {"shape: [n]}", "shape: [n], also: [sparse]}",
       "problem.yaml:9:65: parameters[1].also: has no meaning for this role: only inputs and inouts are drawn"},
      {"shape: [n]}", "shape: [n], pitch: n}",
       "problem.yaml:9:66: parameters[1].pitch: needs a shape of at least two dimensions: it is the distance between "
       "rows"},
      {"shape: [n]}", "shape: [1, n], pitch: n - 1}",
       "problem.yaml:9:69: parameters[1].pitch: is 1 less than a row's elements, n (with sizes.visible[0])"},
      {"shape: [n]}", "shape: [1, n], pitch: n + 1}",
       "problem.yaml:9:69: parameters[1].pitch: no scalar passes it to the kernel: add one of an integer dtype with "
       "`value: n + 1`"},
      {"value: n}", "value: n, pitch: n}", "problem.yaml:10:60: parameters[2].pitch: a scalar has no pitch"},
      {"shape: [n]}", "shape: [n], may_alias: y}",
       "problem.yaml:9:70: parameters[1].may_alias: \"y\" is not the name of an input"},
      {"shape: [n]}", "shape: [n + 1], may_alias: x}",
       "problem.yaml:9:74: parameters[1].may_alias: x has another shape or pitch (with sizes.visible[0])"},
      {"role: output, dtype: float32, shape: [n]}", "role: output, dtype: int32, shape: [n], may_alias: x}",
       "problem.yaml:9:68: parameters[1].may_alias: x is float32, out is not"},
      {"distribution: normal", "distribution: normal, may_alias: out",
       "problem.yaml:8:89: parameters[0].may_alias: has no meaning for this role: it belongs to an output"},
      {"value: n}", "value: 3000000000}",
       "problem.yaml:10:50: parameters[2].value: 3000000000 does not fit int32 (with sizes.visible[0])"},
      {"value: n}", "value: 0.5}",
       "problem.yaml:10:50: parameters[2].value: a whole number is needed here (with sizes.visible[0])"},
      {"name: out", "name: x", "problem.yaml:9:5: parameters[1].name: the name \"x\" is used twice"},
      {"name: out", "name: int", "problem.yaml:9:12: parameters[1].name: \"int\" is not a C identifier"},
      {"role: output", "role: input, distribution: normal",
       "problem.yaml:8:3: parameters: no parameter is an output or inout, so there is nothing to judge"},
      {"hidden: [{n: 5}]", "hidden: [{m: 5}]",
       "problem.yaml:13:12: sizes.hidden[0]: binds no value to \"n\", which sizes.timing does\n"
       "problem.yaml:13:12: sizes.hidden[0]: binds \"m\", which sizes.timing does not"},
      {"hidden: [{n: 5}]", "hidden: [{n: 0}]",
       "problem.yaml:13:16: sizes.hidden[0].n: expected a whole number of at least 1"},
      {"shape: [n], distribution: normal", "shape: [n, n, n, n, n, n], distribution: normal",
       "problem.yaml:8:5: parameters[0]: the tensor is larger than 64 GiB at the timing size"},
      {"shape: [n], distribution: normal", "shape: [n, 1000000000], distribution: normal",
       "problem.yaml:8:5: parameters[0]: the tensor is larger than 2 GiB at one of the sizes"},
      {"needs: {bytes: \"8*n\", flops: 0}", "needs: {bytes: \"8*n\"}", "problem.yaml:15:8: needs.flops: is missing"},
      {"traits: [streaming]", "traits: streaming", "problem.yaml:5:9: traits: expected a list"},
      {"needs:", "tolerance: {relative: -1}\nneeds:", "problem.yaml:15:23: tolerance.relative: must not be negative"},
      {"sizes:", "sizes: [",
       "problem.yaml:11:8: not YAML: this bracket is not closed, or a ',' is missing, before line 13, column 3"},
  };
  for (const Mistake& mistake : kMistakes)
    EXPECT_EQ(Errors(With(mistake.from, mistake.to)), mistake.message) << mistake.to;
}

TEST_F(ProblemTest, MissingFilesAndFolders) {
  EXPECT_EQ(Errors("[]"), "problem.yaml:1:1: expected a mapping of keys to values");
  fs::remove(folder_ / "reference.cu");
  EXPECT_EQ(Errors(kGood), "reference.cu: there is no such file");
  EXPECT_THROW(LoadProblem("/no/such/folder"), Error);
}

TEST_F(ProblemTest, AllMistakesAtOnce) {
  const std::string text = Errors(With("family: elementwise\nsplit: train", "famly: x\nsplit: both"));
  EXPECT_NE(text.find("famly"), std::string::npos);
  EXPECT_NE(text.find("split"), std::string::npos);
}

// Whatever happens to the bytes of a good file, the parser answers with a problem or an Error.
TEST_F(ProblemTest, TruncatedAndMutatedFilesAreErrors) {
  const std::string good = kGood;
  for (size_t length = 0; length < good.size(); length += 7)
    EXPECT_NE(Errors(good.substr(0, length)), "none") << length;
  uint64_t state = 1;
  for (int i = 0; i < 300; ++i) {
    std::string text = good;
    for (int edits = 0; edits < 3; ++edits) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text[(state >> 33) % text.size()] = static_cast<char>(state >> 56);
    }
    Errors(text);  // must not crash or throw anything else
  }
}

}  // namespace
}  // namespace kgrpo::evaluator
