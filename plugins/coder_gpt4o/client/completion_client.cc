#include "coder_gpt4o/completion_client.h"

#include <kgrpo/sdk/error.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <system_error>

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

CompletionClient::CompletionClient(const ClientOptions& options) : dispatcher_(std::make_unique<Dispatcher>(options)) {
  CloseToOthers(options);
}
CompletionClient::~CompletionClient() = default;

void CompletionClient::Send(CompletionRequest request, std::function<void(Completion)> done) {
  dispatcher_->Send(std::move(request), std::move(done));
}

void CompletionClient::Cancel() { dispatcher_->Cancel(); }

const std::string& CompletionClient::Address() const { return dispatcher_->Address(); }

}  // namespace kgrpo::coder_gpt4o
