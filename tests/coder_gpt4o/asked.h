// The answer to a request, and a service that a test scripts. Used by the tests of this folder that need no
// network.
#ifndef KGRPO_TESTS_CODER_GPT4O_ASKED_H
#define KGRPO_TESTS_CODER_GPT4O_ASKED_H

#include <kgrpo/coder.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../coder_shared/asked.h"
#include "coder_gpt4o/coder.h"

namespace kgrpo::coder_gpt4o {

using coder_shared::Asked;
using coder_shared::Fenced;
using coder_shared::kKernelB;
using coder_shared::kKernelC;

// The answer as the host receives it.
struct Answered {
  int calls = 0;
  uint32_t outcome = 99;
  std::string source, message, text;
  uint64_t prompt_tokens = 0, completion_tokens = 0;
  double cost = -1;
  uint32_t attempts = 99;
  bool reused = false;
  std::optional<Error> error;

  kgrpo_coder_done done() {
    return {this, [](void* context, const kgrpo_coder_answer* answer, kgrpo_error* error) {
              auto* self = static_cast<Answered*>(context);
              ++self->calls;
              try {
                Check(error);
              } catch (const Error& thrown) {
                self->error = thrown;
                return;
              }
              self->outcome = answer->outcome;
              self->source = Copy(answer->source);
              self->message = Copy(answer->message);
              self->text = Copy(answer->text);
              self->prompt_tokens = answer->prompt_tokens;
              self->completion_tokens = answer->completion_tokens;
              self->cost = answer->cost;
              self->attempts = answer->attempts;
              self->reused = answer->reused != 0;
            }};
  }
};

inline Completion AnswerOf(std::string text, std::string finish_reason = "stop") {
  Completion completion;
  completion.outcome = Completion::Outcome::kAnswered;
  completion.text = std::move(text);
  completion.finish_reason = std::move(finish_reason);
  completion.prompt_tokens = 1000;
  completion.completion_tokens = 200;
  completion.usage_known = true;
  completion.attempts = 1;
  return completion;
}

// Keeps requests until the test answers them. As the client does, it sends a request when it may be sent.
struct ScriptedService {
  struct Call {
    nlohmann::json body;
    uint64_t tokens_at_most = 0;
    std::function<Leave(const Losses&)> may_send;
    std::function<void(const Losses&)> waits;
    std::function<void(Completion)> done;
  };
  std::deque<Call> waiting;  // not sent yet
  std::deque<Call> calls;    // not answered yet
  size_t sent = 0;
  size_t cancels = 0;

  Service service() {
    return {[this](CompletionRequest request, std::function<void(Completion)> done) {
              waiting.push_back({nlohmann::json::parse(request.body), request.tokens_at_most,
                                 std::move(request.may_send), std::move(request.waits), std::move(done)});
              SendWhatMay();
            },
            [this] {
              ++cancels;
              Completion completion;
              completion.outcome = Completion::Outcome::kCancelled;
              for (const Call& call : std::exchange(waiting, {})) call.done(completion);
              while (!calls.empty()) Answer(completion);
            },
            "https://service/v1/chat/completions"};
  }
  void Answer(Completion completion) {
    const Call call = std::move(calls.front());
    calls.pop_front();
    call.done(std::move(completion));
    SendWhatMay();
  }
  // An attempt of the first call failed and may be billed: the call waits, and is sent again when it may.
  void Lose(const Losses& lost) {
    Call call = std::move(calls.front());
    calls.pop_front();
    call.waits(lost);
    waiting.push_front(std::move(call));
    lost_of_first = lost;
    SendWhatMay();
  }

 private:
  void SendWhatMay() {
    while (!waiting.empty()) {
      const Leave leave = waiting.front().may_send(lost_of_first);
      if (leave == Leave::kWait) return;
      Completion never;
      never.failure = "budget";
      never.lost = std::exchange(lost_of_first, {});
      Call call = std::move(waiting.front());
      waiting.pop_front();
      if (leave == Leave::kNever) {
        call.done(never);
      } else {
        ++sent;
        calls.push_back(std::move(call));
      }
    }
  }

  Losses lost_of_first;  // of the first waiting call
};

// The schema's default options with `changes`, and a key in the environment.
CoderOptions OptionsWith(const nlohmann::json& changes);

// Every option at its default, as the host fills them in.
nlohmann::json DefaultOptions();

// A new empty folder for a test, below the build folder.
std::filesystem::path TestFolder(const std::string& name);

// Recordings of a run in `folder`, with a cache if a file for it is given.
inline Recordings RecordedIn(const std::filesystem::path& folder, const std::filesystem::path& cache = {}) {
  const auto open = [](const std::filesystem::path& file) {
    return [file] { return std::make_shared<Recording>(file, Recording::Access::kReadWrite); };
  };
  Recordings recordings;
  recordings.open_run = open(folder / kRecordingName);
  if (!cache.empty()) recordings.open_cache = open(cache);
  return recordings;
}

}  // namespace kgrpo::coder_gpt4o

#endif
