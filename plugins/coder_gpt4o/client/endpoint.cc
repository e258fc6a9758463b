#include "coder_gpt4o/client/endpoint.h"

#include <kgrpo/sdk/error.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "coder_gpt4o/client/excerpt.h"
#include "coder_gpt4o/client/secret_names.h"
#include "coder_shared/text.h"

namespace kgrpo::coder_gpt4o {

using coder_shared::Lower;
namespace {

[[noreturn]] void Refuse(const std::string& option, const std::string& message) {
  throw Error(KGRPO_ERROR_INVALID, "options." + option + ": " + message);
}

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using ParsedUrl = std::unique_ptr<CURLU, FreeUrl>;

std::string Part(const ParsedUrl& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string copy = text;
  curl_free(text);
  return copy;
}

// True for this machine, to which requests need neither TLS nor a proxy. `name`: the host of a URL, without its port;
// IPv6 in brackets.
bool IsLoopback(std::string_view name) {
  const std::string host = Lower(name);
  const bool numbers = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "[::1]" || host == "localhost" || host.ends_with(".localhost") ||
         (numbers && host.starts_with("127."));
}

constexpr const char* kAzureAddress =
    "base_url: https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=VERSION, with the name of the "
    "deployment, not of the model";

// True for a URL of Azure's OpenAI service.
bool IsAzure(std::string_view url) {
  const std::string host = Lower(url.substr(0, url.find_first_of("/?#", std::string_view("https://").size())));
  return host.find(".openai.azure.") != std::string::npos ||
         host.find(".cognitiveservices.azure.") != std::string::npos;
}

// True if the URL of an Azure service names a deployment and api-version, or the newer path that needs neither.
bool IsCompleteAzure(std::string_view url) {
  const std::string lower = Lower(url);
  return lower.find("/openai/v1") != std::string::npos ||
         (lower.find("/openai/deployments/") != std::string::npos && lower.find("api-version=") != std::string::npos);
}

constexpr std::string_view kCall = "/chat/completions";

// The URL {base_url}/chat/completions; a query of base_url is kept.
std::string CompletionsUrl(const std::string& base_url) {
  const std::string example = "; an example: https://api.openai.com/v1";
  const ParsedUrl url(curl_url());
  if (const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, base_url.c_str(), 0); code != CURLUE_OK) {
    // A URL that might hold a password is not repeated.
    const std::string shown =
        base_url.find('@') == std::string::npos ? "'" + Excerpt(base_url.substr(0, base_url.find('?'))) + "'" : "it";
    Refuse("base_url", shown + " is no URL (" + curl_url_strerror(code) + ")" + example);
  }
  const std::string scheme = Part(url, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https")
    Refuse("base_url", "it must begin with https:// or http://, not " + scheme + "://" + example);
  if (!Lower(base_url).starts_with(scheme + "://"))  // curl also accepts "http:/host", unlike the other checks
    Refuse("base_url", "it must begin with " + scheme + ":// and a host" + example);
  if (!Part(url, CURLUPART_USER).empty() || !Part(url, CURLUPART_PASSWORD).empty()) {
    Refuse("base_url",
           "it holds a user or a password: a key belongs into the variable that api_key_env names" + example);
  }
  if (base_url.find('#') != std::string::npos)
    Refuse("base_url", "it has a part behind '#', which is never sent" + example);
  std::string path = Part(url, CURLUPART_PATH);
  while (path.ends_with('/')) path.pop_back();
  if (IsAzure(base_url) && !IsCompleteAzure(base_url))
    Refuse("base_url", std::string("Azure wants the deployment's path and api-version: ") + kAzureAddress);
  if (path.ends_with(kCall)) Refuse("base_url", "it must not end with /chat/completions: it is appended" + example);
  path += kCall;
  curl_url_set(url.get(), CURLUPART_PATH, path.c_str(), 0);
  curl_url_set(url.get(), CURLUPART_FRAGMENT, nullptr, 0);
  return Part(url, CURLUPART_URL);
}

// `url`: of the call, without a query.
std::string PathHintFor(const std::string& url) {
  if (IsAzure(url)) return std::string("; Azure wants ") + kAzureAddress;
  const std::string base = url.substr(0, url.size() - kCall.size());
  const bool has_path = base.find('/', base.find("://") + 3) != std::string::npos;
  return has_path ? "" : "; it has no path, and most services want /v1 at its end: " + base + "/v1";
}

bool IsHeaderName(std::string_view name) {
  constexpr std::string_view kToken = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return !name.empty() && name.find_first_not_of(kToken) == std::string_view::npos;
}

// Control characters would end the header and begin another.
bool IsHeaderValue(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7F; });
}

// The curl command reads these variables; libcurl does not.
std::string FromEnvironment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return {};
}

}  // namespace

Endpoint::Endpoint(const ClientOptions& options, std::function<void()> on_connect)
    : options_(options), on_connect_(std::move(on_connect)) {
  url_ = CompletionsUrl(options.base_url);
  shown_url_ = url_.substr(0, url_.find('?'));
  HideQuery();
  path_hint_ = PathHintFor(shown_url_);
  const ParsedUrl parsed(curl_url());
  curl_url_set(parsed.get(), CURLUPART_URL, url_.c_str(), 0);
  this_machine_ = IsLoopback(Part(parsed, CURLUPART_HOST));
  const bool secret = !options.api_key.empty() || !options.api_key_command.empty() || !options.secrets.empty();
  if (secret && !this_machine_ && !options.allow_plain_http && Part(parsed, CURLUPART_SCHEME) == "http") {
    Refuse("base_url",
           "the key would go to another machine over http, where all on the way can read it: use https, or write "
           "allow_plain_http: true where the network is your own (api_key_env: null for a service that wants no key)");
  }
  ca_file_ = FromEnvironment({"CURL_CA_BUNDLE", "SSL_CERT_FILE"});
  const char* system_file = curl_version_info(CURLVERSION_NOW)->cainfo;
  std::error_code error;
  if (ca_file_.empty() && system_file != nullptr && std::filesystem::exists(system_file, error)) ca_file_ = system_file;

  lines_ = {"Content-Type: application/json",
            options.stream ? "Accept: text/event-stream, application/json" : "Accept: application/json",
            "Expect:"};  // off: a body of a megabyte would first wait for "100 Continue"
  for (const auto& [name, value] : options.headers) {
    if (!IsHeaderName(name)) Refuse("extra_headers", "'" + Excerpt(name) + "' is not a header's name");
    if (!IsHeaderValue(value)) Refuse("extra_headers", name + " contains a line break or another control character");
    lines_.push_back(value.empty() ? name + ";" : name + ": " + value);  // curl's way to send an empty one
    secrets_.Hide(value);
  }
  for (const std::string& secret : options.secrets) key_.Hide(secret);
  if (!IsHeaderName(options.api_key_header))
    Refuse("api_key_header", "'" + Excerpt(options.api_key_header) + "' is not a header's name");
  SetKey(options.api_key);
  for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
    HideProxyPassword(FromEnvironment({name}));
  options_.api_key.clear();
  options_.headers.clear();
  options_.secrets.clear();
}

// Refuses a query with a key, and hides the other values, which for some services hold a key: a server that reports an
// unknown path repeats the query. The value of api-version is no secret, and such a message may be about it.
void Endpoint::HideQuery() {
  if (shown_url_.size() == url_.size()) return;
  std::string_view query = std::string_view(url_).substr(shown_url_.size() + 1);
  while (!query.empty()) {
    const std::string_view parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), parameter.size() + 1));
    const size_t equals = parameter.find('=');
    const std::string name(parameter.substr(0, equals));
    if (name == "api-version") continue;
    if (equals != std::string_view::npos && NamesSecret(name)) {
      Refuse("base_url", "its query has a parameter " + name +
                             ", which looks like a place for a key: keys stand in no file; see api_key_env and "
                             "api_key_header");
    }
    const std::string value(equals == std::string_view::npos ? parameter : parameter.substr(equals + 1));
    secrets_.Hide(value);
    int length = 0;
    if (char* decoded = curl_easy_unescape(nullptr, value.c_str(), static_cast<int>(value.size()), &length)) {
      secrets_.Hide({decoded, static_cast<size_t>(length)});
      curl_free(decoded);
    }
  }
}

void Endpoint::HideProxyPassword(const std::string& proxy) {
  const ParsedUrl url(curl_url());
  const CURLUcode code =
      curl_url_set(url.get(), CURLUPART_URL, proxy.c_str(), CURLU_DEFAULT_SCHEME | CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) return;
  for (const unsigned flags : {0U, unsigned{CURLU_URLDECODE}}) secrets_.Hide(Part(url, CURLUPART_PASSWORD, flags));
}

void Endpoint::SetKey(const std::string& key) {
  if (!IsHeaderValue(key)) Refuse("api_key_env", "the key contains a line break or another control character");
  List list;
  for (const std::string& line : lines_) AddHeader(list, line);
  if (!key.empty()) {
    const bool bearer = Lower(options_.api_key_header) == "authorization";
    AddHeader(list, options_.api_key_header + (bearer ? ": Bearer " : ": ") + key);
    secrets_.Hide(key);
    key_.Hide(key);
  }
  headers_.push_back(std::move(list));
}

void Endpoint::AddHeader(List& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  static_cast<void>(list.release());  // the same list, or its new beginning
  list.reset(longer);
}

void Endpoint::Prepare(CURL* easy) const {
  curl_easy_setopt(easy, CURLOPT_URL, url_.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.back().get());
  curl_easy_setopt(easy, CURLOPT_HEADEROPT, long{CURLHEADER_SEPARATE});  // a tunnelling proxy does not receive them
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "kgrpo/1");
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);  // the key must not go elsewhere
  // HTTP/1.1 means one connection per request in flight: a broken connection loses one answer and not a hundred, and no
  // answer waits behind another's bytes.
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, 600L);
#if LIBCURL_VERSION_NUM >= 0x075700  // before this version, cancelling waits for the name lookup
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout_seconds * 1000) + 1);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.total_timeout_seconds * 1000) + 1);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &Endpoint::OpenSocket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  // A proxy would see the key in plain text, and could not reach this machine's loopback address anyway.
  if (this_machine_) curl_easy_setopt(easy, CURLOPT_PROXY, "");
  if (ca_file_.empty()) return;  // the system has a directory only
  curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file_.c_str());
  // With a directory too, curl parses the certificates for each connection (10 ms and a megabyte each).
  curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
}

// Programs that this process starts, compilers and sandboxed kernels, must not inherit a connection to the service.
curl_socket_t Endpoint::OpenSocket(void* self, curlsocktype, curl_sockaddr* address) {
  static_cast<const Endpoint*>(self)->on_connect_();
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace kgrpo::coder_gpt4o
