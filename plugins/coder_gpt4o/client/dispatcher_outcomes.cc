// Outcomes of an attempt: an answer, another attempt, a failure, or the end of the run.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <kgrpo/support/number_text.h>
#include "coder_gpt4o/client/dispatcher.h"

namespace kgrpo::coder_gpt4o {
namespace {

constexpr uint32_t kRefusalsInARow = 16;    // consecutive refusals that end the run: the prompts are not the cause
constexpr double kWorthANoticeSeconds = 5;  // the shortest pause of all requests with a notice
constexpr double kLongWaitSeconds = 60;     // the shortest wait of one request, or for a rate limit, with a notice
constexpr double kForLong = 1e9;            // seconds; a longer wait counts as unknown

std::string Seconds(double seconds) {
  // A server may send a number that does not fit a long.
  if (!(seconds < kForLong)) return "more than " + std::to_string(static_cast<long>(kForLong)) + " s";
  return std::to_string(static_cast<long>(std::ceil(seconds))) + " s";
}

// Elapsed time, rounded to the nearest second: rounded up, as announced waits are, it would look longer than announced.
std::string Passed(double seconds) { return Seconds(std::max(1.0, std::round(seconds))); }

}  // namespace

void Dispatcher::Conclude(CURL* handle, bool silent, CURLcode code) {
  auto node = running_.extract(handle);
  Attempt attempt = std::move(node.mapped());
  curl_multi_remove_handle(multi_.get(), handle);
  const double now = Now();
  Transfer::Result result = silent ? attempt.transfer->ConcludeSilent() : attempt.transfer->Conclude(code);
  attempt.request.result.answer_seconds = now - attempt.transfer->StartedAt();
  attempt.request.result.http_status = attempt.transfer->Headers().status;
  if (attempt.transfer->MayBeTheService()) limiter_.OnContact();
  if (!result.answer) {
    NoteLost(attempt);
    OnFailure(std::move(attempt), std::move(result.failure), now);
    return;
  }
  NoteAlive();
  limiter_.OnAnswer();
  refusals_ = 0;
  answered_ = true;
  key_worked_ = key_worked_ || attempt.key == key_;
  std::string remark = std::move(result.answer->remark);
  static_cast<Answer&>(attempt.request.result) = std::move(*result.answer);
  Finish(attempt.request, Outcome::kAnswered, "", std::move(remark));
}

// Counts a failed attempt if the service may bill it.
void Dispatcher::NoteLost(Attempt& attempt) {
  const std::optional<uint64_t> text = attempt.transfer->LostText();
  if (!text) return;
  Losses& lost = attempt.request.result.lost;
  lost.attempts += 1;
  lost.silent += *text == 0 ? 1 : 0;
  lost.bytes += *text;
}

void Dispatcher::NoteAlive() {
  if (limiter_.Down())
    Notice("the service answers again after " + Passed(limiter_.OutageSeconds()) + ": requests go out again");
  limiter_.OnAlive();
}

void Dispatcher::OnFailure(Attempt attempt, Failure failure, double now) {
  const ResponseHeaders& headers = attempt.transfer->Headers();
  if (failure.word == "not_found" && !answered_ && !endpoint_.PathHint().empty())
    failure.message += ": base_url may be wrong" + endpoint_.PathHint();
  if (failure.word == "timeout") OnTimeout(failure);
  last_failure_ = failure.message;
  if (MayRenewKey(attempt)) {
    return SendAgain(std::move(attempt.request), now);
  }
  // A success that cannot be read is paid for: the same one twice would come again. Streams that the network cut
  // differ.
  if (attempt.transfer->MayBeTheService() && failure.word == "invalid_answer" && headers.status >= 200 &&
      headers.status < 300) {
    std::string unreadable = failure.message + attempt.transfer->Text();
    if (attempt.request.unreadable == unreadable) failure.remedy = Failure::Remedy::kGiveUp;
    attempt.request.unreadable = std::move(unreadable);
  }
  if (failure.forbidden && answered_) {  // the key has worked before, so moderation or a firewall refuses this prompt
    failure.remedy = Failure::Remedy::kGiveUp;
    failure.alive = true;
    failure.word = "rejected";
  }
  if (failure.overload) OnOverload(attempt, failure, now);
  if (failure.alive) {
    NoteAlive();
  } else if (failure.remedy == Failure::Remedy::kFatal) {
    if (attempt.probe) limiter_.OnProbeDropped();
  } else {
    const bool was_open = limiter_.Down();
    limiter_.OnFailure(now, now - attempt.transfer->StartedAt(), attempt.request.id, attempt.probe);
    if (limiter_.Down() && limiter_.SecondsLeft() > 0 && (!was_open || attempt.probe)) {
      const std::string fails =
          was_open ? "still fails, for " + Passed(limiter_.OutageSeconds()) + " now: " : "fails: ";
      const double pause = limiter_.Wait(now);
      Notice("the service " + fails + failure.message + ". Nothing is sent for " + Seconds(pause) +
             ", then one request at a time; unless one is answered, the run ends in " +
             Seconds(std::max(limiter_.SecondsLeft(), pause)));
    }
    CheckOutage();
  }

  if (attempt.asked_usage && (headers.status == 400 || headers.status == 422) &&
      failure.message.find("stream_options") != std::string::npos) {
    if (stream_usage_) Notice("the service does not know stream_options: token counts are not asked for any more");
    stream_usage_ = false;
    return SendAgain(std::move(attempt.request), now);
  }
  switch (failure.remedy) {
    case Failure::Remedy::kFatal:
      EndRun(failure.word, failure.message, headers.status);
      Finish(attempt.request, Outcome::kFatal, failure.word, failure.message);
      return;
    case Failure::Remedy::kRefused:  // is an answer
    case Failure::Remedy::kGiveUp:
      if (failure.alive && ++refusals_ >= kRefusalsInARow) {
        EndRun("rejected",
               "the service refused " + std::to_string(refusals_) + " requests in a row and answered none: " +
                   failure.message + ". Check the coder's options, extra_body among them",
               headers.status);
      }
      Finish(attempt.request, Outcome::kFailed, failure.word, failure.message);
      return;
    case Failure::Remedy::kRetry: Retry(std::move(attempt), failure, now); return;
  }
}

// True if the attempt's key has expired, so that the request goes out again with a new one. A key that never worked is
// wrong.
bool Dispatcher::MayRenewKey(const Attempt& attempt) {
  if (options_.api_key_command.empty() || end_ || attempt.transfer->Headers().status != 401) return false;
  if (attempt.key == key_ && !key_worked_) return false;
  key_expired_ = key_expired_ || attempt.key == key_;
  if (attempt.probe) limiter_.OnProbeDropped();
  return true;
}

// A server that answers few requests at once lets the others wait until they time out. So a time-out with others in
// flight lowers their number, as an overload does.
void Dispatcher::OnTimeout(Failure& failure) {
  const size_t others = running_.size();
  limiter_.OnOverload();
  if (others == 0) return;
  failure.message += ", with " + std::to_string(others + 1) +
                     " requests in flight: if the server answers fewer at once, lower max_concurrency";
  if (!std::exchange(told_of_timeouts_, true)) Notice(failure.message + ". Fewer are sent at a time while this lasts");
}

// Gives a notice of a long wait for a rate limit, such as a daily one. Once for each wait, although its estimated end
// may move a little.
void Dispatcher::TellLongWait(double now, double wait) {
  if (wait <= kLongWaitSeconds || now + wait <= told_until_ + kLongWaitSeconds) return;
  told_until_ = now + wait;
  Notice("rate limit: the next request is sent in " + Seconds(wait));
}

void Dispatcher::OnOverload(const Attempt& attempt, const Failure& failure, double now) {
  limiter_.OnOverload();
  const double wait = attempt.transfer->Headers().retry_after.value_or(0);
  if (wait > options_.max_outage_seconds) {
    EndRun("rate_limited",
           "the service asks for a pause of " + Seconds(wait) + ", longer than max_outage_seconds: " + last_failure_,
           attempt.transfer->Headers().status);
    return;
  }
  const bool news = wait > limiter_.Paused(now) + 1;  // requests in flight often report the same pause
  if (news && wait >= kWorthANoticeSeconds) {
    Notice(failure.message + ". Nothing is sent for " + Seconds(wait));
    told_until_ = now + wait;
  } else if (failure.word == "rate_limited" && !told_of_limit_) {
    Notice(failure.message + ". Fewer requests are sent at a time while this lasts");
  }
  told_of_limit_ = told_of_limit_ || failure.word == "rate_limited";
  limiter_.Pause(now, wait);
}

void Dispatcher::Retry(Attempt attempt, const Failure& failure, double now) {
  Request& request = attempt.request;
  if (end_) return FinishAsEnded(request);
  double wait = attempt.transfer->Headers().retry_after.value_or(0);
  if (wait > options_.max_outage_seconds) {
    const std::string wanted = "the service wants " + Seconds(wait) + " to pass before the next try";
    return Finish(request, Outcome::kFailed, failure.word,
                  wanted + ", more than max_outage_seconds: " + failure.message);
  }
  if (wait > kLongWaitSeconds && !failure.overload) {
    Notice("a request is tried again after " + Seconds(wait) + ", as the service asks: " + failure.message);
  }
  // A failure during an outage is not this request's fault, and the outage decides when it is sent again.
  if (!limiter_.Down()) {
    if (++request.charged >= options_.max_attempts) {
      const std::string tries = "tried " + std::to_string(request.charged) + " times; the last: ";
      return Finish(request, Outcome::kFailed, failure.word, (request.charged > 1 ? tries : "") + failure.message);
    }
    wait += BackoffSeconds(options_.backoff_base_seconds, options_.backoff_cap_seconds, options_.seed,
                           request.asked.body, request.charged);
  }
  TellRetry(request, failure, std::max(wait, limiter_.Wait(now)));
  SendAgain(std::move(request), now + wait);
}

// Until then the request is not in flight.
void Dispatcher::SendAgain(Request request, double when) {
  if (request.asked.waits) request.asked.waits(request.result.lost);
  delayed_.emplace(when, std::move(request));
}

// `wait`: the present estimate, in seconds.
void Dispatcher::TellRetry(const Request& request, const Failure& failure, double wait) const {
  if (!options_.retry_notice) return;
  const std::string when = wait < kForLong ? Format("in %.1f s", wait) : "once a probe is answered";
  std::string message = "attempt " + std::to_string(request.result.attempts) + " failed: " + failure.message +
                        "; up to " + std::to_string(options_.max_attempts - request.charged) + " more, the next " +
                        when;
  if (!limiter_.Contacted()) {
    message += "; nothing at " + endpoint_.Url() + " has answered yet as a service of chat completions does: check " +
               "base_url" + endpoint_.PathHint();
  }
  endpoint_.Secrets().Apply(message);
  options_.retry_notice(message);
}

void Dispatcher::CheckOutage() {
  if (end_ || !limiter_.Down() || limiter_.SecondsLeft() > 0) return;
  const std::string time = Passed(limiter_.OutageSeconds());
  EndRun("outage",
         limiter_.Contacted()
             ? "the service has failed for " + time + "; the last failure: " + last_failure_
             : "no service of chat completions answered at " + endpoint_.Url() + " for " + time + ": " + last_failure_ +
                   ". Check base_url, proxy and the network" + endpoint_.PathHint(),
         0);
}

// Requests in flight may still be answered, because they are paid for, unless the run cancels them. All other requests,
// present and future, end with this failure.
void Dispatcher::EndRun(std::string word, std::string message, int status) {
  if (!end_) end_ = End{std::move(word), std::move(message), status};
}

void Dispatcher::FinishAsEnded(Request& request) {
  request.result.http_status = end_->status;
  Finish(request, Outcome::kFatal, end_->word, end_->message);
}

void Dispatcher::Finish(Request& request, Outcome outcome, std::string failure, std::string message) {
  Completion completion = std::move(request.result);
  completion.outcome = outcome;
  completion.failure = std::move(failure);
  completion.message = std::move(message);
  completion.seconds = Now() - request.sent_at;
  // A server may echo the key or a header in an error or an answer.
  endpoint_.Secrets().Apply(completion.message);
  endpoint_.Secrets().Apply(completion.refusal);
  endpoint_.Key().Apply(completion.text);
  endpoint_.Key().Apply(completion.model);
  endpoint_.Key().Apply(completion.finish_reason);
  request.done(std::move(completion));
}

}  // namespace kgrpo::coder_gpt4o
