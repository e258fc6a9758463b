// Finds places where a key might stand in a file by mistake, or be sent unencrypted. These functions return names and
// booleans, never a secret value. Used by options.cc and options_wire.cc.
#ifndef KGRPO_CODER_GPT4O_SECRETS_H
#define KGRPO_CODER_GPT4O_SECRETS_H

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {

// True if a header, query parameter or body key of this name holds a secret.
bool NamesSecret(std::string_view name);

// Paths of the texts in a body whose key NamesSecret, at any depth: "a.b.api_key".
std::vector<std::string> SecretsIn(const nlohmann::json& body);

// Paths of the texts (values or keys of mappings) in the options that hold `key`, or something that looks like a
// service's key: sk- and 16 or more further characters. The paths do not hold the key. A `key` below 8 characters may
// be a word and is not searched for.
std::vector<std::string> KeysIn(const nlohmann::json& options, std::string_view key);

// The names of the parameters in a URL's query for which NamesSecret is true.
std::vector<std::string> SecretsInQuery(std::string_view url);

// True if a URL holds a user or a password.
bool HasUser(std::string_view url);

// True if requests to this URL can be read on the network: no https, and not to this machine.
bool IsReadableOnTheWay(std::string_view url);

}  // namespace kgrpo::coder_gpt4o

#endif
