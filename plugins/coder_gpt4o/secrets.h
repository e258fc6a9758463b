// Finds places where a key might stand in a file by mistake, or be sent in clear. None of these functions returns a
// value, only names and answers. Used by options.cc.
#ifndef KGRPO_CODER_GPT4O_SECRETS_H
#define KGRPO_CODER_GPT4O_SECRETS_H

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {

// True if a header, query parameter or key of the body of this name always holds a secret.
bool NamesSecret(std::string_view name);

// Paths in a body, at any depth, of texts under such a name: "a.b.api_key".
std::vector<std::string> SecretsIn(const nlohmann::json& body);

// Paths in the options, at any depth, of texts (values or keys of mappings) that hold `key`, or something that looks
// like a service's key: sk- and 16 or more further characters. The places are named without it. A `key` of a few
// characters is a word, and is not looked for.
std::vector<std::string> KeysIn(const nlohmann::json& options, std::string_view key);

// The parameters of an address's query that have such a name.
std::vector<std::string> SecretsInQuery(std::string_view url);

// True if an address holds a user or a password.
bool HasUser(std::string_view url);

// True if requests to this address can be read on the way: no https, and not to this machine.
bool IsReadableOnTheWay(std::string_view url);

}  // namespace kgrpo::coder_gpt4o

#endif
