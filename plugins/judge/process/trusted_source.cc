#include "judge/process/trusted_source.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <kgrpo/support/sha256.h>
#include "process/subprocess.h"

namespace kgrpo::evaluator {
namespace {

using process::Subprocess;

namespace fs = std::filesystem;

// The same bits on every machine: nothing that reorders sums, fuses multiplications and additions, or takes what this
// processor has beyond others. Independent outputs are still computed side by side.
constexpr auto kFlags = std::to_array<const char*>({"-std=c++20", "-O3", "-ffp-contract=off", "-shared", "-fPIC"});

void Compile(const TrustedSource& source, const std::string& compiler, const fs::path& library) {
  std::error_code code;
  fs::create_directories(library.parent_path());
  static std::atomic<uint64_t> counter{0};
  const std::string unique = library.string() + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  const std::string source_file = unique + ".cc", built = unique + ".so";
  std::ofstream(source_file) << source.text;
  Subprocess::Result result;
  try {
    std::vector<std::string> command = {compiler};
    command.insert(command.end(), kFlags.begin(), kFlags.end());
    command.insert(command.end(), {source_file, "-o", built});
    result = Subprocess::Run({command}, 120);
  } catch (const Error& error) {
    fs::remove(source_file, code);
    throw Error(KGRPO_ERROR_UNAVAILABLE, source.file + ": cannot run the C++ compiler \"" + compiler +
                                             "\": " + error.what() + "; install g++ or set CXX");
  }
  fs::remove(source_file, code);
  if (!result.Succeeded()) {
    throw Error(KGRPO_ERROR_INVALID, source.file + ": does not compile; it must define " + source.defines +
                                         ". The compiler says:\n" + result.output);
  }
  fs::rename(built, library);  // atomic: several processes may do this at once
}

}  // namespace

TrustedLibrary::TrustedLibrary(const TrustedSource& source) {
  const char* from_environment = std::getenv("CXX");
  const std::string compiler = from_environment != nullptr && *from_environment != '\0' ? from_environment : "g++";
  std::string flags;
  for (const char* flag : kFlags) flags += std::string(flag) + " ";
  build_ = Sha256OfParts({source.text, compiler, flags}).substr(0, 40);
  const fs::path library = fs::path(source.cache_directory) / "oracles" / (build_ + ".so");
  std::error_code code;
  if (!fs::exists(library, code)) Compile(source, compiler, library);
  path_ = library.string();
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw Error(KGRPO_ERROR_INVALID,
                source.file + ": cannot be loaded; it must define " + source.defines + ": " + dlerror());
  }
}

TrustedLibrary::~TrustedLibrary() {
  dlclose(handle_);
}

void* TrustedLibrary::Symbol(const std::string& name) const {
  void* symbol = dlsym(handle_, name.c_str());
  if (symbol == nullptr) throw Error(KGRPO_ERROR_INTERNAL, path_ + ": has no " + name + "; remove it");
  return symbol;
}

}  // namespace kgrpo::evaluator
