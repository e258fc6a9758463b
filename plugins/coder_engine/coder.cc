#include "coder_engine/coder.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "coder_shared/answer.h"
#include "policy_qwen/hosted_policy.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::coder_engine {
namespace {

constexpr MetricDeclaration kDeviceSeconds = {"coder/device_seconds",
                                              "time for which the coder had its device",
                                              "Coder",
                                              KGRPO_METRIC_SECONDS,
                                              "",
                                              KGRPO_METRIC_LOWER_IS_BETTER,
                                              KGRPO_METRIC_SUM};

using Clock = std::chrono::steady_clock;

void Deliver(kgrpo_coder_done done, kgrpo_coder_answer answer) {
  answer.struct_size = sizeof answer;
  done.done(done.context, &answer, nullptr);
}

void DeliverFailed(kgrpo_coder_done done, std::string_view message) {
  kgrpo_coder_answer answer = {};
  answer.outcome = KGRPO_CODER_FAILED;
  answer.message = Str(message);
  Deliver(done, answer);
}

}  // namespace

// A request whose completion is being generated.
struct Coder::Job {
  const Coder* coder;
  const kgrpo_coder_request* request;  // the host's, until it has the answer
  kgrpo_coder_done done;
  size_t prompt_tokens;
  Clock::time_point start = Clock::now();
};

Coder::Coder(const kgrpo_host* host, CoderOptions options)
    : host_(host),
      options_(std::move(options)),
      prompt_(options_.prompt, names_),
      policy_(policy::OpenPolicy(host, options_.model, host_.Random({}, 0))),
      writer_(host_, *policy_, [this] {
        return policy::TakeDevice(host_, *policy_,
                                  [this](double seconds) { host_.Metric(kDeviceSeconds.name, seconds); });
      }) {
  host_.Declare(kDeviceSeconds);
  // A model without a chat template, or with one that refuses the system message's role, is refused here.
  nlohmann::json messages = nlohmann::json::array();
  if (!options_.prompt.system.empty() && options_.prompt.system_role != "user")
    messages.push_back({{"role", options_.prompt.system_role}, {"content", "-"}});
  messages.push_back({{"role", "user"}, {"content", "-"}});
  try {
    Render(messages);
  } catch (const Error& error) {
    if (messages.size() < 2) throw;
    throw Error(error.code(), std::string(error.what()) + ". If the model takes no message with the role \"" +
                                  options_.prompt.system_role +
                                  "\", as Gemma, set prompt.system_role to user, or leave prompt.system empty");
  }
}

std::string Coder::Render(const nlohmann::json& messages) const {
  tokenizer::Json chat = tokenizer::Json::array();
  for (const nlohmann::json& message : messages) {
    chat.push_back({{"role", message.at("role").get<std::string>()},
                    {"content", tokenizer::ReplaceInvalidUtf8(message.at("content").get<std::string>())}});
  }
  return policy_->RenderChat(chat, /*add_generation_prompt=*/true);
}

std::string Coder::PromptText(const kgrpo_coder_request& request) const {
  // By the first request every plugin has declared its metrics.
  std::call_once(names_read_, [this] {
    host_.ForEachDeclaration([this](const kgrpo_metric_declaration& metric) { names_.Declare(metric); });
  });
  return Render(prompt_.Messages(request));
}

std::string Coder::Describe() const {
  const kgrpo_sampling& sampling = options_.sampling;
  char parameters[32], temperature[48];
  std::snprintf(parameters, sizeof parameters, "%.2f M", static_cast<double>(policy_->parameter_count()) / 1e6);
  std::snprintf(temperature, sizeof temperature, "temperature %g", sampling.temperature);
  return policy_->config().architecture_name + ", " + parameters + " parameters, from " + options_.model.model +
         ", on " + policy::DeviceName(*policy_) + ", " + (sampling.temperature == 0 ? "greedy" : temperature) +
         ", at most " + std::to_string(sampling.max_new_tokens) + " tokens an answer";
}

void Coder::Implement(const kgrpo_coder_request& request, kgrpo_coder_done done) {
  const std::vector<int32_t> prompt = policy_->tokenizer().Encode(PromptText(request));
  try {
    policy_->CheckPrompt(prompt, "no answer");
  } catch (const Error& error) {  // of this kernel, not of the run
    return DeliverFailed(done, error.what());
  }
  auto job = std::make_unique<Job>(Job{this, &request, done, prompt.size()});
  const kgrpo_generate_request asked = {sizeof asked, prompt.data(),      prompt.size(),
                                        request.seed, &options_.sampling, {job.get(), Finish}};
  const kgrpo_generate_request* const requests[] = {&asked};
  writer_.Submit(requests, 1);
  job.release();  // NOLINT(bugprone-unused-return-value): Finish has it
}

// On the writer's thread, without the device's lock.
void Coder::Finish(void* context, const kgrpo_completion* completion, kgrpo_error* error) {
  const std::unique_ptr<Job> job(static_cast<Job*>(context));
  if (completion == nullptr) {
    // INVALID: the engine's cache has no room for this request; another error is the run's.
    if (error->code != KGRPO_ERROR_CANCELLED && error->code != KGRPO_ERROR_INVALID)
      return job->done.done(job->done.context, nullptr, error);
    DeliverFailed(job->done, View(error->message));
    return error->release(error);
  }
  kgrpo_error* failed = Guard([&] { job->coder->Answer(*job, *completion); });
  if (failed != nullptr) job->done.done(job->done.context, nullptr, failed);
}

std::string Coder::CutOffText(const Job& job, const kgrpo_completion& completion) const {
  if (completion.finish_reason != KGRPO_FINISH_LENGTH) return "the answer ends before its kernel does";
  if (completion.size >= options_.sampling.max_new_tokens) {
    return "the answer was cut off at " + std::to_string(completion.size) +
           " tokens: raise coder.options.sampling.max_new_tokens";
  }
  return "the answer was cut off at the end of the model's context of " +
         std::to_string(policy_->config().context_length) + " tokens, of which the prompt has " +
         std::to_string(job.prompt_tokens);
}

void Coder::Answer(const Job& job, const kgrpo_completion& completion) const {
  const bool cut = completion.finish_reason == KGRPO_FINISH_LENGTH;
  coder_shared::ReadAnswer read =
      coder_shared::ReadKernel({View(completion.text), "", cut ? "length" : "stop"},
                               {View(job.request->problem->signature), View(job.request->code_b)});
  // The table has the words of a service's coder for this one.
  if (read.outcome == KGRPO_CODER_TRUNCATED) read.message = CutOffText(job, completion);
  kgrpo_coder_answer answer = {};
  answer.outcome = read.outcome;
  answer.source = Str(read.source);
  answer.message = Str(read.outcome == KGRPO_CODER_OK ? read.doubt : read.message);
  answer.text = completion.text;
  answer.prompt_tokens = job.prompt_tokens;
  answer.completion_tokens = completion.size;
  answer.seconds = std::chrono::duration<double>(Clock::now() - job.start).count();
  answer.attempts = 1;
  Deliver(job.done, answer);
}

}  // namespace kgrpo::coder_engine
