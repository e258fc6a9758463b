// C++ sources of a problem's author (oracle.cc, inputs.cc), compiled by the host's compiler for trusted_call.h.
// Trusted, as the author is. Used by source_oracle.cc and source_inputs.cc.
#pragma once

#include <memory>
#include <string>

namespace kgrpo::evaluator {

struct TrustedSource {
  std::string file;     // the author's, for messages
  std::string text;     // the whole translation unit
  std::string defines;  // what the file must define, for messages: `extern "C" void oracle(const double* x)`
  std::string cache_directory;
};

class TrustedLibrary {
 public:
  // Compiles the source, or takes what an earlier call left in the cache directory: a file that only this user (or
  // root) can write, with its own digest. Where others can write to the folder, nothing is kept. The bits that it
  // computes are the same on every machine. Throws Error(KGRPO_ERROR_INVALID) with the compiler's words where it does
  // not compile, Error(KGRPO_ERROR_UNAVAILABLE) where there is no g++ (or the compiler that CXX names). [any thread]
  explicit TrustedLibrary(const TrustedSource& source);
  TrustedLibrary(const TrustedLibrary&) = delete;
  TrustedLibrary& operator=(const TrustedLibrary&) = delete;

  // The digest of the source, the compiler and its flags.
  const std::string& build() const { return build_; }
  // For CallTrusted.
  const std::string& path() const { return path_; }

 private:
  std::string build_, path_;
  // In place of a cache folder that others can write to: removed with this object, also where making it fails.
  struct PrivateFolder {
    std::string path;
    ~PrivateFolder();
  } private_folder_;
};

}  // namespace kgrpo::evaluator
