// A run's folder is unchanged, byte for byte, if another run in it cannot start, with --overwrite too. Tried with a
// broken pipeline file, model, problem and plugin.
#include "base/directories.h"
#include "host_binary.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::Read;
using test::Result;
using test::RunHost;
using test::Tree;
using test::Write;

const char* const kPipeline =
    "seed: 5\n"
    "policy: {plugin: fakes, options: {model: random}}\n"
    "coder: {plugin: fakes}\nevaluator: {plugin: fakes}\nreward: {plugin: fakes}\ntrainer: {plugin: fakes}\n"
    "problems: {train: ['problems/*']}\n"
    "loop: {max_steps: 2, batch_size: 2, rounds: 2, sampling: {max_new_tokens: 6}}\n"
    "prompt: {user: 'improve {{problem.name}}'}\n"
    "checkpoint: {every: 1}\n"
    "output_dir: kept\n";

class KeptRun : public testing::Test {
 protected:
  KeptRun() {
    Write(Path("problems/one/reference.cu"), "void launch() {}\n");
    Write(Path("p.yaml"), kPipeline);
  }

  fs::path Path(const std::string& file) const { return directory_.path() / file; }
  Result Run(const std::string& arguments) { return RunHost(directory_.path(), arguments); }

  // Starts `file` in the folder of the run, without and with --overwrite: neither may change it. Returns what the
  // second said.
  Result TryIn(const std::string& file) {
    const std::map<std::string, std::string> before = Tree(Path("kept"));
    EXPECT_GT(before.size(), 10U);
    EXPECT_EQ(Run("-q run " + file).code, 3) << file;
    EXPECT_EQ(Tree(Path("kept")), before) << file;
    const Result result = Run("-q run " + file + " --overwrite");
    EXPECT_EQ(result.code, 3) << file;
    EXPECT_EQ(Tree(Path("kept")), before) << file << " with --overwrite";
    return result;
  }

  // Tries every broken thing.
  void TryAll() {
    EXPECT_EQ(Run("-q run p.yaml --set output_dir=kept/run.json").code, 3);
    Write(Path("file.yaml"), "extends: p.yaml\nloop: {rounds: none}\n");
    EXPECT_THAT(TryIn("file.yaml").err, HasSubstr("file.yaml:2:16: loop.rounds: "));
    Write(Path("plugin.yaml"), "extends: p.yaml\nreward: {plugin: nothing}\n");
    EXPECT_THAT(TryIn("plugin.yaml").err, HasSubstr("there is no plugin \"nothing\""));

    Write(Path("control.yaml"), "extends: p.yaml\ncontrols: {shuffle_prompts: true}\n");
    EXPECT_THAT(TryIn("control.yaml").err, HasSubstr("controls.shuffle_prompts needs two problems in a step"));
    Write(Path("context.yaml"), "extends: p.yaml\nprompt: {user: '" + std::string(5000, 'x') + "'}\n");
    EXPECT_THAT(TryIn("context.yaml").err, HasSubstr("so there is no room for a completion"));

    const fs::path golden = fs::path(KGRPO_SOURCE_DIR) / "tests/golden/policy/qwen2";
    fs::create_directory(Path("model"));
    for (const auto& entry : fs::directory_iterator(golden)) {
      if (entry.is_regular_file()) fs::copy(entry.path(), Path("model"), fs::copy_options::overwrite_existing);
    }
    fs::resize_file(Path("model/model.safetensors"), fs::file_size(golden / "model.safetensors") - 100);
    Write(Path("model.yaml"), "extends: p.yaml\npolicy: {plugin: policy_qwen, options: {model: model}}\n");
    EXPECT_THAT(TryIn("model.yaml").err, HasSubstr("the file is truncated; copy or download it again\n"));

    Write(Path("bad/two/reference.cu"), "#error\n");
    Write(Path("problem.yaml"), "extends: p.yaml\nproblems: {train: ['problems/*', 'bad/*']}\n");
    EXPECT_EQ(TryIn("problem.yaml").err, "error: two: the reference kernel does not compile\n");
    Write(Path("heldout.yaml"), "extends: p.yaml\nproblems: {heldout: ['bad/*']}\nevaluation: {every: 1}\n");
    EXPECT_EQ(TryIn("heldout.yaml").err, "error: two: the reference kernel does not compile\n");
    Write(Path("real/three/problem.yaml"), "name: three\n");
    Write(Path("real/three/reference.cu"), "extern \"C\" void launch() {}\n");
    Write(Path("real.yaml"), "extends: p.yaml\nevaluator: {plugin: evaluator_sim}\nproblems: {train: ['real/*']}\n");
    EXPECT_THAT(TryIn("real.yaml").err, HasSubstr("problem.yaml:1:1: parameters: is missing"));
    fs::remove_all(Path("model"));
  }

  TemporaryDirectory directory_;
};

TEST_F(KeptRun, Finished) {
  ASSERT_EQ(Run("-q run p.yaml").code, 0) << Read(Path("err"));
  TryAll();
  EXPECT_THAT(TryIn("p.yaml --set seed=x").err, HasSubstr("seed"));
  EXPECT_EQ(Run("-q run p.yaml --overwrite").code, 0) << "what can start replaces it";
}

// Each command that reads a run says it in the same words.
TEST_F(KeptRun, WithAnEmptiedRecord) {
  ASSERT_EQ(Run("-q run p.yaml").code, 0) << Read(Path("err"));
  Write(Path("kept/run.sqlite"), "");
  for (const char* command : {"report kept", "compare kept", "export kept", "resume kept", "run p.yaml"}) {
    const Result result = Run(command);
    EXPECT_EQ(result.code, 3) << command;
    EXPECT_THAT(result.err, HasSubstr("kept/run.sqlite is empty: the run's samples, metrics and costs are lost, and"))
        << command;
  }
}

TEST_F(KeptRun, Unfinished) {
  ASSERT_EQ(Run("-q run p.yaml").code, 0) << Read(Path("err"));
  fs::remove_all(Path("kept/final"));
  fs::remove_all(Path("kept/checkpoints/step-2"));
  TryAll();
  EXPECT_EQ(Run("-q resume kept").code, 0);
  EXPECT_TRUE(fs::exists(Path("kept/final/logits.bin")));
}

}  // namespace
}  // namespace kgrpo
