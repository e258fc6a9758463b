// The worker's end of the socket, used by the cudart functions and by the worker's main loop. One request at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpreter/client/protocol.h"

// Exported by our libcudart.so.13 under a version of its own. Sends a request with up to two pieces of payload and
// waits for the reply. `target` receives at most `capacity` bytes of the reply's payload; what is longer is read and
// dropped. Ends the process when the evaluator is gone.
extern "C" kgrpo::interpreter::Reply kgrpo_ask(kgrpo::interpreter::Request request, const void* payload,
                                               const void* more_payload, size_t more_bytes, void* target,
                                               size_t capacity);

namespace kgrpo::interpreter {

// Returns the price of the candidate's host code that ran since the last call of this, in nanoseconds (host_code.cc).
uint64_t TakeHostCode();

// Adds the price of a call of the runtime, with so many parts, to the host's time. Every entry of call_prices.h that is
// not 0 calls it.
void Spend(const char* call, double parts = 0);

// The same with one piece of payload.
inline Reply Ask(Operation operation, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, const void* payload = nullptr,
                 size_t payload_bytes = 0, void* target = nullptr, size_t capacity = 0) {
  const Request request = {static_cast<uint32_t>(operation), 0, a, b, c, payload_bytes};
  return kgrpo_ask(request, payload, nullptr, 0, target, capacity);
}

}  // namespace kgrpo::interpreter
