// The thread around the dispatcher: an inbox, a wake-up, and an orderly end.
#include "coder_gpt4o/completion_client.h"

#include <kgrpo/sdk/error.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "coder_gpt4o/client/dispatcher.h"

namespace kgrpo::coder_gpt4o {
namespace {

// Forbids core dumps, which would hold the key. The limit alone does not stop a dump that the kernel pipes to a
// program. A process that is not dumpable writes none, and other processes of the same user can read neither its memory
// nor, in /proc, the variable that holds the key. Child processes are dumpable again but inherit the limit. Never
// reverted, because freed memory may still hold the key.
void CloseToOthers(const ClientOptions& options) {
  if (options.api_key.empty() && options.api_key_command.empty()) return;
  rlimit limit = {};
  bool closed = getrlimit(RLIMIT_CORE, &limit) == 0;
  limit.rlim_cur = 0;
  closed = closed && setrlimit(RLIMIT_CORE, &limit) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
  if (closed) return;
  throw Error(KGRPO_ERROR_UNAVAILABLE, "core dumps, which would hold the key, cannot be forbidden (" +
                                           std::generic_category().message(errno) +
                                           "): let this process call setrlimit and prctl(PR_SET_DUMPABLE)");
}

}  // namespace

class CompletionClient::Impl {
 public:
  explicit Impl(const ClientOptions& options) : dispatcher_(options) {
    CloseToOthers(options);
    // The thread inherits the mask, so that signals go to the host's own threads only.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { Run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), "kgrpo-coder");
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    dispatcher_.Wake();
    thread_.join();
  }

  void Send(CompletionRequest request, std::function<void(Completion)> done) {
    {
      const std::lock_guard lock(mutex_);
      inbox_.push_back({next_id_++, std::move(request), std::move(done), Now()});
      if (inbox_.size() > 1) return;  // the first Send has already woken the thread
    }
    dispatcher_.Wake();
  }

  void Cancel() {
    {
      const std::lock_guard lock(mutex_);
      cancel_before_ = next_id_;
    }
    dispatcher_.Wake();
  }

  const Dispatcher& dispatcher() const { return dispatcher_; }

 private:
  struct Sent {
    uint64_t id;
    CompletionRequest request;
    std::function<void(Completion)> done;
    double at;
  };

  void Run() {
    for (;;) {
      std::deque<Sent> inbox;
      uint64_t cancel_before = 0;
      bool stopping = false;
      {
        const std::lock_guard lock(mutex_);
        inbox.swap(inbox_);
        stopping = stopping_;
        cancel_before = stopping ? next_id_ : cancel_before_;
        cancel_before_ = 0;
      }
      if (stopping && inbox.empty() && stopped_) return;
      for (Sent& sent : inbox) dispatcher_.Accept(sent.id, std::move(sent.request), std::move(sent.done), sent.at);
      if (cancel_before > 0) dispatcher_.CancelBefore(cancel_before);
      if (stopping) {
        stopped_ = true;  // callbacks may have sent more requests meanwhile
      } else {
        dispatcher_.Turn();
      }
    }
  }

  Dispatcher dispatcher_;
  std::mutex mutex_;
  std::deque<Sent> inbox_;      // guarded
  uint64_t next_id_ = 1;        // guarded
  uint64_t cancel_before_ = 0;  // guarded
  bool stopping_ = false;       // guarded
  bool stopped_ = false;        // used by the thread only: everything was cancelled once
  std::thread thread_;
};

CompletionClient::CompletionClient(const ClientOptions& options) : impl_(std::make_unique<Impl>(options)) {}
CompletionClient::~CompletionClient() = default;

void CompletionClient::Send(CompletionRequest request, std::function<void(Completion)> done) {
  impl_->Send(std::move(request), std::move(done));
}

void CompletionClient::Cancel() { impl_->Cancel(); }

const std::string& CompletionClient::Address() const { return impl_->dispatcher().Address(); }

}  // namespace kgrpo::coder_gpt4o
