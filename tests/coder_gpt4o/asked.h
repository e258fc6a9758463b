// A request to the coder, its answer, and a service that a test scripts. Used by the tests of this folder that need no
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

#include "coder_gpt4o/coder.h"

namespace kgrpo::coder_gpt4o {

inline constexpr const char* kKernelB =
    "__global__ void k(float* x) { x[0] = 1; }\nextern \"C\" void launch(float* x) { k<<<1, 1>>>(x); }\n";
inline constexpr const char* kKernelC =
    "__global__ void k(float* x) { *x = 1; }\nextern \"C\" void launch(float* x) { k<<<1, 32>>>(x); }\n";

// A request as the host passes it; owns its texts.
struct Asked {
  explicit Asked(std::string said = "use one warp", uint64_t number = 1) : suggestion(std::move(said)), seed(number) {
    info.struct_size = sizeof(info);
    info.name = Str("set");
    info.title = Str("Set a number");
    info.family = Str("map");
    info.task = Str("Set x[0] to 1.");
    info.signature = Str("extern \"C\" void launch(float* x)");
    info.traits = &trait;
    info.trait_count = 1;
    current.struct_size = sizeof(current);
    current.compiled = current.correct = 1;
    current.verdict = Str("correct");
    current.seconds = 12.3e-6;
    current.metric_count = 1;
  }
  const kgrpo_coder_request& request() {
    c.struct_size = sizeof(c);
    c.problem = &info;
    c.code_a = Str(code_a);
    c.code_b = Str(code_b);
    c.last_suggestion = Str(last_suggestion);
    c.suggestion = Str(suggestion);
    current.diagnosis = Str(diagnosis);
    current.metrics = &registers;
    c.current = &current;
    c.seed = seed;
    return c;
  }

  std::string code_a = kKernelB, code_b = kKernelB, last_suggestion, suggestion, diagnosis = "bound by launches";
  uint64_t seed;
  kgrpo_str trait = Str("streaming");
  kgrpo_metric registers = {Str("registers"), 30};
  kgrpo_problem_info info{};
  kgrpo_evaluation current{};
  kgrpo_coder_request c{};
};

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

inline std::string Fenced(const std::string& code) {
  return "Here it is.\n```cuda\n" + code + "```\n";
}

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

// Keeps requests until the test answers them.
struct ScriptedService {
  struct Call {
    nlohmann::json body;
    uint64_t tokens_at_most = 0;
    std::function<bool(const Losses&)> may_send;
    std::function<void(const Losses&)> waits;
    std::function<void(Completion)> done;
  };
  std::deque<Call> calls;  // not answered yet
  size_t sent = 0;
  size_t cancels = 0;

  Service service() {
    return {[this](CompletionRequest request, std::function<void(Completion)> done) {
              calls.push_back({nlohmann::json::parse(request.body), request.tokens_at_most, std::move(request.may_send),
                               std::move(request.waits), std::move(done)});
              if (calls.back().may_send({})) ++sent;
            },
            [this] {
              ++cancels;
              while (!calls.empty()) {
                Completion completion;
                completion.outcome = Completion::Outcome::kCancelled;
                Answer(completion);
              }
            },
            "https://service/v1/chat/completions"};
  }
  void Answer(Completion completion) {
    const Call call = std::move(calls.front());
    calls.pop_front();
    call.done(std::move(completion));
  }
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
