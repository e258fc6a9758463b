// Who may ask the service, and for how much: the tokens of --tokens FILE or of one environment variable. Read by
// main.cc, checked by service.cc.
#ifndef KGRPO_SERVE_CLIENTS_H
#define KGRPO_SERVE_CLIENTS_H

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <string>

namespace kgrpo::serve {

struct ClientToken {
  std::string name;  // for the log; empty: the only one
  std::string token;
  size_t most_under_way = 0;  // evaluations that wait or run at the same time; 0: no limit of its own
};

// Reads the text of a file of tokens: a YAML list of {name, token, evaluations}. Throws kgrpo::Error with every mistake
// as file:line:column, and if other users can read the file.
std::list<ClientToken> ReadTokens(const std::string& file, const std::string& text);

// The tokens of one service. [any thread]
class Clients {
 public:
  struct Client {
    ClientToken of;
    std::atomic<size_t> under_way{0};
  };
  // A part of a client's limit, given back by the destructor.
  class Claim {
   public:
    Claim(Client& client, size_t count) : client_(client), count_(count) {}
    ~Claim() { client_.under_way -= count_; }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    Client& client_;
    const size_t count_;
  };

  explicit Clients(const std::list<ClientToken>& tokens);

  bool empty() const { return clients_.empty(); }
  // The client of an Authorization header; null where no token fits. Takes the same time for every wrong token.
  Client* Find(const std::string& authorization);
  // Null where the client would have more under way than it may.
  static std::shared_ptr<Claim> Take(Client& client, size_t count);

 private:
  std::list<Client> clients_;
};

}  // namespace kgrpo::serve
#endif
