// Tells the observers of a run (kgrpo/observer.h) what happens in it, each from a thread of its own: a slow one delays
// neither the run nor the others, until it is kMostWaiting events behind. Used by loop/run.cc.
#ifndef KGRPO_LOOP_OBSERVERS_H
#define KGRPO_LOOP_OBSERVERS_H

#include "config/pipeline.h"
#include "loop/parts.h"
#include "store/records.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kgrpo {

// One thread calls it. An observer that failed is told nothing more.
class Observers {
 public:
  // An event is a step with its rounds, a checkpoint, the beginning or the end of the run.
  static constexpr size_t kMostWaiting = 8;

  // The instances of `parts`, made from config.observers, outlive this.
  Observers(const PipelineConfig& config, PipelineParts& parts);
  ~Observers();  // what was not told yet is told to nobody
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

  // The run begins, or goes on after the step `done` of `steps`. Waits until all were told; throws the first failure.
  void Begin(const PipelineConfig& config, const std::filesystem::path& directory, uint64_t steps, uint64_t done,
             bool resumed);

  // These wait while an observer has too many events to hear of. `record` is recorded, and changes no more.
  void Step(std::shared_ptr<const StepRecord> record);
  void Checkpoint(uint64_t step, const std::filesystem::path& directory, double seconds);

  // Waits until everything was told.
  void Drain();
  // Throws the failure of the first observer, in the pipeline's order, that has failed.
  void ThrowFailure() const;

  // The run's end: "finished", "stopped" or "failed". Waits until it was told; nobody is told twice, or without a
  // beginning. Returns the failures, for a person; "" where there is none.
  std::string End(const std::string& outcome);

 private:
  class Worker;
  using Event = std::function<void(Observer& observer)>;

  void Tell(const Event& event);

  std::vector<std::unique_ptr<Worker>> workers_;
  bool begun_ = false;
};

}  // namespace kgrpo
#endif
