// A coder answers each request exactly once, with a new kernel or a reason, also when it is cancelled.
#include <kgrpo/sdk/text.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "plugin/records.h"
#include "plugin/sinks.h"
#include "validate/calls.h"
#include "validate/made_up.h"

namespace kgrpo::validate {
namespace {

constexpr size_t kMostSuggestions = 16;

// A request and its answer. Never freed: a plugin that answers twice may do so late.
class Asked {
 public:
  Asked(const std::string& suggestion, uint64_t seed) : suggestion_(suggestion), current_(CorrectKernel(1e-3)) {
    request_.struct_size = sizeof(request_);
    request_.problem = &MadeUpProblem();
    request_.code_a = request_.code_b = Str(MadeUpKernel());
    request_.suggestion = Str(suggestion_);
    request_.current = &current_;
    request_.seed = seed;
  }

  void Ask(const kgrpo_coder_interface& api, kgrpo_coder* coder) {
    kgrpo_error* error = api.implement(coder, &request_, {this, Done});
    if (error == nullptr) return;
    const std::string refusal = TakeMessage(error);
    const std::lock_guard lock(mutex_);
    if (times_ > 0) Fail("implement called done and yet returned an error");
    refusal_ = refusal;
    times_ = 1;
  }

  // Returns true if the answer is a new kernel. Throws if the answer is wrong or late.
  bool Judge(double seconds) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return times_ > 0; }))
      Fail("a request was not answered within " + Shown(seconds) + " s");
    if (times_ > 1) Fail("a request was answered twice");
    if (!mistake_.empty()) Fail(mistake_);
    return is_new_;
  }
  bool AnsweredTwice() const {
    const std::lock_guard lock(mutex_);
    return times_ > 1;
  }
  std::string refusal() const {
    const std::lock_guard lock(mutex_);
    return refusal_;
  }

 private:
  static void Done(void* context, const kgrpo_coder_answer* answer, kgrpo_error* error) {
    auto* self = static_cast<Asked*>(context);
    const std::lock_guard lock(self->mutex_);
    ++self->times_;
    try {
      if (error != nullptr) {
        self->refusal_ = TakeMessage(error);
        if (answer != nullptr) Fail("it delivered both an answer and an error");
      } else {
        if (answer == nullptr) Fail("it delivered neither an answer nor an error");
        const CoderAnswer copied = CoderAnswer::FromC(*answer);
        if (copied.source == MadeUpKernel())
          Fail("it returned the kernel that it was given as a new one: answer not_applicable instead");
        if (copied.outcome != KGRPO_CODER_OK && copied.message.empty())
          Fail(std::string("the outcome \"") + CoderOutcomeName(copied.outcome) + "\" came without a message");
        if (!std::isfinite(copied.cost) || copied.cost < 0) Fail("it reports a cost of " + Shown(copied.cost));
        self->is_new_ = copied.outcome == KGRPO_CODER_OK;
      }
    } catch (const std::exception& mistake) {
      self->mistake_ = mistake.what();
    }
    self->changed_.notify_all();
  }

  std::string suggestion_;
  kgrpo_evaluation current_;
  kgrpo_coder_request request_{};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int times_ = 0;
  bool is_new_ = false;
  std::string mistake_, refusal_;
};

std::vector<std::string> SuggestionsOf(const kgrpo_coder_interface& api, const kgrpo_coder* coder) {
  std::vector<std::string> suggestions;
  Receiver receiver{Carrier(), [&](kgrpo_str text) { suggestions.emplace_back(View(text)); }};
  if (kgrpo_error* error = api.suggestions(coder, SinkOf(&kgrpo_text_sink::put, receiver))) Fail(TakeMessage(error));
  return suggestions;
}

std::string PushedText(const std::function<kgrpo_error*(kgrpo_text_sink)>& call) {
  std::string text;
  Receiver receiver{Carrier(), [&](kgrpo_str piece) { text += View(piece); }};
  if (kgrpo_error* error = call(SinkOf(&kgrpo_text_sink::put, receiver))) Fail(TakeMessage(error));
  return text;
}

}  // namespace

void CheckCoder(Session& session, const kgrpo_coder_interface& api, kgrpo_coder* coder, const CallContext& context) {
  static auto* asked = new std::list<Asked>;  // see Asked
  const double patience = context.options.seconds / 3.0;
  std::vector<std::string> suggestions = {"Load four floats at once with float4."};

  if (api.suggestions != nullptr) {
    session.Check("coder: suggestions are the same each time", [&] {
      const std::vector<std::string> first = SuggestionsOf(api, coder);
      OnTwoThreads([&] {
        if (SuggestionsOf(api, coder) != first) Fail("another call pushed others, or in another order");
      });
      if (!first.empty()) suggestions = first;
      return std::to_string(first.size()) + " suggestions";
    });
  }
  if (api.describe != nullptr) {
    session.Check("coder: describe is one line", [&] {
      const std::string text = PushedText([&](kgrpo_text_sink sink) { return api.describe(coder, sink); });
      if (text.find('\n') != std::string::npos) Fail("it has several");
      return text;
    });
  }
  if (api.spending != nullptr) {
    session.Check("coder: spending is a sum of money", [&] {
      kgrpo_coder_spending spending{};
      spending.struct_size = sizeof(spending);
      if (kgrpo_error* error = api.spending(coder, &spending)) Fail(TakeMessage(error));
      if (!(spending.lost_cost >= 0 && spending.cost >= spending.lost_cost && std::isfinite(spending.cost)))
        Fail("it reports a cost of " + Shown(spending.cost) + ", of it lost " + Shown(spending.lost_cost));
      return "$" + Shown(spending.cost);
    });
  }

  const bool sends = api.describe_request != nullptr;
  const auto skip_unless_allowed = [&] {
    if (sends && !context.options.send)
      Skip("it sends requests to a service, which may cost money: allow it with --send");
  };
  session.Check("coder: implement answers each request once", [&]() -> std::string {
    skip_unless_allowed();
    std::vector<Asked*> now;
    for (size_t i = 0; i < std::min(suggestions.size(), sends ? 1 : kMostSuggestions); ++i) {
      now.push_back(&asked->emplace_back(suggestions[i], i));
      now.back()->Ask(api, coder);
    }
    size_t kernels = 0;
    std::string refusal;
    for (Asked* request : now) {
      kernels += request->Judge(patience) ? 1 : 0;
      if (refusal.empty()) refusal = request->refusal();
    }
    if (kernels == 0) Warn(refusal.empty() ? "no suggestion led to a new kernel" : "refused: " + refusal);
    return std::to_string(kernels) + " of " + std::to_string(now.size()) + " requests led to a new kernel";
  });
  session.Check("coder: implement may be called from two threads", [&]() -> std::string {
    if (sends) Skip("it sends requests to a service");
    OnTwoThreads([&] {
      Asked* request = nullptr;
      {
        static std::mutex mutex;
        const std::lock_guard lock(mutex);
        request = &asked->emplace_back(suggestions[0], 1);
      }
      request->Ask(api, coder);
      request->Judge(patience);
    });
    return "";
  });
  session.Check("coder: cancel has each request answered", [&]() -> std::string {
    if (sends) Skip("it sends requests to a service");
    std::vector<Asked*> now;
    for (size_t i = 0; i < 4; ++i) {
      now.push_back(&asked->emplace_back(suggestions[i % suggestions.size()], i));
      now.back()->Ask(api, coder);
    }
    api.cancel(coder);
    for (Asked* request : now) request->Judge(patience);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (const Asked& request : *asked) {
      if (request.AnsweredTwice()) Fail("a request was answered twice");
    }
    return "";
  });
}

}  // namespace kgrpo::validate
