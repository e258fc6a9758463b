// One copy of a program and the thread that speaks with it. Used by pool.cc and copy.cc alone.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "program_shared/connection.h"
#include "program_shared/pool.h"

namespace kgrpo::program {

// Blocks all signals in the calling thread: the host's signals are not for it, and a write to a program that has ended
// would raise SIGPIPE.
void BlockSignals();

class Pool::Copy {
 public:
  explicit Copy(Pool* pool);
  ~Copy();  // the pool must be ending_ and have woken this copy
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void Wake() const;

  // Starts the program, gives it its options, and returns its description of itself. Throws kgrpo::Error. Runs on
  // a thread that the pool makes for it before Begin, and on the copy's own thread afterwards.
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
