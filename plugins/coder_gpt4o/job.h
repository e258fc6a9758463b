// One request on its way from the prompt to the answer: its exchanges with the service (more than one where an answer
// is continued), what they took, and the one answer that the host gets. Used by coder.cc; one thread at a time.
#pragma once

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
  // `request` must live until the answer is delivered. `unmeasured`: the prompt's messages without measurements.
  // `cancels`: how often the coder has been cancelled so far.
  Job(const kgrpo_coder_request& request, nlohmann::json prompt, nlohmann::json unmeasured, uint32_t continuations,
      uint64_t cancels, kgrpo_coder_done done);

  const kgrpo_coder_request& asked() const { return asked_; }
  nlohmann::json Messages() const { return WithTheRest(prompt_); }
  nlohmann::json UnmeasuredMessages() const { return WithTheRest(unmeasured_); }
  uint64_t sample() const { return asked_.seed; }
  uint64_t cancels() const { return cancels_; }

  // State of the exchange that is next or in flight. Only the coder uses these.
  RecordedRequest request;
  double reserved = 0;      // the most that the exchange can cost
  int64_t reservation = 0;  // its number in the run's recording; 0: not recorded
  std::string unwritten;    // why the reservation could not be recorded, so that nothing was sent
  double lost_cost = 0;     // the part of the job's cost for attempts that gave no answer

  // Takes the result and the cost of an exchange. `reused`: it came from a recording. Returns true if the answer was
  // cut off; the messages then ask for the rest. Returns false once the host has its answer.
  bool Take(const Completion& completion, double cost, bool reused);

  // Adds the cost of lost attempts of an exchange that will be repeated.
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
  uint32_t continuations_;                         // further requests allowed
  const uint64_t cancels_;
  const kgrpo_coder_done done_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  std::string text_;  // the answer so far
  uint64_t prompt_tokens_ = 0, completion_tokens_ = 0;
  double cost_ = 0;
  uint32_t attempts_ = 0;
  bool reused_ = false;      // a part came from a recording
  bool asked_anew_ = false;  // a part came from the service
  bool estimated_ = false;   // some token counts are unknown, or lost attempts may be billed
};

}  // namespace kgrpo::coder_gpt4o
