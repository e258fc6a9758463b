// Blocks all signals for this thread while the object lives. Threads started meanwhile inherit the mask, so that
// signals go to the host's own threads only. Used where the coder starts threads.
#ifndef KGRPO_CODER_GPT4O_CLIENT_SIGNALS_BLOCKED_H
#define KGRPO_CODER_GPT4O_CLIENT_SIGNALS_BLOCKED_H

#include <csignal>

namespace kgrpo::coder_gpt4o {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace kgrpo::coder_gpt4o
#endif
