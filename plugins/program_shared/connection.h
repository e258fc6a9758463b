// A running program and the lines that go to and fro. Used by pool.h, which has a thread for each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/subprocess.h"
#include "program_shared/message.h"

namespace kgrpo::program {

// One thread, in which SIGPIPE is blocked.
class Connection {
 public:
  // Starts the program in a session of its own. Each line of its standard error goes to `log`. Throws kgrpo::Error
  // where it cannot be started.
  Connection(const std::vector<std::string>& command, std::function<void(std::string_view)> log);
  // Closes its standard input, waits a second for it to end, then kills it with all that it started.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Queues a line, its end included, and sends what the program takes now. Throws Broken.
  void Send(std::string_view line);

  // Waits up to `seconds` (below 0: for ever) until the program wrote something, took something or ended, or `wake`
  // can be read (-1: nothing). Returns whole lines without their ends. Throws Broken, with how the program ended and
  // its last words where it has, and Error(KGRPO_ERROR_UNAVAILABLE) if the system cannot wait.
  std::vector<std::string> Wait(double seconds, int wake);

  void Kill() { process_->Kill(); }

 private:
  void Write();
  void ReadErrors(bool to_end);
  [[noreturn]] void ThrowEnded();

  std::function<void(std::string_view)> log_;
  process::Descriptor input_, output_, error_;  // our ends, which do not block
  std::optional<process::Subprocess> process_;
  std::string outgoing_, incoming_, errors_, last_words_;
  bool errors_open_ = true;
  bool answered_ = false;  // wrote a line
  size_t sent_ = 0;        // of outgoing_
  size_t searched_ = 0;    // of incoming_: no line end before it
};

}  // namespace kgrpo::program
