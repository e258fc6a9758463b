// One request on its way from the prompt to the one answer that the host gets. Used by coder.cc; one thread at a time.
#pragma once

#include <kgrpo/coder.h>

#include "coder_gpt4o/completion_client.h"  // Completion
#include "coder_gpt4o/recording.h"          // RecordedRequest

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace kgrpo::coder_gpt4o {

struct Job {
  // Takes the exchange's completion, as the service or a recording gave it, and tells the host what it is.
  void Take(const Completion& completion, bool reused);
  // Answers without a kernel.
  void End(kgrpo_coder_outcome outcome, const std::string& message) { Deliver(outcome, {}, message); }
  // Tells the host that the run cannot go on.
  void Fail(kgrpo_error_code code, const std::string& message);
  void Deliver(kgrpo_coder_outcome outcome, const std::string& source, const std::string& message);

  const kgrpo_coder_request& asked;  // lives until the answer is delivered
  const kgrpo_coder_done done;
  const uint64_t cancels;  // how often the coder had been cancelled when the request came
  RecordedRequest request = {};
  double reserved = 0;  // the most that the exchange can cost, set aside
  bool in_flight = false;
  int64_t reservation = 0;     // its number in the run's recording; 0: not recorded
  std::string unwritten = {};  // why the reservation could not be recorded, so that nothing was sent
  Completion answer = {};      // what is told to the host
  double cost = 0;             // of all its attempts
  bool reused = false;         // the answer came from a recording
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

}  // namespace kgrpo::coder_gpt4o
