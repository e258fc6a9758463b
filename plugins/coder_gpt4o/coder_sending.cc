// The part of coder.h that sends requests to the service within the budget, and accounts for the answers and their
// cost.
#include "coder_gpt4o/coder.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

namespace kgrpo::coder_gpt4o {

void Coder::Send(const JobPointer& job) {
  {
    const std::lock_guard lock(sending_);
    if (job->cancels == cancels_)
      return service_.send({job->request.body, TokensAtMost(job->request.body) + options_.max_tokens,
                            [this, job](const Losses& losses) { return MaySend(*job, losses); },
                            [this, job](const Losses& losses) { Waits(*job, losses); }},
                           [this, job](Completion completion) { Receive(job, std::move(completion)); });
  }
  job->End(KGRPO_CODER_FAILED, "cancelled");
}

// Records the highest possible cost of the exchange, for a resume after this process is killed. A cost of 0 removes the
// record, when nothing was billed and the request is not in flight. Returns false if the change cannot be recorded. A
// record that cannot be removed counts as lost at the next resume.
bool Coder::WriteReservation(Job& job, double cost) {
  if (run_ == nullptr || (cost <= 0 && job.reservation == 0)) return true;
  try {
    job.reservation = run_->Reserve(job.request, cost, job.reservation);
    return true;
  } catch (const std::exception& error) {  // a full disk
    WarnOnce(&warned_of_reservations_, std::string("the possible cost of calls cannot be recorded: ") + error.what());
    job.unwritten = error.what();
    return false;
  }
}

// Explains why no more calls are made: the spending, and the part that was lost to attempts without an answer.
std::string Coder::BudgetMessage(double next) const {
  const std::lock_guard lock(mutex_);
  std::string message =
      "the coder has cost " + Dollars(budget_.spent()) + " of max_cost " + Dollars(*options_.max_cost);
  if (options_.ranks > 1) message += " (a rank's share of " + Dollars(*options_.max_cost * options_.ranks) + ")";
  if (lost_cost_ > 0)
    message += " (up to " + Dollars(lost_cost_) + " of that for attempts that gave no answer; -v shows why)";
  return message + ", and the next call could cost " + Dollars(next) +
         " (raise it with --set coder.options.max_cost=...)";
}

// Runs on the service's thread before each attempt. Sets aside the cost of the lost attempts and the highest possible
// one of the next. If that does not fit the budget, the request waits for the calls in flight; without any, and if it
// cannot be recorded and there is a max_cost, it is never sent.
Leave Coder::MaySend(Job& job, const Losses& losses) {
  job.unwritten.clear();  // an earlier failure to remove a record does not matter here
  {
    const std::lock_guard lock(mutex_);
    const double cost = LostCost(job, losses) + MostCost(job);
    if (cost > job.reserved && !budget_.SetAside(&job.reserved, cost))
      return in_flight_ > (job.in_flight ? 1 : 0) ? Leave::kWait : Leave::kNever;
    if (!std::exchange(job.in_flight, true)) ++in_flight_;
  }
  return WriteReservation(job, job.reserved) || !options_.max_cost ? Leave::kSend : Leave::kNever;
}

// Runs on the service's thread after an attempt that will be repeated: until then only lost attempts can be billed.
void Coder::Waits(Job& job, const Losses& losses) {
  const double lost = LostCost(job, losses);
  {
    const std::lock_guard lock(mutex_);
    budget_.SetAside(&job.reserved, lost);
    if (std::exchange(job.in_flight, false)) --in_flight_;
  }
  WriteReservation(job, lost);
}

// The highest possible cost of one attempt.
double Coder::MostCost(const Job& job) const {
  return options_.price.Of(TokensAtMost(job.request.body), longest_answer_);
}

// The most that the lost attempts may be billed: for each its prompt, and the text received. For an attempt without
// text the longest answer is assumed, since the model may have been reasoning.
double Coder::LostCost(const Job& job, const Losses& losses) const {
  const uint64_t attempts = losses.attempts, silent = losses.silent, longest = longest_answer_;
  if (attempts == 0) return 0;
  const uint64_t heard = std::min(TokensAtMost(losses.bytes), (attempts - silent) * longest);
  return options_.price.Of(attempts * TokensAtMost(job.request.body), heard + silent * longest);
}

// Estimates the tokens of an answer if the service reports none, and checks them against what was asked.
void Coder::Count(const Job& job, Completion& completion) {
  constexpr uint64_t kLongPrompt = 8000, kMostBytesPerToken = 6;  // code and English have 3 to 5 bytes per token
  const uint64_t prompt_bytes = job.request.body.size();
  if (!completion.usage_known) {
    if (completion.completion_tokens == 0) {
      completion.completion_tokens = completion.finish_reason == "length"
                                         ? options_.max_tokens  // the limit is what was used
                                         : TokensAtMost(completion.text.size() + completion.reasoning_bytes);
    }
    if (completion.prompt_tokens == 0) {
      completion.prompt_tokens = completion.total_tokens > completion.completion_tokens
                                     ? completion.total_tokens - completion.completion_tokens
                                     : TokensAtMost(prompt_bytes);
    }
    WarnOnce(&warned_of_usage_,
             "the service does not say how many tokens it used: they and their cost are estimated by length");
    return;
  }
  if (prompt_bytes >= kLongPrompt && completion.prompt_tokens > 0 &&
      completion.prompt_tokens * kMostBytesPerToken < prompt_bytes) {
    WarnOnce(&warned_of_cut_prompts_,
             "the service counted " + std::to_string(completion.prompt_tokens) + " tokens in a prompt of " +
                 std::to_string(prompt_bytes) +
                 " bytes: it seems to cut prompts. Raise the server's context length "
                 "(Ollama: OLLAMA_CONTEXT_LENGTH, llama.cpp: --ctx-size, LM Studio: the model's context length)");
  }
  uint64_t longest = longest_answer_;
  while (completion.completion_tokens > longest &&
         !longest_answer_.compare_exchange_weak(longest, completion.completion_tokens)) {
  }
  if (completion.completion_tokens > options_.max_tokens + options_.max_tokens / 20)
    WarnOnce(&warned_of_long_answers_,
             "the service ignores max_tokens (" + std::to_string(options_.max_tokens) + "): an answer took " +
                 std::to_string(completion.completion_tokens) +
                 " tokens, reasoning included. max_cost assumes the longest answer so far for each further call");
}

// Runs on the service's thread.
void Coder::Receive(const JobPointer& job, Completion completion) {
  const bool answered = completion.outcome == Completion::Outcome::kAnswered;
  if (answered) Count(*job, completion);
  const double lost = LostCost(*job, completion.lost);
  job->cost = lost + completion.cost.value_or(options_.price.Of(completion.prompt_tokens, completion.completion_tokens,
                                                                completion.cached_tokens));
  const bool no_budget = completion.failure == "budget";
  const bool keep = !no_budget && (answered || completion.outcome == Completion::Outcome::kFailed);
  std::string unkept = no_budget ? job->unwritten : "";
  if (keep || job->cost > 0) {
    const std::string why = Keep(
        *job, {.completion = completion, .cost = job->cost, .lost_cost = lost, .reservation = job->reservation}, keep,
        /*paid=*/true);
    if (!why.empty()) unkept = why;
  } else {
    WriteReservation(*job, 0);
  }
  {
    const std::lock_guard lock(mutex_);
    budget_.SetAside(&job->reserved, 0);
    budget_.Spend(job->cost);
    lost_cost_ += lost;
    if (std::exchange(job->in_flight, false)) --in_flight_;
  }
  if (answered && reports_.metric) {
    reports_.metric("coder/answer_seconds", completion.answer_seconds);
    reports_.metric("coder/attempts", completion.attempts);
  }
  if (reports_.metric && options_.price_known) reports_.metric("coder/lost_cost", lost);
  if (!unkept.empty() && options_.max_cost)
    return job->Fail(KGRPO_ERROR_UNAVAILABLE, "the coder's spending cannot be recorded in " + run_->file().string() +
                                                  " (" + unkept +
                                                  "), so a resumed run could exceed max_cost: make room, then resume");
  if (no_budget) return job->Fail(KGRPO_ERROR_BUDGET, BudgetMessage(MostCost(*job)));
  job->Take(completion, /*reused=*/false);
}

}  // namespace kgrpo::coder_gpt4o
