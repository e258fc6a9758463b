// Sinks that pass a plugin's results to C++ code, and carry that code's exceptions past the plugin's frames. Used by
// the wrappers of instances.h.
#ifndef KGRPO_PLUGIN_SINKS_H
#define KGRPO_PLUGIN_SINKS_H

#include <kgrpo/policy.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <cstdint>
#include <exception>
#include <string>
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

// `receive` gets all that is pushed, with the arguments of the sink's function.
template <typename Receive>
struct Receiver {
  Carrier carrier;
  Receive receive;
};
template <typename Receive>
Receiver(Carrier, Receive) -> Receiver<Receive>;

// The sink of C, {context, function}, whose function passes its arguments to the receiver.
template <typename Sink, typename R, typename... Pushed>
Sink SinkOf(void (*Sink::*)(void*, Pushed...), R& receiver) {
  return {&receiver, [](void* context, Pushed... pushed) {
            auto* self = static_cast<R*>(context);
            self->carrier.Run([&] { self->receive(pushed...); });
          }};
}

// Calls `call(sink)` and returns all the text it pushed.
template <typename Call>
std::string CollectText(Call call) {
  std::string collected;
  Receiver receiver{Carrier(), [&](kgrpo_str text) { collected += View(text); }};
  receiver.carrier.Finish(call(SinkOf(&kgrpo_text_sink::put, receiver)));
  return collected;
}

template <typename Call>
std::vector<int32_t> CollectTokens(Call call) {
  std::vector<int32_t> collected;
  Receiver receiver{Carrier(),
                    [&](const int32_t* ids, size_t count) { collected.insert(collected.end(), ids, ids + count); }};
  receiver.carrier.Finish(call(SinkOf(&kgrpo_token_sink::put, receiver)));
  return collected;
}

}  // namespace kgrpo
#endif
