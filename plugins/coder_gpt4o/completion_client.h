// The client of a service that speaks OpenAI's chat completions: many calls in flight on one thread of its own, with
// limits, retries and a circuit breaker. Called by the plugin for every request to the coder; docs/coder_service.md
// describes it for operators.
//
// A call waits for a free place (max_concurrency), for the rate limits and for the breaker; then it is posted. A
// temporary failure is retried after a backoff with full jitter, at most max_attempts times and only as fast as the
// retry budget allows. While the service as a whole is down, calls neither fail nor are sent: they wait, one at a time
// probes, and only an outage of max_outage_seconds ends the run.
#ifndef KGRPO_CODER_GPT4O_COMPLETION_CLIENT_H
#define KGRPO_CODER_GPT4O_COMPLETION_CLIENT_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::coder_gpt4o {

// Everything of the wire. The defaults are for OpenAI's service. The options' schema holds the ranges: none is checked.
struct ClientOptions {
  // --- where, and as whom ---
  // An http or https URL; "/chat/completions" is appended to its path, and its query is kept (Azure's api-version).
  std::string base_url = "https://api.openai.com/v1";
  std::string api_key;                           // the key itself; empty: none is sent
  std::string api_key_header = "Authorization";  // sent there as "Bearer KEY"; in another header the key stands alone
  // Further headers, organisation and project among them. Their values count as secrets: no message holds one.
  std::vector<std::pair<std::string, std::string>> headers;
  // As curl's --proxy; nullopt: http_proxy, https_proxy, all_proxy and no_proxy of the environment; "": no proxy.
  // A base_url on this machine is asked without one, whatever is written here.
  std::optional<std::string> proxy;
  // As curl's --cacert and --capath; both empty: CURL_CA_BUNDLE, SSL_CERT_FILE or SSL_CERT_DIR of the environment,
  // else the system's.
  std::string ca_file;
  std::string ca_directory;

  // --- how much at once ---
  uint32_t max_concurrency = 32;
  double requests_per_minute = 0;  // 0: only what the service's own headers tell
  double tokens_per_minute = 0;    // 0: likewise

  // --- one attempt ---
  bool stream = true;                     // server-sent events, so that a stalled answer is noticed while it stalls
  bool stream_usage = true;               // ask for token counts in a stream; given up for servers that reject it
  double connect_timeout_seconds = 20;    // name, connection, TLS
  double response_timeout_seconds = 120;  // from sending to the answer's first byte; of a stream only
  double idle_timeout_seconds = 60;       // without a byte, after the first; of a stream only
  double total_timeout_seconds = 600;     // the whole attempt
  uint64_t max_answer_bytes = uint64_t{64} << 20;

  // --- retries ---
  uint32_t max_attempts = 8;          // of one request; those that an outage ate are not counted
  double backoff_base_seconds = 0.5;  // the n-th retry waits uniform(0, min(cap, base * 2^(n-1)))
  double backoff_cap_seconds = 30;
  double retry_budget_ratio = 0.5;     // retries earned by each request, for a minute
  double retry_budget_per_second = 1;  // retries earned by time, up to the reserve
  double retry_budget_reserve = 32;    // retries that are there at first

  // --- outages ---
  // So many failures with no answer between, of three requests or more, open it; while the service has never been
  // reached, as many or max_attempts, of however few requests.
  uint32_t breaker_failures = 8;
  double breaker_pause_seconds = 5;  // before the first probe; doubled after each that fails
  double breaker_pause_cap_seconds = 60;
  double max_outage_seconds = 3600;      // then what waits is answered kFatal
  double max_first_outage_seconds = 60;  // the same while the service has never been reached: a wrong base_url

  uint64_t seed = 0;  // the run's; draws the jitter

  // Receives messages for an operator: pauses, resumptions, discovered limits. No secrets. Called on the client's
  // thread; must not throw. Empty: nobody reads.
  std::function<void(const std::string& message)> notice;
  // Likewise: each attempt that is made again, and why.
  std::function<void(const std::string& message)> retry_notice;
};

// Of a request's attempts: those that the service took on but that gave no answer.
struct Losses {
  uint32_t attempts = 0;
  uint32_t silent = 0;  // of them: those of which no text came
  uint64_t bytes = 0;   // of text that the others brought
};

struct CompletionRequest {
  std::string body;  // the JSON object to POST, without "stream" and "stream_options": the client adds what it needs
  uint64_t tokens_at_most = 0;  // prompt estimate + max_tokens, for the tokens-a-minute limit
  // Both on the client's thread; empty: nobody asks. `may_send`: before each attempt; false: the request is answered
  // kFailed, its failure is "budget". `waits`: the attempt failed; no request is in flight until the next one.
  std::function<bool(const Losses& so_far)> may_send = {};
  std::function<void(const Losses& so_far)> waits = {};
};

struct Answer {
  std::string text;           // the content, whole
  std::string refusal;        // the service's own refusal text, if any
  std::string finish_reason;  // "stop", "length", "content_filter", ...; empty where the answer said none
  std::string model;          // the model that answered, in the service's words; may be empty
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;
  bool usage_known = false;  // whether the service said how many tokens there were
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
  double seconds = 0;         // from Send to now, waiting and retries included
  double answer_seconds = 0;  // of the last attempt alone
  uint32_t attempts = 0;
  // Of the attempts: those that the service took on but that gave no answer, which it may well bill. It took on one
  // that it began to answer with a success, or that was sent whole and then timed out or was cancelled. One whose
  // connection was closed before a word, or that was answered by a web page, is none.
  uint32_t lost_attempts = 0;
  uint64_t lost_bytes = 0;   // of text that those brought
  uint32_t lost_silent = 0;  // of the lost attempts: those of which no text came
  std::string last_loss;     // why the last of the lost ones gave no answer, for people
  int http_status = 0;       // of the last attempt; 0: no HTTP answer
  std::string failure;       // why there is no answer, in a word that metrics can count; see client/failure.h
  std::string message;       // why there is no answer, for people; never holds a secret
};

// Owns one thread. Send and Cancel: [any thread], from within a callback too. Callbacks run on the client's
// thread, one at a time; they must neither throw, nor block for long, nor destroy the client.
class CompletionClient {
 public:
  // Throws kgrpo::Error(KGRPO_ERROR_INVALID) where an option makes no sense: a malformed base_url, a line break in a
  // header, a missing CA file. Sends nothing. With a key, this process writes no core dumps from here on, and others of
  // its user can neither trace it nor read its environment in /proc.
  explicit CompletionClient(const ClientOptions& options);

  // Cancels what is in flight, answers it, joins the thread.
  ~CompletionClient();

  CompletionClient(const CompletionClient&) = delete;
  CompletionClient& operator=(const CompletionClient&) = delete;

  // Calls done exactly once, later, never from within Send. Throws kgrpo::Error(KGRPO_ERROR_INVALID) where the body is
  // no JSON object; done is not called then.
  void Send(CompletionRequest request, std::function<void(Completion)> done);

  // Everything sent before is answered soon, with kCancelled unless its answer had come. What is sent later goes out.
  void Cancel();

  // The address that requests are posted to, without the query: for people. [any thread]
  const std::string& Address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kgrpo::coder_gpt4o
#endif
