// Sends a run's events to its observers (kgrpo/observer.h), each from its own thread. A slow observer delays the run
// only once it is kMostWaiting events behind. Used by loop/run.cc.
#ifndef KGRPO_LOOP_OBSERVERS_H
#define KGRPO_LOOP_OBSERVERS_H

#include "config/pipeline.h"
#include "plugin/parts.h"
#include "store/records.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kgrpo {

// For one thread. An observer that failed receives no more events.
class Observers {
 public:
  // An event is a step with its rounds, a checkpoint, the beginning or the end of the run.
  static constexpr size_t kMostWaiting = 8;

  // The instances of `parts`, made from config.observers, outlive this.
  Observers(const PipelineConfig& config, PipelineParts& parts);
  ~Observers();  // discards events that are not delivered yet
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

  // Reports that the run begins, or resumes after step `done` of `steps`. Waits until all observers have it; throws the
  // first failure.
  void Begin(const PipelineConfig& config, const std::filesystem::path& directory, uint64_t steps, uint64_t done,
             bool resumed);

  // These block while an observer is kMostWaiting events behind. `record` is in the database and no longer changes.
  void Step(std::shared_ptr<const StepRecord> record);
  void Checkpoint(uint64_t step, const std::filesystem::path& directory, double seconds);

  // Waits until all events are delivered.
  void Drain();
  // Throws the failure of the first observer, in the pipeline's order, that has failed.
  void ThrowFailure() const;

  // Reports the run's end: "finished", "stopped" or "failed", and waits until it is delivered. Does nothing before
  // Begin or on a second call. Returns the observers' failures as text; "" where there are none.
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
