// One request on its way from the prompt to the answer: its exchanges with the service (more than one where an answer
// is continued), what they took, and the one answer that the host gets. Used by coder.cc; one thread at a time.
#ifndef KGRPO_CODER_GPT4O_JOB_H
#define KGRPO_CODER_GPT4O_JOB_H

#include <kgrpo/coder.h>

#include "coder_gpt4o/completion_client.h"  // Completion
#include "coder_gpt4o/recording.h"          // RecordedRequest

#include <chrono>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {

class Job {
 public:
  // `request` lives until the answer is delivered. `unmeasured`: the prompt's messages without measurements. `cancels`:
  // how often the coder had been cancelled by now.
  Job(const kgrpo_coder_request& request, nlohmann::json prompt, nlohmann::json unmeasured, uint32_t continuations,
      uint64_t cancels, kgrpo_coder_done done);

  const kgrpo_coder_request& asked() const { return asked_; }
  nlohmann::json Messages() const { return WithTheRest(prompt_); }
  nlohmann::json UnmeasuredMessages() const { return WithTheRest(unmeasured_); }
  uint64_t sample() const { return asked_.seed; }
  uint64_t cancels() const { return cancels_; }

  // Of the exchange that is next or in flight; the coder's own.
  RecordedRequest request;
  double reserved = 0;      // the most that it can cost
  int64_t reservation = 0;  // its number in the run's recording; 0: it stands in none
  std::string unwritten;    // why it was not sent: it could not be written down
  double lost_cost = 0;     // of the job's cost so far: for attempts that gave no answer

  // Takes what an exchange gave, and what it cost. `reused`: the service was not asked for it. True: the answer was cut
  // off, and the messages ask for the rest now. False: the host has its answer.
  bool Take(const Completion& completion, double cost, bool reused);

  // Takes what attempts cost that gave no answer, of an exchange that is made again.
  void Lose(const Completion& completion, double cost);

  // Answers without a kernel.
  void End(kgrpo_coder_outcome outcome, const std::string& message);
  // Tells the host that the run cannot go on.
  void Fail(kgrpo_error_code code, const std::string& message);

 private:
  nlohmann::json WithTheRest(nlohmann::json messages) const;
  void Deliver(kgrpo_coder_outcome outcome, const std::string& source, const std::string& message);

  const kgrpo_coder_request& asked_;
  const nlohmann::json prompt_, unmeasured_;
  nlohmann::json rest_ = nlohmann::json::array();  // the messages that ask for the rest of an answer
  uint32_t continuations_;                         // that are left
  const uint64_t cancels_;
  const kgrpo_coder_done done_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  std::string text_;  // the answer so far
  uint64_t prompt_tokens_ = 0, completion_tokens_ = 0;
  double cost_ = 0;
  uint32_t attempts_ = 0;
  bool reused_ = false;      // some of it was there already
  bool asked_anew_ = false;  // the service was asked for some of it
  bool estimated_ = false;   // the service did not tell all of its tokens, or what it takes for attempts without answer
};

}  // namespace kgrpo::coder_gpt4o

#endif
