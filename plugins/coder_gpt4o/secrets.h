// Where a key might stand in a file by mistake, or go over the wire in clear. None of these functions returns a value,
// only names and answers. Used by options.cc.
#ifndef KGRPO_CODER_GPT4O_SECRETS_H
#define KGRPO_CODER_GPT4O_SECRETS_H

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {

// Whether a header, a parameter of a query or a key of the body has a secret for its value wherever it is used.
bool NamesSecret(std::string_view name);

// Where in a body, at any depth, text stands under such a name: "a.b.api_key".
std::vector<std::string> SecretsIn(const nlohmann::json& body);

// Where in the options, at any depth, text (of a value or of a mapping's key) holds `key`, or what looks like a
// service's key: sk- and 16 or more further characters. The places are named without it. A `key` of a few characters
// is a word, and is not looked for.
std::vector<std::string> KeysIn(const nlohmann::json& options, std::string_view key);

// The parameters of an address's query that have such a name.
std::vector<std::string> SecretsInQuery(std::string_view url);

// Whether an address holds a user or a password.
bool HasUser(std::string_view url);

// Whether what is sent there can be read on the way: no https, and not to this machine.
bool IsReadableOnTheWay(std::string_view url);

}  // namespace kgrpo::coder_gpt4o

#endif
