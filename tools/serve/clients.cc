#include "serve/clients.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/yaml.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

namespace kgrpo::serve {
namespace {

constexpr int64_t kMostEvaluations = 1'000'000;

}  // namespace

std::list<ClientToken> ReadTokens(const std::string& file, const std::string& text) {
  std::string wrong;
  const auto say = [&](const YamlPlace& at, const std::string& what) {
    wrong += (wrong.empty() ? "" : "\n") + file + ":" + std::to_string(std::max(at.line, 1)) + ":" +
             std::to_string(std::max(at.column, 1)) + ": " + what;
  };
  const YamlFile read = ReadYaml(text);
  struct stat status = {};
  if (stat(file.c_str(), &status) == 0 && (status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    wrong = file + ": other users can read the tokens: chmod 600 " + file;
  std::list<ClientToken> tokens;
  std::set<std::string> names, secrets;
  if (read.error) say(read.error->at, read.error->message);
  const bool is_list = !read.error && read.documents.size() == 1 && read.documents[0].IsList();
  if (!read.error && (!is_list || read.documents[0].values.empty()))
    say({}, "expected a list of tokens: - {name: training, token: SECRET, evaluations: 64}");
  for (const YamlNode& entry : is_list ? read.documents[0].values : std::vector<YamlNode>()) {
    ClientToken token;
    for (size_t i = 0; i < entry.keys.size(); ++i) {
      const std::string& key = entry.keys[i].value;
      const YamlNode& value = entry.values[i];
      if (key == "name" && value.IsScalar()) {
        token.name = value.value;
      } else if (key == "token" && value.IsScalar()) {
        token.token = value.value;
        if (token.token.find_first_of(" \t\r\n\"'") != std::string::npos)
          say(value.at, "a token has no blanks and quotes");
      } else if (key == "evaluations") {
        const std::optional<YamlNumber> number = ReadNumber(value);
        const int64_t most = number && number->integer ? *number->integer : 0;
        if (most < 1 || most > kMostEvaluations) say(value.at, "evaluations: expected a whole number from 1");
        token.most_under_way = static_cast<size_t>(std::max<int64_t>(most, 0));
      } else {
        say(entry.keys[i].at, key + ": expected name, token or evaluations, each with one value");
      }
    }
    if (token.name.empty() || token.token.empty()) say(entry.at, "a token needs a name and a token");
    if (!names.insert(token.name).second) say(entry.at, "the name " + token.name + " is there twice");
    if (!secrets.insert(token.token).second) say(entry.at, token.name + ": the token is there twice");
    tokens.push_back(std::move(token));
  }
  if (!wrong.empty()) throw Error(KGRPO_ERROR_INVALID, wrong);
  return tokens;
}

Clients::Clients(const std::list<ClientToken>& tokens) {
  for (const ClientToken& token : tokens) clients_.emplace_back().of = token;
}

Clients::Client* Clients::Find(const std::string& authorization) {
  Client* found = nullptr;
  for (Client& client : clients_) {
    const std::string wanted = "Bearer " + client.of.token;
    if (authorization.size() == wanted.size() && CRYPTO_memcmp(authorization.data(), wanted.data(), wanted.size()) == 0)
      found = &client;
  }
  return found;
}

std::shared_ptr<Clients::Claim> Clients::Take(Client& client, size_t count) {
  auto claim = std::make_shared<Claim>(client, count);
  const size_t under_way = client.under_way += count;
  return client.of.most_under_way != 0 && under_way > client.of.most_under_way ? nullptr : claim;
}

}  // namespace kgrpo::serve
