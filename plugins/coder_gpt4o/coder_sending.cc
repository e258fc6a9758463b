// Of coder.h: what goes to the service, what of it is held back for its cost, what comes back and what that has cost.
#include "coder_gpt4o/coder.h"
#include "coder_gpt4o/job.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace kgrpo::coder_gpt4o {
namespace {

std::string Dollars(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "$%.4g", value);
  return text;
}

}  // namespace

void Coder::Hold(const JobPointer& job) {
  {
    std::unique_lock lock(mutex_);
    if (job->cancels() != cancels_) {
      lock.unlock();
      return job->End(KGRPO_CODER_FAILED, "cancelled");
    }
    held_.push_back(job);
  }
  SendHeld();
}

// False: all was cancelled before it was sent.
bool Coder::Send(const JobPointer& job) {
  const std::lock_guard lock(sending_);
  if (job->cancels() != cancels_) return false;
  service_.send({job->request.body, TokensAtMost(job->request.body) + options_.max_tokens},
                [this, job](Completion completion) { Receive(job, std::move(completion)); });
  return true;
}

// Sends what is held as far as the most that it can cost fits beside the calls in flight. Where there are none to wait
// for, the budget is at its end.
void Coder::SendHeld() {
  std::deque<JobPointer> ready, refused;
  {
    const std::lock_guard lock(mutex_);
    while (!held_.empty()) {
      Job& job = *held_.front();
      job.reserved = options_.price.Of(TokensAtMost(job.request.body), options_.max_tokens);
      if (budget_.Reserve(job.reserved)) {
        ready.push_back(std::move(held_.front()));
        held_.pop_front();
      } else if (budget_.calls() > 0) {
        break;
      } else {
        refused.swap(held_);
      }
    }
    for (size_t i = 0, held = refused.size(); i < held; ++i) {
      for (const JobPointer& other : StopWaitingFor(refused[i])) refused.push_back(other);
    }
  }
  bool again = false;  // there is room that nobody's answer will tell of
  for (const JobPointer& job : ready) {
    if (Send(job)) continue;
    {
      const std::lock_guard lock(mutex_);
      budget_.Settle(job->reserved, 0);
    }
    job->End(KGRPO_CODER_FAILED, "cancelled");
    again = true;
  }
  for (const JobPointer& job : refused) {
    job->Fail(KGRPO_ERROR_BUDGET,
              "the coder has cost " + Dollars(spent()) + " of max_cost " + Dollars(*options_.max_cost) +
                  ", and the next call could cost " + Dollars(job->reserved) +
                  " (to go on, raise coder.options.max_cost: of a run that is resumed, in its resolved.yaml)");
  }
  if (again) SendHeld();
}

// What attempts that gave no answer may have been billed: each its prompt, and the text that came of them; where none
// came, as much as may have been thought.
double Coder::LostCost(const Job& job, const Completion& completion) const {
  const uint64_t attempts = completion.lost_attempts, silent = completion.lost_silent;
  if (attempts == 0) return 0;
  const uint64_t heard = std::min(TokensAtMost(completion.lost_bytes), (attempts - silent) * options_.max_tokens);
  return options_.price.Of(attempts * TokensAtMost(job.request.body), heard + silent * options_.max_tokens);
}

// On the service's thread.
void Coder::Receive(const JobPointer& job, Completion completion) {
  const bool answered = completion.outcome == Completion::Outcome::kAnswered;
  if (answered && !completion.usage_known) {
    completion.prompt_tokens = TokensAtMost(job->request.body);
    completion.completion_tokens = TokensAtMost(completion.text);
    if (reports_.warn && !warned_of_usage_.exchange(true))
      reports_.warn("the service does not say how many tokens it used: they and their cost are estimated by length");
  }
  const double lost = LostCost(*job, completion);
  const double cost = options_.price.Of(completion.prompt_tokens, completion.completion_tokens) + lost;
  const bool keep = answered || completion.outcome == Completion::Outcome::kFailed;
  std::string unkept;
  if (keep || cost > 0) unkept = Keep(*job, {completion, cost}, keep, /*paid=*/true);
  std::vector<JobPointer> waiting;
  {
    const std::lock_guard lock(mutex_);
    budget_.Settle(job->reserved, cost);
    waiting = StopWaitingFor(job);
  }
  if (answered && reports_.metric) {
    reports_.metric("coder/answer_seconds", completion.answer_seconds);
    reports_.metric("coder/attempts", completion.attempts);
  }
  if (reports_.metric && options_.price_known) reports_.metric("coder/lost_cost", lost);
  if (!unkept.empty() && options_.max_cost) {
    waiting.push_back(job);
    for (const JobPointer& one : waiting) {
      one->Fail(KGRPO_ERROR_UNAVAILABLE,
                "what the coder costs cannot be kept in " + run_->file().string() + " (" + unkept +
                    "), and without it a resumed run would spend more than max_cost: make room, then resume");
    }
    return SendHeld();
  }
  Use(job, completion, cost);
  for (const JobPointer& other : waiting) Use(other, completion, 0);
  SendHeld();
}

}  // namespace kgrpo::coder_gpt4o
