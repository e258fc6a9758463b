#include "loop/observers.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace kgrpo {
namespace {

void TellRounds(Observer& observer, uint64_t step, const std::vector<TrajectoryRecord>& trajectories, bool heldout) {
  if (observer.api()->round == nullptr) return;
  for (const TrajectoryRecord& trajectory : trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) {
      const kgrpo_coder_answer answer = round.answer.ToC();
      std::optional<EvaluationView> evaluation;
      if (round.evaluation) evaluation.emplace(*round.evaluation);
      kgrpo_round_event event{};
      event.struct_size = sizeof(event);
      event.heldout = heldout ? 1 : 0;
      event.step = step;
      event.trajectory = trajectory.trajectory;
      event.round = round.round;
      event.rounds = trajectory.rounds;
      event.problem = Str(trajectory.problem_name);
      event.suggestion = Str(round.suggestion);
      event.answer = &answer;
      event.evaluation = evaluation ? evaluation->c() : nullptr;
      event.reward = round.reward;
      constexpr double kUntold = std::numeric_limits<double>::quiet_NaN();
      event.returned = round.outcome ? round.outcome->returned : kUntold;
      event.advantage = round.outcome ? round.outcome->advantage : kUntold;
      observer.Round(event);
    }
  }
}

std::vector<kgrpo_metric> ToC(const std::vector<Metric>& metrics) {
  std::vector<kgrpo_metric> c;
  c.reserve(metrics.size());
  for (const Metric& metric : metrics) c.push_back(metric.ToC());
  return c;
}

void TellStep(Observer& observer, const StepRecord& record) {
  TellRounds(observer, record.step, record.trajectories, false);
  TellRounds(observer, record.step, record.heldout, true);
  const std::vector<kgrpo_metric> metrics = ToC(record.metrics);
  std::vector<std::vector<kgrpo_metric>> optimizer_metrics;
  std::vector<kgrpo_metric_row> optimizer_steps;
  optimizer_steps.reserve(record.optimizer_steps.size());
  for (const std::vector<Metric>& row : record.optimizer_steps) optimizer_metrics.push_back(ToC(row));
  for (const std::vector<kgrpo_metric>& row : optimizer_metrics) optimizer_steps.push_back({row.data(), row.size()});
  kgrpo_step_event event{};
  event.struct_size = sizeof(event);
  event.stage = static_cast<uint32_t>(record.stage);
  event.step = record.step;
  event.trainer = Str(record.stage_name);
  event.finished_at = record.finished_at;
  event.metrics = metrics.data();
  event.metric_count = metrics.size();
  event.optimizer_steps = optimizer_steps.data();
  event.optimizer_step_count = optimizer_steps.size();
  observer.Step(event);
}

}  // namespace

// One observer, and the thread that calls it.
class Observers::Worker {
 public:
  Worker(Observer& observer, std::string name)
      : observer_(observer), name_(std::move(name)), thread_([this] { Work(); }) {}

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      waiting_.clear();
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Tell(const Event& event) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.size() < kMostWaiting; });
    waiting_.push_back(event);
    changed_.notify_all();
  }

  void Drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty(); });
  }

  std::optional<Error> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Event event = waiting_.front();
      std::optional<Error> failure = failure_;
      lock.unlock();
      if (!failure) failure = Deliver(event);
      lock.lock();
      failure_ = failure;
      if (!waiting_.empty()) waiting_.pop_front();  // removed only after delivery, so that Drain waits for it
      changed_.notify_all();
    }
  }

  std::optional<Error> Deliver(const Event& event) {
    try {
      event(observer_);
      return {};
    } catch (const Error& error) {
      return Error(error.code(), name_ + ": " + error.what());
    } catch (const std::exception& error) {
      return Error(KGRPO_ERROR_INTERNAL, name_ + ": " + error.what());
    }
  }

  Observer& observer_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> waiting_;
  std::optional<Error> failure_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

Observers::Observers(const PipelineConfig& config, PipelineParts& parts) {
  for (size_t i = 0; i < parts.observers.size(); ++i) {
    const std::string name = "observers[" + std::to_string(i) + "] (" + config.observers.at(i).plugin + ")";
    workers_.push_back(std::make_unique<Worker>(*parts.observers[i], name));
  }
}

Observers::~Observers() = default;

void Observers::Begin(const PipelineConfig& config, const std::filesystem::path& directory, uint64_t steps,
                      uint64_t done, bool resumed) {
  begun_ = true;
  Tell([&config, folder = std::filesystem::absolute(directory).string(), steps, done, resumed](Observer& observer) {
    kgrpo_run_info run{};
    run.struct_size = sizeof(run);
    run.name = Str(config.name);
    run.directory = Str(folder);
    run.pipeline = Str(config.resolved_yaml);
    run.seed = config.seed;
    run.steps = steps;
    run.done = done;
    run.resumed = resumed ? 1 : 0;
    observer.Begin(run);
  });
  Drain();
  ThrowFailure();
}

void Observers::Step(std::shared_ptr<const StepRecord> record) {
  Tell([record = std::move(record)](Observer& observer) { TellStep(observer, *record); });
}

void Observers::Checkpoint(uint64_t step, const std::filesystem::path& directory, double seconds) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Tell([step, folder = std::filesystem::absolute(directory).string(), seconds, now](Observer& observer) {
    observer.Checkpoint({sizeof(kgrpo_checkpoint_event), step, Str(folder), seconds, now});
  });
}

void Observers::Drain() {
  for (const std::unique_ptr<Worker>& worker : workers_) worker->Drain();
}

void Observers::ThrowFailure() const {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (const std::optional<Error> failure = worker->failure()) throw Error(*failure);
  }
}

std::string Observers::End(const std::string& outcome) {
  if (!std::exchange(begun_, false)) return "";
  Tell([outcome](Observer& observer) { observer.End(outcome); });
  Drain();
  std::string failures;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (const std::optional<Error> failure = worker->failure()) {
      failures += (failures.empty() ? "" : "; ") + std::string(failure->what());
    }
  }
  return failures;
}

void Observers::Tell(const Event& event) {
  for (const std::unique_ptr<Worker>& worker : workers_) worker->Tell(event);
}

}  // namespace kgrpo
