// One copy of a program and the thread that speaks with it. Used by pool.cc and copy.cc alone.
#ifndef KGRPO_PROGRAM_SHARED_COPY_H
#define KGRPO_PROGRAM_SHARED_COPY_H

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "program_shared/connection.h"
#include "program_shared/pool.h"

namespace kgrpo::program {

// Of this thread: the host's are not for it, and SIGPIPE would be that of a program that has ended.
void BlockSignals();

class Pool::Copy {
 public:
  explicit Copy(Pool* pool);
  ~Copy();  // the pool is ending_, and has woken it
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void Wake() const;

  // Starts the program and gives it its options; what it said of itself. Throws kgrpo::Error. Before Begin on a thread
  // of the pool's making, afterwards on the copy's own.
  Hello Start();
  void Begin();  // the thread

  // Under the pool's mutex.
  std::deque<Request> inbox;
  size_t assigned = 0;  // in the inbox or in flight
  bool up = false;      // started, or being started

 private:
  void Work();
  bool Take();
  void CancelFlight(uint64_t below);
  void Serve();
  void Receive(const std::string& line);
  void CheckDeadlines();
  void Lose(const std::string& why, uint64_t culprit);
  nlohmann::json Handshake(uint64_t id, const char* method, const nlohmann::json& params,
                           std::chrono::steady_clock::time_point deadline);
  std::string Name() const;

  Pool* pool_;
  int wake_;
  std::unique_ptr<Connection> connection_;
  std::map<uint64_t, Request> flight_;
  std::thread thread_;
};

}  // namespace kgrpo::program

#endif  // KGRPO_PROGRAM_SHARED_COPY_H
