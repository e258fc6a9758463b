// An observer plugin, created as by the host, in a test's folder, with helpers that send it events.
#ifndef KGRPO_TESTS_OBSERVER_OBSERVED_H
#define KGRPO_TESTS_OBSERVER_OBSERVED_H

#include <kgrpo/observer.h>
#include <kgrpo/sdk/text.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/directories.h"
#include "base/services.h"
#include "plugin/instances.h"
#include "plugin/loader.h"

namespace kgrpo::test {

class Observed {
 public:
  explicit Observed(const std::string& plugin) : loader_({KGRPO_BINARY_DIR "/lib/kgrpo"}), library_(plugin) {}

  // Begins a run of ten steps, or resumes it after `done` steps. Ends the previous run.
  void Begin(const nlohmann::json& options, uint64_t done = 0, bool resumed = false) {
    const PluginLibrary& library = loader_.Load(library_);
    observer_.emplace(library.Table<kgrpo_observer_interface>(Role::kObserver), services_.ForInstance("observers[0]"),
                      options);
    const std::string directory = folder();
    kgrpo_run_info run{};
    run.struct_size = sizeof(run);
    run.name = Str("a run");
    run.directory = Str(directory);
    run.pipeline = Str("name: a run\n");
    run.steps = 10;
    run.done = done;
    run.resumed = resumed ? 1 : 0;
    observer_->Begin(run);
  }

  // Sends a round of the second of three trajectories. `evaluation` may be NULL.
  void Round(uint64_t step, const kgrpo_evaluation* evaluation, const std::string& suggestion = "tile it") {
    kgrpo_coder_answer answer{};
    answer.struct_size = sizeof(answer);
    answer.outcome = evaluation != nullptr ? KGRPO_CODER_OK : KGRPO_CODER_NOT_APPLICABLE;
    answer.cost = 0.25;
    kgrpo_round_event event{};
    event.struct_size = sizeof(event);
    event.step = step;
    event.trajectory = 1;
    event.round = 2;
    event.rounds = 3;
    event.problem = Str("matmul");
    event.suggestion = Str(suggestion);
    event.answer = &answer;
    event.evaluation = evaluation;
    event.reward = 1.5;
    event.returned = event.advantage = std::nan("");
    observer_->Round(event);
  }

  void Step(uint64_t step, const std::vector<std::pair<std::string, double>>& metrics) {
    std::vector<kgrpo_metric> c;
    for (const auto& [name, value] : metrics) c.push_back(Measured(name, value));
    kgrpo_step_event event{};
    event.struct_size = sizeof(event);
    event.stage = 1;
    event.step = step;
    event.trainer = Str("trainer_grpo");
    event.finished_at = 1700000000.5;
    event.metrics = c.data();
    event.metric_count = c.size();
    observer_->Step(event);
  }

  void Checkpoint(uint64_t step, double seconds) {
    observer_->Checkpoint({sizeof(kgrpo_checkpoint_event), step, Str("/checkpoint"), seconds, 0});
  }

  std::filesystem::path folder() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
  HostServices services_{HostOptions()};
  PluginLoader loader_;
  std::string library_;
  std::optional<Observer> observer_;
};

}  // namespace kgrpo::test
#endif
