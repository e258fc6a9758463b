#include "coder_gpt4o/secrets.h"

#include "coder_gpt4o/client/ascii.h"
#include "coder_gpt4o/client/hosts.h"

#include <algorithm>
#include <array>

namespace kgrpo::coder_gpt4o {
namespace {

using Json = nlohmann::json;

// The part of the URL between scheme and path, including user and port.
std::string_view Authority(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

// True if the value holds a text. Numbers, such as token ids, are no keys.
bool HoldsText(const Json& value) {
  if (value.is_string()) return true;
  return value.is_structured() && std::any_of(value.begin(), value.end(), HoldsText);
}

void FindSecrets(const Json& value, const std::string& path, std::vector<std::string>& found) {
  if (value.is_array()) {
    for (const Json& element : value) FindSecrets(element, path, found);
  }
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.items()) {
    const std::string where = path.empty() ? key : path + "." + key;
    if (NamesSecret(key) && HoldsText(inner)) {
      found.push_back(where);
    } else {
      FindSecrets(inner, where, found);
    }
  }
}

bool IsKeyCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

bool HoldsKey(std::string_view text, std::string_view key) {
  constexpr size_t kShortestKey = 8;
  constexpr size_t kAfterPrefix = 16;
  if (key.size() >= kShortestKey && text.find(key) != std::string_view::npos) return true;
  constexpr std::string_view kPrefix = "sk-";
  for (size_t at = text.find(kPrefix); at != std::string_view::npos; at = text.find(kPrefix, at + 1)) {
    if (at > 0 && IsKeyCharacter(text[at - 1])) continue;  // within a word, such as task-
    const std::string_view rest = text.substr(at + kPrefix.size());
    const auto end = std::find_if_not(rest.begin(), rest.end(), IsKeyCharacter);
    if (static_cast<size_t>(end - rest.begin()) >= kAfterPrefix) return true;
  }
  return false;
}

void FindKeys(const Json& value, const std::string& path, std::string_view key, std::vector<std::string>& found) {
  if (value.is_string() && HoldsKey(value.get_ref<const std::string&>(), key)) found.push_back(path);
  if (value.is_array()) {
    for (const Json& element : value) FindKeys(element, path, key, found);
  }
  if (!value.is_object()) return;
  for (const auto& [name, inner] : value.items()) {
    if (HoldsKey(name, key)) {
      found.push_back(path);
    } else {
      FindKeys(inner, path.empty() ? name : path + "." + name, key, found);
    }
  }
}

}  // namespace

std::vector<std::string> KeysIn(const Json& options, std::string_view key) {
  std::vector<std::string> found;
  FindKeys(options, "", key, found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

bool NamesSecret(std::string_view name) {
  const std::string lower = Lower(name);
  constexpr std::array<std::string_view, 8> kParts = {"authorization", "apikey",     "token",  "secret",
                                                      "password",      "credential", "cookie", "signature"};
  if (lower.starts_with("max_") || lower.ends_with("_tokens") || lower == "prompt_cache_key") return false;
  // "auth" and "key" count as whole words only, so that "author" and "x-portkey-provider" are no secrets; "key" also at
  // the name's end.
  const auto is_letter = [&](size_t i) { return i < lower.size() && lower[i] >= 'a' && lower[i] <= 'z'; };
  for (const std::string_view word : {"auth", "key", "keys"}) {
    for (size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
      if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
    }
  }
  return lower == "sig" || lower.ends_with("key") ||
         std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

std::vector<std::string> SecretsIn(const Json& body) {
  std::vector<std::string> found;
  FindSecrets(body, "", found);
  return found;
}

std::vector<std::string> SecretsInQuery(std::string_view url) {
  std::vector<std::string> found;
  url = url.substr(0, url.find('#'));
  size_t at = url.find('?');
  while (at != std::string_view::npos) {
    url.remove_prefix(at + 1);
    at = url.find('&');
    const std::string_view parameter = url.substr(0, at);
    const size_t equals = parameter.find('=');
    const std::string_view name = parameter.substr(0, equals);
    if (equals != std::string_view::npos && NamesSecret(name)) found.emplace_back(name);
  }
  return found;
}

bool HasUser(std::string_view url) {
  return Authority(url).find('@') != std::string_view::npos;
}

bool IsReadableOnTheWay(std::string_view url) {
  // Everything else may be http: curl also accepts "http:/host", for example.
  if (Lower(url.substr(0, 8)) == "https://") return false;
  std::string_view host = Authority(url);
  if (const size_t at = host.rfind('@'); at != std::string_view::npos) host.remove_prefix(at + 1);
  host = host.substr(0, host.find(':', host.starts_with('[') ? host.find(']') : 0));
  const bool is_url = url.size() > std::string_view("http://").size() && host.find(' ') == std::string_view::npos;
  return is_url && !IsLoopback(host);  // an invalid URL is reported elsewhere
}

}  // namespace kgrpo::coder_gpt4o
