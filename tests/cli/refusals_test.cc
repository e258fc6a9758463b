// `check` finds a fault exactly if `run` refuses, in the same words. A table of pipelines, most of them broken, goes
// through both commands.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Result;

struct Row {
  const char* name;
  const char* file;       // appended to "extends: p.yaml"; "!" first: the whole file
  const char* arguments;  // after the file, of both commands
  bool refused = true;
};

// "imitates" begins a file whose first stage imitates a run.
#define IMITATES "trainer:\n  - {plugin: trainer_sft, steps: 1, demonstrations: {from: ["
#define THEN_TRAINS "]}}\n  - {plugin: fakes, steps: 1}\n"

constexpr Row kRows[] = {
    // Pipelines that run.
    {"plain", "", "", false},
    {"held_out_measured", "evaluation: {every: 1, episodes: 1}\n", "", false},
    {"unused_held_out_is_wrong", "problems: {train: [problems/one], heldout: [other/wrong]}\n", "", false},
    {"unusable_left_out", "problems: {train: [problems/one, other/wrong], heldout: [], skip_unusable: true}\n", "",
     false},
    {"replays", "loop: {replay: {from: [runs/before]}}\n", "", false},
    {"imitates", IMITATES "runs/before" THEN_TRAINS, "", false},
    {"one_variant", "variants: {a: {loop.rounds: 1}, b: {loop.rounds: 3}}\n", "--variant a", false},
    // The file.
    {"no_file", "!", "", true},
    {"unknown_key", "looop: {}\n", ""},
    {"wrong_type", "loop: {rounds: x}\n", ""},
    {"out_of_range", "loop: {rounds: 0}\n", ""},
    {"syntax", "loop: {rounds: 2\n", ""},
    {"key_twice", "seed: 1\nseed: 2\n", ""},
    {"empty_file", "!# nothing\n", ""},
    {"list_for_a_mapping", "!- 1\n", ""},
    {"missing_part", "!policy: {plugin: fakes, options: {model: random}}\nproblems: {train: [problems/one]}\n", ""},
    {"missing_base", "!extends: nothing.yaml\n", ""},
    {"circle_of_bases", "!extends: broken.yaml\n", ""},
    {"observers_no_list", "observers: 3\n", ""},
    {"not_divisible", "loop: {trajectories_per_problem: 3}\n", ""},
    {"shuffle_of_one", "controls: {shuffle_prompts: true}\n", ""},
    {"rounds_of_a_step", "loop: {batch_size: 1000000}\n", ""},
    {"rounds_of_a_warm_start", "", "--set trainer.suggestions=uniform --set trainer.episodes=900000"},
    {"rounds_of_a_measurement", "evaluation: {every: 1, episodes: 900000}\n", ""},
    {"nothing_to_measure", "evaluation: {every: 1}\nproblems: {heldout: []}\n", ""},
    {"unknown_variable", "prompt: {user: '{{problem.nmae}}'}\n", ""},
    {"open_section", "prompt: {user: '{{#history}}'}\n", ""},
    {"steps_twice", "trainer: {plugin: fakes, steps: 2}\n", "--set loop.max_steps=3"},
    {"uniform_without_episodes", "trainer: {plugin: fakes, suggestions: uniform}\n", ""},
    {"episodes_without_uniform", "trainer: {plugin: fakes, episodes: 4}\n", ""},
    // --set and --variant.
    {"setting_without_value", "", "--set seed"},
    {"setting_of_no_key", "", "--set looop.rounds=2"},
    {"setting_of_wrong_type", "", "--set seed=x"},
    {"variant_of_one_run", "", "--variant zzz"},
    {"variant_unknown", "variants: {a: {seed: 1}, b: {seed: 2}}\n", "--variant zzz"},
    {"variant_changes_nothing", "variants: {a: {loop.rounds: 1}, b: {loop.rounds: 1}}\n", ""},
    {"variant_of_no_key", "variants: {a: {looop.rounds: 1}, b: {loop.rounds: 1}}\n", ""},
    {"variant_plan", "variants: {a: {loop.rounds: 1}, b: {trainer.options.learning_rate: 1.0e-9}}\n", ""},
    {"variant_part",
     "variants: {a: {loop.rounds: 1}, b: {reward: {plugin: reward_expression, options: {score: '1 +'}}}}\n", ""},
    {"several_runs_with_bad_settings", "variants: {a: {loop.rounds: 1}, b: {loop.rounds: 3}}\n", "--set seed=x"},
    // Plugins and their options.
    {"no_plugin", "coder: {plugin: coder_nobody}\n", ""},
    {"other_role", "coder: {plugin: trainer_sft}\n", ""},
    {"unknown_option", "reward: {options: {corect: 1}}\n", ""},
    {"option_of_wrong_type", "reward: {options: {correct: x}}\n", ""},
    {"no_model", "policy: {options: {model: /nowhere}}\n", ""},
    {"formula", "reward: {plugin: reward_expression, options: {score: '1 + speedupp'}}\n", ""},
    {"formula_of_no_metric", "reward: {plugin: reward_expression, options: {score: 'metric(\"commentz\")'}}\n", ""},
    {"no_program", "reward: {plugin: reward_program, options: {command: [./nothing]}}\n", ""},
    {"observer_cannot_write", "observers: [{plugin: fakes, options: {file: /proc/x/y}}]\n", ""},
    {"trainer_refuses_its_plan", "trainer: {plugin: fakes, options: {learning_rate: 1.0e-9}}\n", ""},
    {"imitation_of_nothing", "trainer: [{plugin: trainer_sft, steps: 1}, {plugin: fakes, steps: 1}]\n", ""},
    {"demonstrations_for_a_climber", "trainer: {plugin: fakes, demonstrations: {from: [runs/before]}}\n", ""},
    // Problems.
    {"no_folder", "problems: {train: [problems/none]}\n", ""},
    {"empty_pattern", "problems: {train: ['nothing/*']}\n", ""},
    {"in_both_lists", "problems: {train: [problems/one], heldout: [problems/one]}\n", ""},
    {"same_name", "problems: {train: [problems/one, other/one]}\n", ""},
    {"no_reference", "problems: {train: [problems/one, other/none]}\n", ""},
    {"reference_is_wrong", "problems: {train: [problems/one, other/wrong]}\n", ""},
    {"reference_does_not_compile", "problems: {train: [problems/one, other/error]}\n", ""},
    {"all_left_out", "problems: {train: [other/wrong, other/error], skip_unusable: true}\n", ""},
    {"measured_is_wrong", "problems: {train: [problems/one], heldout: [other/wrong]}\nevaluation: {every: 1}\n", ""},
    {"no_room", "prompt: {user: '{{code_b}}'}\nproblems: {train: [other/long]}\n", ""},
    {"no_room_for_the_measured",
     "prompt: {user: '{{code_b}}'}\nproblems: {train: [problems/one], heldout: [other/long]}\nevaluation: {every: 1}\n",
     ""},
    // Records of other runs.
    {"replay_missing", "loop: {replay: {from: [runs/none]}}\n", ""},
    {"replay_without_run", "loop: {replay: {from: [problems]}}\n", ""},
    {"replay_of_another_program", "loop: {replay: {from: [runs/foreign]}}\n", ""},
    {"replay_of_an_empty_record", "loop: {replay: {from: [runs/empty]}}\n", ""},
    {"demonstrations_missing", IMITATES "runs/none" THEN_TRAINS, ""},
    {"demonstrations_without_run", IMITATES "problems" THEN_TRAINS, ""},
    {"demonstrations_of_another_program", IMITATES "runs/foreign" THEN_TRAINS, ""},
    {"demonstrations_of_other_prompts", IMITATES "runs/before" THEN_TRAINS "prompt: {user: other}\n", ""},
    {"demonstrations_of_other_problems",
     IMITATES "runs/before" THEN_TRAINS "problems: {train: [other/third], heldout: []}\n", ""},
    {"demonstrations_too_long", IMITATES "runs/before" THEN_TRAINS "loop: {sampling: {max_new_tokens: 1}}\n", ""},
    {"later_demonstrations_missing",
     "trainer:\n  - {plugin: fakes, steps: 1}\n"
     "  - {plugin: trainer_sft, steps: 1, demonstrations: {from: [runs/none]}}\n",
     ""},
    // The run's folder.
    {"folder_cannot_be_made", "output_dir: /proc/x\n", ""},
    {"folder_of_others", "output_dir: problems\n", ""},
    {"folder_of_a_finished_run", "output_dir: runs/before\n", ""},
    {"folder_of_another_program", "output_dir: runs/foreign\n", ""},
};

class RefusalsTest : public CliTest, public testing::WithParamInterface<Row> {
 protected:
  RefusalsTest() {
    for (const auto& [name, text] : std::map<std::string, std::string>{{"wrong", "void launch() {} // wrong\n"},
                                                                       {"error", "#error\n"},
                                                                       {"one", "void launch() {}\n"},
                                                                       {"third", "void launch() {} // third\n"},
                                                                       {"long", std::string(5000, 'x') + "\n"}})
      Write("other/" + name + "/reference.cu", text);
    fs::create_directories(directory_.path() / "other/none");
    test::Write(directory_.path() / "runs/foreign/run.sqlite", "");
    Database foreign(directory_.path() / "runs/foreign/run.sqlite");
    foreign.Execute("CREATE TABLE other (a); PRAGMA user_version = 4000");
    test::Write(directory_.path() / "runs/empty/run.sqlite", "");
  }
};

TEST_P(RefusalsTest, CheckFindsWhatRunRefuses) {
  const Row& row = GetParam();
  const std::string text = row.file;
  const bool uses_before = (text + row.arguments).find("runs/before") != std::string::npos;
  if (uses_before) {
    const Result before = Run(
        "eval policy p.yaml --policy uniform --out runs/before --episodes 2 --set 'problems.heldout=[problems/one]' "
        "--set 'problems.train=[problems/two]'");
    ASSERT_EQ(before.code, 0) << before.err;
  }
  Write("p.yaml", test::Read(directory_.path() / "p.yaml") + "\noutput_dir: runs/new\n");
  if (text.starts_with("!"))
    Write(text == "!" ? "other.yaml" : "broken.yaml", text.substr(1));
  else
    Write("broken.yaml", "extends: p.yaml\n" + text);
  const std::string arguments = std::string(" broken.yaml --set loop.max_steps=1 ") + row.arguments;
  const bool steps = text.find("steps:") != std::string::npos || text.starts_with("!");
  const std::string given = steps ? std::string(" broken.yaml ") + row.arguments : arguments;

  const Result check = Run("check" + given);
  EXPECT_FALSE(fs::exists(directory_.path() / "runs/new")) << "checking leaves nothing behind";
  const Result run = Run("--quiet run" + given);
  EXPECT_EQ(run.code != 0, row.refused) << run.out << run.err;
  EXPECT_EQ(check.code != 0, row.refused) << check.out << check.err;
  if (!row.refused) return;
  EXPECT_FALSE(fs::exists(directory_.path() / "runs/new/run.sqlite")) << "refused before the run has a folder";
  EXPECT_THAT(run.code, AnyOf(3, 4)) << run.err;
  const std::string said = run.err.starts_with("error: ") ? run.err.substr(7) : run.err;
  EXPECT_THAT(check.err + check.out, HasSubstr(said)) << "in the same words";
}

INSTANTIATE_TEST_SUITE_P(All, RefusalsTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(CliTest, AVariantThatTheFileLacksIsRefusedByAShortCheckToo) {
  EXPECT_EQ(Run("check p.yaml --variant zzz --file-only").code, 3);
}

TEST_F(CliTest, JobsOfOneRunAreRefused) {
  const Result run = Run("run p.yaml --jobs 4");
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("--jobs: p.yaml describes one run"));
}

}  // namespace
}  // namespace kgrpo
