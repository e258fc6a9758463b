// The client of a service with OpenAI's chat completions API: many calls in flight on one thread of its own, with
// limits, retries and probes during outages. Called by the plugin for every request to the coder; docs/coder_service.md
// describes it for operators.
//
// A call waits for a free place (max_concurrency) and for the rate limits; then it is posted. A
// temporary failure is retried after a backoff with full jitter, at most max_attempts times. During an outage of the
// whole service calls wait, and one at a time is sent as a probe. Only an outage of max_outage_seconds ends the run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::coder_gpt4o {

// Settings of the connection, with defaults for OpenAI's service. Ranges are not checked here but by the options'
// schema.
struct ClientOptions {
  // --- address and credentials ---
  // An http or https URL; "/chat/completions" is appended to its path, and its query is kept (Azure's api-version).
  // Proxies and a file of certificates come from the environment, as for the curl command.
  std::string base_url = "https://api.openai.com/v1";
  std::string api_key;          // the key itself; empty: no key is sent
  std::string api_key_command;  // if set, a shell command that writes the key; run again when the service refuses it
  std::string api_key_header = "Authorization";  // this one sends "Bearer KEY", any other header the key alone
  // Further headers, including organisation and project. Their values are secrets and removed from all messages.
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> secrets;  // of these values, those that are removed from answers too, as the key is
  bool allow_plain_http = false;     // send secrets over http to other machines too

  // --- concurrency and rate limits ---
  uint32_t max_concurrency = 32;

  // --- one attempt ---
  bool stream = true;                     // server-sent events, so that a stalled answer is noticed early
  bool stream_usage = true;               // ask for token counts in a stream; stopped if the server rejects it
  double connect_timeout_seconds = 20;    // name lookup, connection, TLS
  double response_timeout_seconds = 120;  // from sending to the answer's first byte; streams only
  double idle_timeout_seconds = 60;       // without a byte, after the first; streams only
  double total_timeout_seconds = 600;     // the whole attempt
  uint64_t max_answer_bytes = uint64_t{64} << 20;

  // --- retries ---
  uint32_t max_attempts = 8;          // of one request; attempts during an outage do not count
  double backoff_base_seconds = 0.5;  // the n-th retry waits uniform(0, min(cap, base * 2^(n-1)))
  double backoff_cap_seconds = 30;

  // --- outages ---
  // Consecutive failures, of at least three requests, that are an outage. Until the service is first reached, the
  // smaller of this and max_attempts, of any number of requests.
  uint32_t outage_failures = 8;
  double probe_pause_seconds = 5;  // before the first probe; doubled after each that fails
  double probe_pause_cap_seconds = 60;
  double max_outage_seconds = 3600;      // after this, waiting requests are answered kFatal
  double max_first_outage_seconds = 60;  // the same while the service has never been reached: a wrong base_url

  uint64_t seed = 0;  // the run's seed, for the jitter

  // Receives messages for an operator: pauses, resumptions, discovered limits. They hold no secrets. Called on the
  // client's thread; must not throw. May be empty.
  std::function<void(const std::string& message)> notice;
  // Likewise, a message for each retry and its reason.
  std::function<void(const std::string& message)> retry_notice;
};

// A request's attempts that the service accepted but that gave no answer; it may bill them. An attempt counts if a
// successful answer began, or if it was sent completely and then timed out or was cancelled. It does not count if the
// connection closed before any response, or if the response was a web page.
struct Losses {
  uint32_t attempts = 0;
  uint32_t silent = 0;  // of these attempts, those without any text
  uint64_t bytes = 0;   // of text received by the others
};

// Whether an attempt may be sent.
enum class Leave {
  kSend,
  kWait,   // this request and later ones wait until one in flight has its outcome
  kNever,  // the request is answered kFailed, with the failure "budget"
};

struct CompletionRequest {
  std::string body;  // the JSON object to POST, without "stream" and "stream_options": the client adds what it needs
  uint64_t tokens_at_most = 0;  // prompt estimate + max_tokens, for the tokens-a-minute limit
  // Both are called on the client's thread and may be empty. `may_send`: called before each attempt. `waits`: called
  // when an attempt failed and will be retried; this request is not in flight until then.
  std::function<Leave(const Losses& so_far)> may_send = {};
  std::function<void(const Losses& so_far)> waits = {};
};

struct Answer {
  std::string text;              // the content, whole
  std::string refusal;           // the service's own refusal text, if any
  std::string finish_reason;     // "stop", "length", "content_filter", ...; empty if the answer had none
  std::string model;             // the model's name in the answer; may be empty
  std::string remark;            // why the answer has no text, for messages
  uint64_t reasoning_bytes = 0;  // of thoughts that came outside of the content
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;      // of prompt_tokens, those read from the service's cache
  uint64_t completion_tokens = 0;  // reasoning included
  uint64_t total_tokens = 0;
  bool usage_known = false;    // the service reported both counts; else those that are 0 are unknown
  std::optional<double> cost;  // US dollars, if the service stated it
};

// The outcome of a request.
struct Completion : Answer {
  enum class Outcome {
    kAnswered,   // the service answered: a text, or a refusal
    kFailed,     // no answer to this request: retries used up, or a request the service will not take
    kCancelled,  // by Cancel or the client's end
    kFatal,      // the run cannot go on: a bad key, an unknown model, a wrong certificate, an outage that does not end
  };
  Outcome outcome = Outcome::kFailed;
  double seconds = 0;         // from Send to the outcome, including waiting and retries
  double answer_seconds = 0;  // of the last attempt alone
  uint32_t attempts = 0;
  Losses lost;
  int http_status = 0;  // of the last attempt; 0: no HTTP answer
  std::string failure;  // why there is no answer, as one word; see client/failure.h
  std::string message;  // why there is no answer, or no text in it, for messages; never contains a secret
};

class Dispatcher;

// Owns one thread. Send and Cancel: [any thread], from within a callback too. Callbacks run on the client's
// thread, one at a time; they must neither throw, nor block for long, nor destroy the client.
class CompletionClient {
 public:
  // Throws kgrpo::Error(KGRPO_ERROR_INVALID) for an invalid option: a malformed base_url, a line break in a header, a
  // key over http to another machine. Sends nothing. With a key, this process writes no core dumps from here on, and
  // other processes of its user can neither trace it nor read its environment in /proc.
  explicit CompletionClient(const ClientOptions& options);

  // Cancels and answers all requests, then joins the thread.
  ~CompletionClient();

  CompletionClient(const CompletionClient&) = delete;
  CompletionClient& operator=(const CompletionClient&) = delete;

  // Calls `done` exactly once, later, never from within Send.
  void Send(CompletionRequest request, std::function<void(Completion)> done);

  // Cancels all requests sent so far: each is answered soon, with kCancelled unless its answer is complete. Requests
  // sent later are not affected.
  void Cancel();

  // The address that requests are posted to, without the query, for messages. [any thread]
  const std::string& Address() const;

 private:
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace kgrpo::coder_gpt4o
