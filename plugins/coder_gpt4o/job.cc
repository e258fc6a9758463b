#include "coder_gpt4o/job.h"

#include "coder_shared/answer.h"
#include "coder_shared/continuation.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <utility>

namespace kgrpo::coder_gpt4o {

Job::Job(const kgrpo_coder_request& request, nlohmann::json prompt, nlohmann::json unmeasured, uint32_t continuations,
         uint64_t cancels, kgrpo_coder_done done)
    : asked_(request),
      prompt_(std::move(prompt)),
      unmeasured_(std::move(unmeasured)),
      continuations_(continuations),
      cancels_(cancels),
      done_(done) {}

nlohmann::json Job::WithTheRest(nlohmann::json messages) const {
  messages.insert(messages.end(), rest_.begin(), rest_.end());
  return messages;
}

bool Job::Take(const Completion& completion, double cost, bool reused) {
  (reused ? reused_ : asked_anew_) = true;
  prompt_tokens_ += completion.prompt_tokens;
  completion_tokens_ += completion.completion_tokens;
  cost_ += cost;
  attempts_ += completion.attempts;
  const bool answered = completion.outcome == Completion::Outcome::kAnswered;
  estimated_ = estimated_ || (answered && !completion.usage_known) || (!reused && completion.lost_attempts > 0);
  switch (completion.outcome) {
    case Completion::Outcome::kAnswered: break;
    case Completion::Outcome::kFailed: End(KGRPO_CODER_FAILED, completion.message); return false;
    case Completion::Outcome::kCancelled: End(KGRPO_CODER_FAILED, "cancelled"); return false;
    case Completion::Outcome::kFatal: Fail(KGRPO_ERROR_UNAVAILABLE, completion.message); return false;
  }
  const bool joined = !text_.empty();
  text_ = joined ? coder_shared::JoinAnswer(std::move(text_), completion.text) : completion.text;
  const coder_shared::ReadAnswer read =
      coder_shared::ReadKernel({text_, completion.refusal, completion.finish_reason, joined},
                               {View(asked_.problem->signature), View(asked_.code_b)});
  const bool cut = read.outcome == KGRPO_CODER_TRUNCATED && coder_shared::IsCutOff(completion.finish_reason);
  if (cut && continuations_ > 0 && !text_.empty()) {
    --continuations_;
    rest_ = nlohmann::json::array();
    rest_.push_back({{"role", "assistant"}, {"content", text_}});
    rest_.push_back({{"role", "user"}, {"content", coder_shared::kContinueRequest}});
    return true;
  }
  // If the service's client knows why there is no text, it says so.
  std::string message = read.outcome == KGRPO_CODER_OK ? read.doubt : read.message;
  if (read.outcome != KGRPO_CODER_OK && !completion.message.empty())
    message = read.outcome == KGRPO_CODER_NO_CODE ? completion.message : message + "; " + completion.message;
  Deliver(read.outcome, read.source, message);
  return false;
}

void Job::Lose(const Completion& completion, double cost) {
  asked_anew_ = estimated_ = true;
  cost_ += cost;
  attempts_ += completion.attempts;
}

void Job::End(kgrpo_coder_outcome outcome, const std::string& message) { Deliver(outcome, "", message); }

void Job::Fail(kgrpo_error_code code, const std::string& message) {
  done_.done(done_.context, nullptr, MakeError(code, message));
}

void Job::Deliver(kgrpo_coder_outcome outcome, const std::string& source, const std::string& message) {
  kgrpo_coder_answer answer{};
  answer.struct_size = sizeof(answer);
  answer.outcome = outcome;
  answer.source = Str(source);
  answer.message = Str(message);
  answer.prompt_tokens = prompt_tokens_;
  answer.completion_tokens = completion_tokens_;
  answer.cost = cost_;
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  answer.attempts = attempts_;
  answer.text = Str(text_);
  answer.reused = reused_ && !asked_anew_ ? 1 : 0;
  answer.estimated = estimated_ ? 1 : 0;
  done_.done(done_.context, &answer, nullptr);
}

}  // namespace kgrpo::coder_gpt4o
