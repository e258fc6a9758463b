// The service's URL, headers, proxy and certificates, as curl needs them. They are checked once and shared by all
// attempts. Used by transfer.cc.
#pragma once

#include <curl/curl.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coder_gpt4o/client/redaction.h"
#include "coder_gpt4o/completion_client.h"

namespace kgrpo::coder_gpt4o {

class Endpoint {
 public:
  // Throws Error(KGRPO_ERROR_INVALID) that says which option is wrong and what to write instead. `on_connect`: called
  // on the client's thread whenever a connection is about to be made, its name resolved.
  Endpoint(const ClientOptions& options, std::function<void()> on_connect);

  Endpoint(const Endpoint&) = delete;  // curl holds its address
  Endpoint& operator=(const Endpoint&) = delete;

  const std::string& Url() const { return shown_url_; }  // for messages: without the query
  // Advice for messages when the service is not found; empty if base_url looks complete.
  const std::string& PathHint() const { return path_hint_; }
  // For messages: the key, the headers' values, the proxy's password.
  const Redaction& Secrets() const { return secrets_; }
  const Redaction& Key() const { return key_; }  // the key only: a header's value may be a word of a kernel

  // Sends this key with the attempts prepared from now on. Throws Error(KGRPO_ERROR_INVALID) if it is not one.
  void SetKey(const std::string& key);

  // Sets everything on `easy` that does not differ between attempts. The endpoint outlives the handle.
  void Prepare(CURL* easy) const;

 private:
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  using List = std::unique_ptr<curl_slist, FreeList>;

  void HideQuery();
  void HideProxyPassword(const std::string& proxy);
  static void AddHeader(List& list, const std::string& line);
  static curl_socket_t OpenSocket(void* self, curlsocktype purpose, curl_sockaddr* address);

  ClientOptions options_;  // without the key, which the header list contains
  std::string url_;
  std::string shown_url_;
  std::string path_hint_;
  bool this_machine_ = false;       // the service is on it
  std::string ca_file_;             // certificates, of the environment or the system
  std::vector<std::string> lines_;  // the headers without the key
  std::vector<List> headers_;       // the last one is in use; attempts in flight may have earlier ones
  Redaction secrets_;
  Redaction key_;
  std::function<void()> on_connect_;
};

}  // namespace kgrpo::coder_gpt4o
