// How checks of validate/validate.h run and report, within a child process. Used by the the .cc files of this folder.
#ifndef KGRPO_VALIDATE_SESSION_H
#define KGRPO_VALIDATE_SESSION_H

#include <kgrpo/abi.h>
#include <kgrpo/sdk/error.h>

#include <cstddef>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo::validate {

// Ends a check: it failed, cannot be done here, or found what a plugin should not do but may.
[[noreturn]] void Fail(const std::string& why);
[[noreturn]] void Skip(const std::string& why);
[[noreturn]] void Warn(const std::string& why);

// Reports each check as a line of JSON: {"begin": name}, then {"end": name, "outcome": ..., "detail": ...}. A check
// that begins and does not end is the one that crashed.
class Session {
 public:
  explicit Session(const std::function<void(const std::string&)>& write) : write_(write) {}

  // `body` returns a remark, or calls one of the functions above. Writing to standard output fails the check: the host
  // writes its results there.
  void Check(const std::string& name, const std::function<std::string()>& body);

 private:
  void Write(const nlohmann::json& line);

  const std::function<void(const std::string&)>& write_;
  size_t output_seen_ = 0;
};

// The error's message, checked for form; releases it.
std::string TakeMessage(kgrpo_error* error);

// Runs `body` on two threads at once, three times each, and throws what one of them threw.
void OnTwoThreads(const std::function<void()>& body);

// "0.5"; numbers as messages show them.
std::string Shown(double number);

}  // namespace kgrpo::validate
#endif
