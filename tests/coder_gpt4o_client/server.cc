#include "server.h"

#include <algorithm>
#include <condition_variable>
#include <nlohmann/json.hpp>
#include <utility>

namespace kgrpo::coder_gpt4o {
namespace {

using nlohmann::json;

constexpr int kBacklog = 256;
constexpr int kThreads = 40;  // of the server: a connection holds one

std::string Event(const json& object) { return "data: " + object.dump() + "\n\n"; }

json Usage() { return {{"prompt_tokens", 11}, {"completion_tokens", 7}, {"total_tokens", 18}}; }

}  // namespace

Server::Server(const std::string& certificate_file, const std::string& key_file, Reply reply)
    : Server(std::make_unique<httplib::SSLServer>(certificate_file.c_str(), key_file.c_str()), "https",
             std::move(reply), 0) {}

Server::Server(std::unique_ptr<httplib::Server> server, std::string scheme, Reply reply, int port)
    : server_(std::move(server)), scheme_(std::move(scheme)), reply_(std::move(reply)) {
  server_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server_->set_keep_alive_max_count(1000000);
  server_->set_payload_max_length(size_t{1} << 30);
  server_->set_tcp_nodelay(true);
  server_->Post("/v1/chat/completions", [this](const auto& request, auto& response) { Answer(request, response); });
  int listener = -1;
  server_->set_socket_options([&](int socket) { listener = socket; });
  port_ = port == 0 ? server_->bind_to_any_port("127.0.0.1") : server_->bind_to_port("127.0.0.1", port) ? port : -1;
  listen(listener, kBacklog);  // cpp-httplib's is 5: of many connections at once, some would wait a second
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  while (!server_->is_running()) std::this_thread::yield();
}

Server::~Server() {
  server_->stop();
  thread_.join();
}

void Server::Answer(const httplib::Request& request, httplib::Response& response) {
  int attempt = 0;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    attempt = ++attempts_[json::parse(request.body).at("messages").dump()];
    most_ = std::max(most_, ++now_);
  }
  reply_(request, response, attempt);
  const std::lock_guard lock(mutex_);
  --now_;
}

std::vector<httplib::Request> Server::Requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int Server::MostAtOnce() const {
  const std::lock_guard lock(mutex_);
  return most_;
}

std::vector<std::string> Prompts(int count) {
  std::vector<std::string> prompts;
  for (int i = 0; i < count; ++i) prompts.push_back("prompt " + std::to_string(i));
  return prompts;
}

std::string WholeAnswer(const std::string& text, const std::string& finish_reason) {
  return json{
      {"model", "model-1"},
      {"choices",
       {{{"index", 0}, {"message", {{"role", "assistant"}, {"content", text}}}, {"finish_reason", finish_reason}}}},
      {"usage", Usage()}}
      .dump();
}

std::string StreamedAnswer(const std::string& text, const std::string& finish_reason) {
  std::string stream = ": a comment, as proxies send it\n\n";
  const json nothing;
  const auto choice = [&](const json& delta, const json& reason) {
    stream += Event({{"model", "model-1"},
                     {"choices", {{{"index", 0}, {"delta", delta}, {"finish_reason", reason}}}},
                     {"usage", nothing}});
  };
  choice({{"role", "assistant"}, {"content", ""}}, nothing);
  constexpr size_t kPiece = 1000;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.size(), at + kPiece);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      ++end;  // json refuses half a character
    choice({{"content", text.substr(at, end - at)}}, nothing);
    at = end;
  }
  choice(json::object(), finish_reason);
  return stream + Event({{"choices", json::array()}, {"usage", Usage()}}) + "data: [DONE]\n\n";
}

std::string ErrorBody(const std::string& message, const std::string& code) {
  return json{{"error", {{"message", message}, {"code", code}, {"type", ""}}}}.dump();
}

void AnswerRight(const httplib::Request& request, httplib::Response& response, const std::string& text) {
  const bool stream = json::parse(request.body).value("stream", false);
  response.set_content(stream ? StreamedAnswer(text) : WholeAnswer(text),
                       stream ? "text/event-stream" : "application/json");
}

void AnswerError(httplib::Response& response, int status, const std::string& body) {
  response.status = status;
  response.set_content(body, "application/json");
}

ClientOptions QuickOptions(const std::string& url) {
  for (const char* proxy : {"http_proxy", "https_proxy", "all_proxy"}) unsetenv(proxy);
  ClientOptions options;
  options.base_url = url;
  options.allow_plain_http = true;  // to a name that does not exist, or by a proxy
  options.api_key = "sk-test-0123456789";
  options.backoff_base_seconds = 0.002;
  options.backoff_cap_seconds = 0.01;
  options.probe_pause_seconds = 0.01;
  options.probe_pause_cap_seconds = 0.02;
  options.max_first_outage_seconds = 20;
  options.max_outage_seconds = 20;
  options.total_timeout_seconds = 60;
  return options;
}

CompletionRequest Prompt(const std::string& prompt) {
  const json message = {{"role", "user"}, {"content", prompt}};
  return {json{{"model", "model-1"}, {"messages", {message}}}.dump(), 100};
}

std::vector<Completion> AskAll(CompletionClient& client, const std::vector<std::string>& prompts) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Completion> completions(prompts.size());
  size_t left = prompts.size();
  for (size_t i = 0; i < prompts.size(); ++i) {
    client.Send(Prompt(prompts[i]), [&, i](Completion completion) {
      const std::lock_guard lock(mutex);
      completions[i] = std::move(completion);
      if (--left == 0) changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
  return completions;
}

Completion Ask(CompletionClient& client, const std::string& prompt) { return AskAll(client, {prompt}).front(); }

Notices::Notices(ClientOptions& options) {
  options.notice = [this](const std::string& message) {
    const std::lock_guard lock(mutex_);
    all_ += message + "\n";
  };
}

std::string Notices::All() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

}  // namespace kgrpo::coder_gpt4o
