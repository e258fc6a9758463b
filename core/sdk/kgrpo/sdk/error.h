// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/error.h - exceptions inside, kgrpo_error* at the boundary. For plugin authors, and used by the host itself.
//
// Inside, code throws Error. An ABI function wraps its body in Guard, which turns whatever is thrown into a
// kgrpo_error*; a caller of an ABI function wraps the call in Check, which throws what came back.
#ifndef KGRPO_SDK_ERROR_H
#define KGRPO_SDK_ERROR_H
#include <kgrpo/abi.h>
#include <kgrpo/sdk/text.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace kgrpo {

class Error : public std::runtime_error {
 public:
  Error(kgrpo_error_code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  kgrpo_error_code code() const { return code_; }

 private:
  kgrpo_error_code code_;
};

namespace internal {

struct OwnedError {
  kgrpo_error error;  // first, so that a pointer to it is a pointer to the whole
  std::string message;
};

inline void ReleaseOwned(kgrpo_error* error) { delete reinterpret_cast<OwnedError*>(error); }
inline void ReleaseStatic(kgrpo_error*) {}

// The error that is returned if there is no memory to describe one.
inline kgrpo_error* OutOfMemory() {
  static const char kText[] = "out of memory";
  static kgrpo_error error = {sizeof(kgrpo_error), KGRPO_ERROR_INTERNAL, {kText, sizeof(kText) - 1}, ReleaseStatic};
  return &error;
}

}  // namespace internal

// An error for the other side of the ABI, which releases it.
inline kgrpo_error* MakeError(kgrpo_error_code code, std::string_view message) noexcept {
  try {
    auto* owned = new internal::OwnedError{
        {sizeof(kgrpo_error), static_cast<uint32_t>(code), {}, internal::ReleaseOwned}, std::string(message)};
    owned->error.message = Str(owned->message);
    return &owned->error;
  } catch (...) {
    return internal::OutOfMemory();
  }
}

// Runs `body` (which returns nothing) and returns what it threw as an error, NULL when it did not throw.
template <typename Body>
kgrpo_error* Guard(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return nullptr;
  } catch (const Error& error) {
    return MakeError(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return internal::OutOfMemory();
  } catch (const std::exception& error) {
    return MakeError(KGRPO_ERROR_INTERNAL, error.what());
  } catch (...) {
    return MakeError(KGRPO_ERROR_INTERNAL, "an exception of an unknown type");
  }
}

// Throws the error that an ABI call returned, if any, and releases it.
inline void Check(kgrpo_error* error) {
  if (error == nullptr) return;
  Error thrown(static_cast<kgrpo_error_code>(error->code), Copy(error->message));
  error->release(error);
  throw thrown;
}

}  // namespace kgrpo
#endif
