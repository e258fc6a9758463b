#include "coder_gpt4o/coder.h"

#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/sha256.h>
#include "coder_shared/answer.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace kgrpo::coder_gpt4o {
namespace {

// An address without its query and fragment, which do not distinguish services.
std::string ServiceOf(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  while (url.ends_with('/')) url.remove_suffix(1);
  return std::string(url);
}

}  // namespace

Coder::Coder(CoderOptions options, Service service, Recordings recordings, Reports reports)
    : options_(std::move(options)),
      prompt_(options_.prompt, names_),
      service_(std::move(service)),
      recordings_(std::move(recordings)),
      reports_(std::move(reports)),
      source_(recordings_.replay),
      longest_answer_(options_.max_tokens),
      budget_(options_.max_cost) {}

Spending Coder::Spending() const {
  const std::lock_guard lock(mutex_);
  return {budget_.spent(), lost_cost_};
}

// Reads the metrics' names at the first request: by then every plugin is created and has declared its metrics.
const coder_shared::CoderPrompt& Coder::Prompt() const {
  std::call_once(names_read_, [this] {
    if (reports_.read_names) reports_.read_names(&names_);
  });
  return prompt_;
}

void Coder::OpenRecordings() {
  std::call_once(recordings_opened_, [this] {
    if (recordings_.open_run) run_ = recordings_.open_run();
    if (recordings_.open_cache) source_ = recordings_.open_cache();
    if (run_ == nullptr) return;
    std::error_code ignored;
    if (source_ != nullptr && std::filesystem::equivalent(run_->file(), source_->file(), ignored)) source_ = run_;
    // All are open before one is counted: after an error the next request opens them again.
    std::vector<std::shared_ptr<Recording>> earlier;
    if (recordings_.open_former) earlier = recordings_.open_former();
    CountSpending(*run_);
    for (const std::shared_ptr<Recording>& former : earlier) CountSpending(*former);
  });
}

// Adds the cost that earlier processes of the run have recorded.
void Coder::CountSpending(Recording& recording) {
  const LeftInFlight left = recording.BookLeftInFlight();
  const coder_gpt4o::Spending spent = recording.Spent();
  const std::lock_guard lock(mutex_);
  budget_.Spend(spent.cost);
  lost_cost_ += spent.lost_cost;
  if (left.calls == 0) return;
  const char* one_or_many = left.calls == 1 ? " call was" : " calls were";
  if (reports_.warn)
    reports_.warn(std::to_string(left.calls) + one_or_many +
                  " in flight when the run's process was killed: the service may bill them, so " + Dollars(left.cost) +
                  " are added to the coder's cost");
}

nlohmann::json Coder::Body(nlohmann::json messages, uint64_t sample) const {
  nlohmann::json body = options_.extra_body;
  body["model"] = options_.model;
  body["messages"] = std::move(messages);
  body[options_.max_tokens_field] = options_.max_tokens;
  if (options_.temperature) body["temperature"] = *options_.temperature;
  if (options_.seed) body["seed"] = *options_.seed;
  if (options_.seed_of_sample)
    body["seed"] = sample & 0x7fffffff;  // services accept different ranges; all accept 31 bits
  return body;
}

// The identity adds the inputs that a template may leave out: requests for two kernels stay distinct even if their
// prompts differ in measurements only.
RecordedRequest Coder::RequestOf(const Job& job) const {
  const kgrpo_coder_request& asked = job.asked;
  nlohmann::json identity = Body(Prompt().UnmeasuredMessages(asked), asked.seed);
  identity["problem.name"] = View(asked.problem->name);
  identity["code_a.sha256"] = Sha256(View(asked.code_a));
  identity["code_b.sha256"] = Sha256(View(asked.code_b));
  identity["suggestion"] = View(asked.suggestion);
  RecordedRequest request =
      MakeRecordedRequest(DumpJson(Body(Prompt().Messages(asked), asked.seed)), DumpJson(identity), asked.seed);
  request.service = ServiceOf(options_.client.base_url);
  return request;
}

std::string Coder::Describe() const {
  if (options_.mode == Mode::kReplay)
    return options_.model + " as recorded in " + source_->file().string() + ", mode replay: nothing is asked or paid";
  std::string text = options_.model + " at " + ServiceOf(options_.client.base_url) +
                     (options_.mode == Mode::kCache ? ", mode cache" : ", mode live");
  if (!options_.max_cost) {
    text += ", without max_cost";
  } else {
    text += ", at most " + Dollars(*options_.max_cost * options_.ranks) + " in all";
    if (options_.ranks > 1) text += ", " + Dollars(*options_.max_cost) + " a rank";
  }
  if (!options_.price_known) return text + "; its price is not known";
  return text + "; a call costs up to " + Dollars(options_.price.Of(0, options_.max_tokens)) + ", besides its prompt";
}

std::string Coder::Describe(const kgrpo_coder_request& request) const {
  nlohmann::json body = nlohmann::json::parse(DumpJson(Body(Prompt().Messages(request), request.seed)));
  const nlohmann::json messages = std::move(body["messages"]);
  body.erase("messages");
  std::string text = options_.mode == Mode::kReplay
                         ? "nothing is sent: answers come from the recording " + source_->file().string()
                         : "POST to " + service_.address;
  if (options_.mode == Mode::kCache) text += ", where the cache has no answer";
  text += "\n" + body.dump() + "\n";
  for (const nlohmann::json& message : messages)
    text += "[" + message["role"].get<std::string>() + "]\n" + message["content"].get<std::string>() + "\n";
  return text;
}

void Coder::Cancel() {
  {
    // The service cancels jobs that were sent before this; earlier ones that were not are not sent.
    const std::lock_guard lock(sending_);
    ++cancels_;
  }
  if (service_.cancel) service_.cancel();
}

void Coder::Implement(const kgrpo_coder_request& request, kgrpo_coder_done done) {
  const auto job = std::make_shared<Job>(Job{request, done, cancels_.load()});
  try {
    OpenRecordings();
    job->request = RequestOf(*job);
    if (UseRecorded(*job)) return;
    if (options_.mode == Mode::kReplay) {
      throw Error(KGRPO_ERROR_NOT_FOUND, "the recording " + source_->file().string() +
                                             " has no answer to this request: it differs from the recorded ones in a "
                                             "kernel, the suggestion, the prompt or an option of the request (mode "
                                             "cache would ask the service)");
    }
  } catch (const Error& error) {
    return job->Fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return job->Fail(KGRPO_ERROR_INTERNAL, error.what());
  }
  Send(job);
}

// Answers the job from a recording, if one has an answer. An answer that this run has paid for keeps its cost; one from
// another recording costs nothing.
bool Coder::UseRecorded(Job& job) {
  if (run_ != nullptr) {
    if (const auto paid = run_->Find(job.request, Match::kSample)) {
      job.cost = paid->cost;
      job.Take(paid->completion, /*reused=*/!paid->paid);
      return true;
    }
  }
  if (source_ == nullptr) return false;
  const bool cache = options_.mode == Mode::kCache;  // does not reuse recorded failures
  const auto known = source_->Find(job.request, cache ? Match::kAnswered : Match::kContent);
  const bool answered = known && known->completion.outcome == Completion::Outcome::kAnswered;
  if (reports_.metric) reports_.metric("coder/recorded_rate", answered ? 1 : 0);
  if (!known) return false;
  if (cache) Keep(job, {.completion = known->completion, .paid = false}, /*keep=*/true, /*paid=*/false);
  job.Take(known->completion, /*reused=*/true);
  return true;
}

void Coder::WarnOnce(std::atomic<bool>* told, const std::string& words) {
  if (reports_.warn && !told->exchange(true)) reports_.warn(words);
}

// Records the exchange in the run's recording and the cache. Returns why the run's recording failed, or an empty text.
// Without max_cost the answer is used even so, since it is paid for.
std::string Coder::Keep(const Job& job, const RecordedCompletion& exchange, bool keep, bool paid) {
  const auto add = [&](const std::shared_ptr<Recording>& recording, bool keep_it, bool pay) -> std::string {
    try {
      recording->Add(job.request, exchange, keep_it, pay);
      return "";
    } catch (const std::exception& error) {  // a full disk
      WarnOnce(&warned_of_recording_, std::string("exchanges cannot be recorded: ") + error.what());
      return error.what();
    }
  };
  std::string unkept;
  if (run_ != nullptr) unkept = add(run_, keep, paid);
  const bool answered = exchange.completion.outcome == Completion::Outcome::kAnswered;
  // The cache stores no cost: the cost counts in the run's own recording.
  const bool to_cache = options_.mode == Mode::kCache && source_ != run_;
  if (paid && answered && to_cache) add(source_, /*keep_it=*/true, /*pay=*/false);
  return unkept;
}

void Job::Take(const Completion& completion, bool from_recording) {
  answer = completion;
  reused = from_recording;
  switch (completion.outcome) {
    case Completion::Outcome::kAnswered: break;
    case Completion::Outcome::kFailed: return End(KGRPO_CODER_FAILED, completion.message);
    case Completion::Outcome::kCancelled: return End(KGRPO_CODER_FAILED, "cancelled");
    case Completion::Outcome::kFatal: return Fail(KGRPO_ERROR_UNAVAILABLE, completion.message);
  }
  coder_shared::ReadAnswer read;
  try {
    read = coder_shared::ReadKernel({completion.text, completion.refusal, completion.finish_reason},
                                    {View(asked.problem->signature), View(asked.code_b)});
  } catch (const std::exception& error) {  // on the service's thread it would end the process
    return Fail(KGRPO_ERROR_INTERNAL, std::string("the coder's answer cannot be read: ") + error.what());
  }
  // If the service's client knows why there is no text, it says so.
  std::string message = read.outcome == KGRPO_CODER_OK ? read.doubt : read.message;
  if (read.outcome != KGRPO_CODER_OK && !completion.message.empty())
    message = read.outcome == KGRPO_CODER_NO_CODE ? completion.message : message + "; " + completion.message;
  Deliver(read.outcome, read.source, message);
}

void Job::Fail(kgrpo_error_code code, const std::string& message) {
  done.done(done.context, nullptr, MakeError(code, message));
}

void Job::Deliver(kgrpo_coder_outcome outcome, const std::string& source, const std::string& message) {
  kgrpo_coder_answer told{};
  told.struct_size = sizeof(told);
  told.outcome = outcome;
  told.source = Str(source);
  told.message = Str(message);
  told.prompt_tokens = answer.prompt_tokens;
  told.completion_tokens = answer.completion_tokens;
  told.cost = cost;
  told.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  told.attempts = answer.attempts;
  told.text = Str(answer.text);
  told.reused = reused ? 1 : 0;
  const bool answered = answer.outcome == Completion::Outcome::kAnswered;
  told.estimated = (answered && !answer.usage_known) || (!reused && answer.lost.attempts > 0) ? 1 : 0;
  done.done(done.context, &told, nullptr);
}

}  // namespace kgrpo::coder_gpt4o
