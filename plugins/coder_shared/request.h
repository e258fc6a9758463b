// What every coder's plugin.cc does with a request of the host.
#pragma once

#include <kgrpo/coder.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/support/coder_answer.h>

#include <chrono>
#include <string>

namespace kgrpo::coder_shared {

// Throws Error(KGRPO_ERROR_INVALID), which names the plugin, unless the request has all members and a problem.
inline void RequireWhole(const kgrpo_coder_request* request, const std::string& plugin) {
  if (request == nullptr || !KGRPO_HAS_MEMBER(request, kgrpo_coder_request, truncated) || request->problem == nullptr)
    throw Error(KGRPO_ERROR_INVALID, plugin + ": a request without a problem, or with too few members");
}

// Likewise, unless there is someone to answer.
inline void RequireWhole(const kgrpo_coder_request* request, const kgrpo_coder_done& done, const std::string& plugin) {
  RequireWhole(request, plugin);
  if (done.done == nullptr) throw Error(KGRPO_ERROR_INVALID, plugin + ": a request without a callback");
}

// Answers on the caller's thread with what `implement` returns, a CoderAnswer, and the time that it took.
template <typename Function>
void AnswerAtOnce(const kgrpo_coder_done& done, Function implement) {
  const auto start = std::chrono::steady_clock::now();
  CoderAnswer answer = implement();
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  answer.attempts = 1;
  const kgrpo_coder_answer c = answer.ToC();
  done.done(done.context, &c, nullptr);
}

}  // namespace kgrpo::coder_shared
