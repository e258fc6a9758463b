// A chat-completions service on this machine whose answers a test sets, over HTTP or HTTPS, and helpers to call it.
// Used by the tests of this folder and of coder_gpt4o.
#ifndef KGRPO_TESTS_CODER_GPT4O_CLIENT_SERVER_H
#define KGRPO_TESTS_CODER_GPT4O_CLIENT_SERVER_H

#include <httplib.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "coder_gpt4o/completion_client.h"

namespace kgrpo::coder_gpt4o {

class Server {
 public:
  // Called on one of the server's threads. `attempt` counts the requests with this prompt, from 1.
  using Reply = std::function<void(const httplib::Request& request, httplib::Response& response, int attempt)>;

  // `port`: 0 for any that is free.
  explicit Server(Reply reply, int port = 0)
      : Server(std::make_unique<httplib::Server>(), "http", std::move(reply), port) {}
  Server(const std::string& certificate_file, const std::string& key_file, Reply reply);
  ~Server();

  std::string Url() const { return scheme_ + "://127.0.0.1:" + std::to_string(port_) + "/v1"; }
  int Port() const { return port_; }
  std::vector<httplib::Request> Requests() const;
  size_t Count() const { return Requests().size(); }
  int MostAtOnce() const;

 private:
  Server(std::unique_ptr<httplib::Server> server, std::string scheme, Reply reply, int port);
  void Answer(const httplib::Request& request, httplib::Response& response);

  std::unique_ptr<httplib::Server> server_;
  std::string scheme_;
  Reply reply_;
  int port_ = 0;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::vector<httplib::Request> requests_;  // guarded
  std::map<std::string, int> attempts_;     // guarded, by the request's prompt
  int now_ = 0;                             // guarded
  int most_ = 0;                            // guarded
};

// "prompt 0", "prompt 1", ...
std::vector<std::string> Prompts(int count);

// Bodies of answers.
std::string WholeAnswer(const std::string& text, const std::string& finish_reason = "stop");
std::string StreamedAnswer(const std::string& text, const std::string& finish_reason = "stop");
std::string ErrorBody(const std::string& message, const std::string& code = "");

// Sets a valid answer, streamed if the request asks for a stream.
void AnswerRight(const httplib::Request& request, httplib::Response& response, const std::string& text);
void AnswerError(httplib::Response& response, int status, const std::string& body);

// A variable of the environment, during a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// Options for a server on this machine, with all pauses short enough for a test and no proxy.
ClientOptions QuickOptions(const std::string& url);

// The body of a request with this prompt.
CompletionRequest Prompt(const std::string& prompt);

// Sends all prompts and waits for their answers. Returns them in the order of the prompts.
std::vector<Completion> AskAll(CompletionClient& client, const std::vector<std::string>& prompts);
Completion Ask(CompletionClient& client, const std::string& prompt = "hello");

// Collects the client's notices for the operator.
class Notices {
 public:
  explicit Notices(ClientOptions& options);
  std::string All() const;

 private:
  mutable std::mutex mutex_;
  std::string all_;  // guarded
};

}  // namespace kgrpo::coder_gpt4o
#endif
