// The five plugins within the process, deterministic and fast, for tests of the loop. They are small but complete: the
// policy is a table of logits by problem and technique, the trainer climbs the advantage with momentum, the coder
// applies techniques to a text and answers from threads after delays, the evaluator gives each (problem, technique) its
// speedup.
#ifndef KGRPO_TESTS_LOOP_FAKES_H
#define KGRPO_TESTS_LOOP_FAKES_H

#include "config/pipeline.h"
#include "loop/run.h"
#include "plugin/parts.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::fakes {

extern const kgrpo_policy_interface kPolicy;
extern const kgrpo_coder_interface kCoder;
extern const kgrpo_evaluator_interface kEvaluator;
extern const kgrpo_reward_interface kReward;
extern const kgrpo_trainer_interface kTrainer;

// The techniques that the coder understands.
extern const std::vector<std::string> kTechniques;

// Knobs and counters of the fakes, the same for all instances of the process. Reset by Reset.
struct Knobs {
  std::atomic<uint64_t> delay_seed{0};  // 0: no delays; else delays of up to `delay_microseconds` drawn from it
  std::atomic<int> delay_microseconds{2000};
  std::atomic<int> coder_fails_every{0};        // one request in so many fails, chosen by its content; 0: none
  std::atomic<bool> policy_fails{false};        // those failures are the policy's: it writes the kernels
  std::atomic<double> coder_cost{0};            // US dollars of each answer, which has 1000 tokens per dollar
  std::atomic<double> coder_spent{0};           // the spending that the coder reports, US dollars; 0: it reports none
  std::atomic<double> coder_paid{0};            // of all answers
  std::atomic<bool> coder_accounts{false};      // the coder reports coder_paid
  std::atomic<double> coder_lost{0};            // the part for attempts without an answer
  std::atomic<int> coder_reuses_every{0};       // about one answer in so many comes from a cache; 0: none
  std::atomic<bool> coder_error{false};         // the next request ends with a run-stopping error
  std::atomic<bool> coder_doubts{false};        // every kernel carries a sign that parts of it are left out
  std::atomic<bool> coder_counts{false};        // answers carry a number that no replay would repeat
  std::atomic<bool> cancel_in_thorough{false};  // a user's stop arrives during a thorough evaluation
  std::atomic<bool> thorough_refutes{false};    // thorough evaluation calls every kernel wrong
  std::atomic<bool> policy_has_no_end{false};   // no end token
  std::atomic<int> policy_suggests{-1};         // index of the only technique that the policy names; -1: by its table
  std::atomic<int> not_finite_at{0};        // number of the trainer's update that reports non-finite numbers; 0: none
  std::atomic<int> diverges_at{0};          // number of the trainer's update that leaves weights that are no numbers
  std::atomic<int> reward_fails_after{-1};  // every reward is NaN from so many updates on; -1: none
  std::atomic<double> reward_scale{1};      // of the reward, as an option of a plugin may set it
  std::atomic<bool> forgets_state{false};   // the trainer ignores its saved state
  std::atomic<bool> cancelled{false};
  std::atomic<int> cancel_after_updates{0};  // sets `cancelled` after so many updates
  std::atomic<int> cancel_after_calls{0};    // sets `cancelled` after so many requests to the coder
  std::atomic<int> first_answer_after{0};    // the first answer waits for so many requests; 0: it does not wait
  std::atomic<uint64_t> held_seed{0};        // the seed of the first request
  std::atomic<int> calls_at_first_answer{0};
  std::atomic<int> coder_calls{0};
  std::atomic<int> evaluations{0};
  std::atomic<int> thorough{0};
  std::atomic<int> budget_after_evaluations{0};  // the evaluator's budget, in evaluations; 0: no limit
  std::atomic<int> updates{0};
  // Of each suggestion, by its seed: updates when the policy was asked for it, and when it wrote it.
  std::mutex written_mutex;
  std::map<uint64_t, std::pair<int, int>> written;
  // One evaluation in so many fails, chosen by its content, of problems whose name contains the text; 0: none.
  std::atomic<int> evaluator_fails_every{0};
  std::atomic<const char*> evaluator_fails_for{""};
  std::atomic<int> thorough_fails{0};                    // so many of the next thorough evaluations fail
  std::atomic<int> reward_fails_every{0};                // so for scores, of rounds with a kernel
  std::atomic<double> reward_gives{0};                   // the score where it fails; 0: an error
  std::atomic<int> fault_code{KGRPO_ERROR_UNAVAILABLE};  // of those errors
};
Knobs& knobs();
void Reset();

// Two stages (demonstrations, then rollouts), `problems` training problems and three held-out ones.
PipelineConfig Config(const std::filesystem::path& output, uint64_t demonstration_steps = 3, uint64_t steps = 8);

// Instances for that configuration.
PipelineParts Parts(const PipelineConfig& config);

// An empty folder for a test, below the build folder.
std::filesystem::path Folder(const std::string& name);

// Runs in config.output_dir, new or resumed.
RunOutcome RunIn(const PipelineConfig& config, bool resume = false, FaultPoints faults = {},
                 Console* console = nullptr);

// All samples, evaluations and rewards in the run's database as one text, without times.
std::string Samples(const std::filesystem::path& output);
// The bytes of the final model.
std::string FinalWeights(const std::filesystem::path& output);

}  // namespace kgrpo::fakes
#endif
