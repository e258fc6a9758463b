// Sinks that pass a plugin's results to C++ code, and carry that code's exceptions past the plugin's frames. Used by
// the wrappers of instances.h.
#ifndef KGRPO_PLUGIN_SINKS_H
#define KGRPO_PLUGIN_SINKS_H

#include <kgrpo/draft/evaluator_tools.h>
#include <kgrpo/policy.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo {

// Holds an exception of a sink's receiver until the plugin has returned: none may pass through the plugin's frames.
class Carrier {
 public:
  template <typename Body>
  void Run(Body&& body) noexcept {
    if (thrown_ != nullptr) return;
    try {
      body();
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  // Call it once the plugin has returned. Throws the receiver's exception, else the plugin's error.
  void Finish(kgrpo_error* error) {
    if (thrown_ == nullptr) return Check(error);
    if (error != nullptr) error->release(error);
    std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
};

// A sink that hands what is pushed to `receive`.
template <typename Receive>
struct Receiver {
  Carrier carrier;
  Receive receive;
};
template <typename Receive>
Receiver(Carrier, Receive) -> Receiver<Receive>;

template <typename R>
kgrpo_text_sink TextSink(R& receiver) {
  return {&receiver, [](void* context, kgrpo_str text) {
            auto* self = static_cast<R*>(context);
            self->carrier.Run([&] { self->receive(View(text)); });
          }};
}

template <typename R>
kgrpo_token_sink TokenSink(R& receiver) {
  return {&receiver, [](void* context, const int32_t* ids, size_t count) {
            auto* self = static_cast<R*>(context);
            self->carrier.Run([&] { self->receive(std::span(ids, count)); });
          }};
}

template <typename R>
kgrpo_evaluation_sink EvaluationSink(R& receiver) {
  return {&receiver, [](void* context, const kgrpo_evaluation* evaluation) {
            auto* self = static_cast<R*>(context);
            self->carrier.Run([&] { self->receive(*evaluation); });
          }};
}

template <typename R>
kgrpo_problem_finding_sink FindingSink(R& receiver) {
  return {&receiver, [](void* context, const kgrpo_problem_finding* finding) {
            auto* self = static_cast<R*>(context);
            self->carrier.Run([&] { self->receive(*finding); });
          }};
}

// Calls `call(sink)` and returns all the text it pushed.
template <typename Call>
std::string CollectText(Call call) {
  std::string collected;
  Receiver receiver{Carrier(), [&](std::string_view text) { collected += text; }};
  receiver.carrier.Finish(call(TextSink(receiver)));
  return collected;
}

template <typename Call>
std::vector<int32_t> CollectTokens(Call call) {
  std::vector<int32_t> collected;
  Receiver receiver{Carrier(),
                    [&](std::span<const int32_t> ids) { collected.insert(collected.end(), ids.begin(), ids.end()); }};
  receiver.carrier.Finish(call(TokenSink(receiver)));
  return collected;
}

}  // namespace kgrpo
#endif
