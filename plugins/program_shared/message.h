// One line of the protocol: JSON-RPC 2.0, an object a line. Used by connection.h and pool.h;
// docs/protocol describes it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kgrpo::program {

constexpr int kProtocol = 1;
constexpr size_t kLongestLine = size_t{16} << 20;  // bytes, of either side
constexpr int kDeepestNesting = 64;

// Thrown where a program breaks the protocol or has ended; the program is then stopped. The text goes on from
// "the program ".
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// {"jsonrpc": "2.0", "id": ..., "method": ..., "params": ...} and a line end. Text that is not UTF-8 is replaced.
std::string RequestLine(uint64_t id, std::string_view method, std::string_view params);
std::string CancelLine(uint64_t id);

struct Answer {
  uint64_t id = 0;
  bool failed = false;
  bool refused = false;   // the program does not take the request's parameters (JSON-RPC's code -32602)
  nlohmann::json result;  // where it did not fail
  std::string error;      // where it did
};

// Throws Broken where the line is no answer.
Answer ParseAnswer(std::string_view line);

// The line's beginning, for messages: one printable line.
std::string Excerpt(std::string_view line);

}  // namespace kgrpo::program
