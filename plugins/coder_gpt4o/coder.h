// The coder: a request becomes a prompt, the prompt an exchange with the service (or a recorded one), the exchange a
// kernel or the reason why there is none. Made by plugin.cc; tests give it a service of their own.
#pragma once

#include <kgrpo/coder.h>

#include <kgrpo/support/metric_registry.h>
#include "coder_gpt4o/budget.h"
#include "coder_gpt4o/completion_client.h"
#include "coder_gpt4o/job.h"
#include "coder_gpt4o/options.h"
#include "coder_gpt4o/recording.h"
#include "coder_shared/prompt.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::coder_gpt4o {

// The service that answers requests: CompletionClient or a test's. `send` calls back exactly once, later, as
// CompletionClient does. Both functions may be called from any thread.
struct Service {
  std::function<void(CompletionRequest request, std::function<void(Completion)> done)> send;
  std::function<void()> cancel;
  std::string address = {};  // the address that it posts to, for messages
};

// Recordings of exchanges. Recordings to write are opened at the first request: the run's folder exists by then, and a
// command that only checks a configuration creates no file.
struct Recordings {
  std::function<std::shared_ptr<Recording>()> open_run;    // the run's own: written, and read for paid answers
  std::function<std::shared_ptr<Recording>()> open_cache;  // of mode cache: read and written
  std::shared_ptr<Recording> replay;                       // of mode replay: read
  // Recordings of former ranks, if the run was resumed with fewer ranks: this rank counts their spending.
  // Needs open_run.
  std::function<std::vector<std::shared_ptr<Recording>>()> open_former = {};
};

// Callbacks for notices, metrics, and the declarations of other plugins' metrics. Any thread; each may be empty.
struct Reports {
  std::function<void(std::string_view message)> warn;
  std::function<void(std::string_view name, double value)> metric;
  std::function<void(MetricRegistry* names)> read_names = {};  // asked once, when all plugins have declared theirs
};

class Coder {
 public:
  // `service` may be empty in mode replay. It must have no request in flight when this object is destroyed.
  Coder(CoderOptions options, Service service, Recordings recordings, Reports reports);

  // As kgrpo_coder_interface::implement. [any thread]
  void Implement(const kgrpo_coder_request& request, kgrpo_coder_done done);

  // As kgrpo_coder_interface::cancel. [any thread]
  void Cancel();

  // The settings on one readable line: model, address, mode, and the limit of cost. [any thread]
  std::string Describe() const;

  // The request body that would be posted, in readable form: its keys as JSON, then each message. [any thread]
  std::string Describe(const kgrpo_coder_request& request) const;

  // As kgrpo_coder_interface::spending. Includes the run's earlier processes from the first request on. [any thread]
  coder_gpt4o::Spending Spending() const;

 private:
  using JobPointer = std::shared_ptr<Job>;

  const coder_shared::CoderPrompt& Prompt() const;
  void OpenRecordings();
  void CountSpending(Recording& recording);
  nlohmann::json Body(nlohmann::json messages, uint64_t sample) const;
  RecordedRequest RequestOf(const Job& job) const;
  bool UseRecorded(Job& job);
  void Send(const JobPointer& job);
  bool WriteReservation(Job& job, double cost);
  void Receive(const JobPointer& job, Completion completion);
  Leave MaySend(Job& job, const Losses& losses);
  void Waits(Job& job, const Losses& losses);
  void WarnOnce(std::atomic<bool>* told, const std::string& words);
  std::string BudgetMessage(double next) const;
  double MostCost(const Job& job) const;
  double LostCost(const Job& job, const Losses& losses) const;
  void Count(const Job& job, Completion& completion);
  std::string Keep(const Job& job, const RecordedCompletion& exchange, bool keep, bool paid);

  const CoderOptions options_;
  mutable std::once_flag names_read_;
  mutable MetricRegistry names_;
  const coder_shared::CoderPrompt prompt_;  // after names_
  const Service service_;
  const Recordings recordings_;
  const Reports reports_;
  std::once_flag recordings_opened_;
  std::shared_ptr<Recording> run_;     // may be absent
  std::shared_ptr<Recording> source_;  // in modes cache and replay; a cache may be the same as run_
  std::atomic<uint64_t> cancels_{0};
  std::atomic<bool> warned_of_usage_{false}, warned_of_recording_{false}, warned_of_reservations_{false};
  std::atomic<bool> warned_of_long_answers_{false}, warned_of_cut_prompts_{false};
  // The most tokens of an answer: max_tokens, or what a service that ignores it has sent.
  std::atomic<uint64_t> longest_answer_;

  // Held while a request is given to the service and while Cancel counts up, so that Cancel misses no request.
  std::mutex sending_;
  mutable std::mutex mutex_;  // guards the members below; no callback runs under it
  Budget budget_;
  double lost_cost_ = 0;    // the part of the spending for attempts that gave no answer
  uint32_t in_flight_ = 0;  // attempts
};

}  // namespace kgrpo::coder_gpt4o
