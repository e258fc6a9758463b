#include "coder_gpt4o/coder.h"

#include "coder_gpt4o/job.h"
#include "digest/sha256.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cstdio>
#include <optional>
#include <utility>

namespace kgrpo::coder_gpt4o {
namespace {

std::string Dollars(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "$%.4g", value);
  return text;
}

// Keys in alphabetical order and text in UTF-8: the same request has the same content wherever it is made.
std::string TextOf(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Coder::Coder(CoderOptions options, Service service, Recordings recordings, Reports reports)
    : options_(std::move(options)),
      prompt_(options_.system_template, options_.user_template, options_.diagnosis_bytes),
      service_(std::move(service)),
      recordings_(std::move(recordings)),
      reports_(std::move(reports)),
      source_(recordings_.replay),
      budget_(options_.max_cost) {}

Coder::~Coder() = default;

double Coder::spent() const {
  const std::lock_guard lock(mutex_);
  return budget_.spent();
}

void Coder::OpenRecordings() {
  std::call_once(recordings_opened_, [this] {
    if (recordings_.open_cache) source_ = recordings_.open_cache();
    if (!recordings_.open_run) return;
    run_ = recordings_.open_run();
    const std::lock_guard lock(mutex_);
    budget_.AddSpent(run_->Spent());
  });
}

nlohmann::json Coder::Body(nlohmann::json messages, uint64_t sample) const {
  nlohmann::json body = options_.extra_body;
  body["model"] = options_.model;
  body["messages"] = std::move(messages);
  body[options_.max_tokens_field] = options_.max_tokens;
  if (options_.temperature) body["temperature"] = *options_.temperature;
  if (options_.seed) body["seed"] = *options_.seed;
  if (options_.seed_of_sample)
    body["seed"] = sample & 0x7fffffff;  // services differ in what they take; this they all do
  return body;
}

// The identity names what a template may leave out: where only measurements tell two kernels apart, their requests are
// not the same.
RecordedRequest Coder::RequestOf(const Job& job) const {
  const kgrpo_coder_request& asked = job.asked();
  nlohmann::json identity = Body(job.UnmeasuredMessages(), job.sample());
  identity["problem.name"] = View(asked.problem->name);
  identity["code_a.sha256"] = Sha256(View(asked.code_a));
  identity["code_b.sha256"] = Sha256(View(asked.code_b));
  identity["suggestion"] = View(asked.suggestion);
  return MakeRecordedRequest(TextOf(Body(job.Messages(), job.sample())), TextOf(identity), job.sample());
}

std::string Coder::Describe(const kgrpo_coder_request& request) const {
  nlohmann::json body = nlohmann::json::parse(TextOf(Body(prompt_.Messages(request), request.seed)));
  const nlohmann::json messages = std::move(body["messages"]);
  body.erase("messages");
  std::string text = options_.mode == Mode::kReplay
                         ? "nothing is sent: the recording " + source_->file().string() + " is asked for"
                         : "POST to " + options_.client.base_url;
  text += "\n" + body.dump() + "\n";
  for (const nlohmann::json& message : messages)
    text += "[" + message["role"].get<std::string>() + "]\n" + message["content"].get<std::string>() + "\n";
  return text;
}

void Coder::Implement(const kgrpo_coder_request& request, kgrpo_coder_done done) {
  Ask(std::make_shared<Job>(request, prompt_.Messages(request), prompt_.UnmeasuredMessages(request),
                            options_.continuations, cancels_.load(), done));
}

void Coder::Cancel() {
  std::deque<JobPointer> held;
  {
    const std::lock_guard lock(mutex_);
    ++cancels_;
    held.swap(held_);
    for (auto& [digest, same] : asking_) held.insert(held.end(), same.waiting.begin(), same.waiting.end());
    asking_.clear();
  }
  if (service_.cancel) service_.cancel();
  for (const JobPointer& job : held) job->End(KGRPO_CODER_FAILED, "cancelled");
}

// The next exchange of the job: its first, or one for the rest of an answer.
void Coder::Ask(const JobPointer& job) {
  try {
    OpenRecordings();
    job->request = RequestOf(*job);
    if (UseRecorded(job)) return;
    if (options_.mode == Mode::kReplay) {
      throw Error(KGRPO_ERROR_NOT_FOUND, "the recording " + source_->file().string() +
                                             " has no answer to this request; " + source_->Difference(job->request));
    }
  } catch (const Error& error) {
    return job->Fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return job->Fail(KGRPO_ERROR_INTERNAL, error.what());
  }
  if (WaitsForSame(job)) return;
  {
    const std::lock_guard lock(mutex_);
    held_.push_back(job);
  }
  SendHeld();
}

// Answers the job with what is known. What this run has paid for before keeps its cost; another recording costs
// nothing.
bool Coder::UseRecorded(const JobPointer& job) {
  if (run_ != nullptr) {
    if (const auto paid = run_->Find(job->request, Match::kSample)) {
      Use(job, paid->completion, paid->cost);
      return true;
    }
  }
  if (source_ == nullptr) return false;
  const auto known = source_->Find(job->request, Match::kContent);
  const bool answered = known && known->completion.outcome == Completion::Outcome::kAnswered;
  if (reports_.metric) reports_.metric("coder/recorded_rate", answered ? 1 : 0);
  if (!known || (!answered && options_.mode == Mode::kCache)) return false;  // a failure is worth another try
  if (options_.mode == Mode::kCache) Keep(*job, {known->completion, 0}, /*paid=*/false);
  Use(job, known->completion, 0);
  return true;
}

// In mode cache nothing is paid twice: who asks what is being asked waits for the answer.
bool Coder::WaitsForSame(const JobPointer& job) {
  if (options_.mode != Mode::kCache) return false;
  const std::lock_guard lock(mutex_);
  const auto [asked, is_first] = asking_.try_emplace(job->request.digest, SameContent{job, {}});
  if (!is_first) asked->second.waiting.push_back(job);
  return !is_first;
}

// Who waited for the answer to that job. Under the mutex.
std::vector<Coder::JobPointer> Coder::StopWaitingFor(const JobPointer& asker) {
  const auto asked = asking_.find(asker->request.digest);
  if (asked == asking_.end() || asked->second.asker != asker) return {};
  std::vector<JobPointer> waiting = std::move(asked->second.waiting);
  asking_.erase(asked);
  return waiting;
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
  for (const JobPointer& job : ready) {
    service_.send({job->request.body, TokensAtMost(job->request.body) + options_.max_tokens},
                  [this, job](Completion completion) { Receive(job, std::move(completion)); });
  }
  for (const JobPointer& job : refused) {
    job->Fail(KGRPO_ERROR_BUDGET,
              "the coder has cost " + Dollars(spent()) + " of max_cost " + Dollars(*options_.max_cost) +
                  ", and the next call could cost " + Dollars(job->reserved) +
                  " (to go on, raise coder.options.max_cost: of a run that is resumed, in its resolved.yaml)");
  }
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
  const double cost = options_.price.Of(completion.prompt_tokens, completion.completion_tokens);
  if (answered || completion.outcome == Completion::Outcome::kFailed) Keep(*job, {completion, cost}, /*paid=*/true);
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
  Use(job, completion, cost);
  for (const JobPointer& other : waiting) Use(other, completion, 0);
  SendHeld();
}

void Coder::Keep(const Job& job, const RecordedCompletion& exchange, bool paid) {
  try {
    if (run_ != nullptr) run_->Add(job.request, exchange, options_.record, paid);
    const bool answered = exchange.completion.outcome == Completion::Outcome::kAnswered;
    if (paid && answered && options_.mode == Mode::kCache) source_->Add(job.request, exchange, true, paid);
  } catch (const Error& error) {  // a full disk; what was paid for is used all the same
    if (reports_.warn && !warned_of_recording_.exchange(true))
      reports_.warn(std::string("exchanges cannot be recorded: ") + error.what());
  }
}

// What comes of an exchange, wherever it came from.
void Coder::Use(const JobPointer& job, const Completion& completion, double cost) {
  if (!job->Take(completion, cost)) return;
  if (job->cancels() != cancels_) return job->End(KGRPO_CODER_FAILED, "cancelled");
  Ask(job);
}

}  // namespace kgrpo::coder_gpt4o
