#include "judge/process/trusted_source.h"

#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <kgrpo/support/sha256.h>
#include "judge/process/own_files.h"
#include "judge/process/trusted_call.h"
#include "process/subprocess.h"

namespace kgrpo::evaluator {
namespace {

using process::Subprocess;

namespace fs = std::filesystem;

// The same bits on every machine: nothing that reorders sums, fuses multiplications and additions, or takes what this
// processor has beyond others. Independent outputs are still computed side by side.
constexpr auto kFlags = std::to_array<const char*>({"-std=c++20", "-O3", "-ffp-contract=off", "-shared", "-fPIC"});

// A library in the cache ends with the digest of what is before: a damaged or replaced one is compiled again.
constexpr size_t kDigestBytes = 64;

std::string ReadWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool MayBeLoaded(const fs::path& library) {
  if (!IsOwnFile(library.string())) return false;
  const std::string bytes = ReadWhole(library);
  return bytes.size() > kDigestBytes &&
         Sha256(bytes.substr(0, bytes.size() - kDigestBytes)) == bytes.substr(bytes.size() - kDigestBytes);
}

void Compile(const TrustedSource& source, const std::string& compiler, const fs::path& library) {
  std::error_code code;
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
  std::ofstream(built, std::ios::binary | std::ios::app) << Sha256(ReadWhole(built));
  fs::permissions(built, fs::perms::owner_all, code);
  fs::rename(built, library, code);  // atomic: several processes may do this at once
  if (code) {
    fs::remove(built);
    throw Error(KGRPO_ERROR_UNAVAILABLE, library.string() + ": cannot be written: " + code.message());
  }
}

// In place of a cache folder that others can write to.
fs::path MakePrivateFolder() {
  std::string folder = (fs::temp_directory_path() / "kgrpo-oracle-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    throw Error(KGRPO_ERROR_UNAVAILABLE, folder + ": cannot be made: " + std::strerror(errno));
  return folder;
}

}  // namespace

TrustedLibrary::TrustedLibrary(const TrustedSource& source) {
  const char* from_environment = std::getenv("CXX");
  const std::string compiler = from_environment != nullptr && *from_environment != '\0' ? from_environment : "g++";
  std::string flags;
  for (const char* flag : kFlags) flags += std::string(flag) + " ";
  build_ = Sha256OfParts({source.text, compiler, flags}).substr(0, 40);
  fs::path folder = fs::path(source.cache_directory) / "oracles";
  fs::create_directories(folder);
  const bool shared = !IsOwnFolder(folder.string());
  if (shared) folder = private_folder_.path = MakePrivateFolder();
  path_ = (folder / (build_ + ".so")).string();
  if (!MayBeLoaded(path_)) Compile(source, compiler, path_);
  if (const std::string why = LoadTrusted(path_); !why.empty())
    throw Error(KGRPO_ERROR_INVALID, source.file + ": cannot be loaded; it must define " + source.defines + ": " + why);
}

TrustedLibrary::PrivateFolder::~PrivateFolder() {
  std::error_code code;
  if (!path.empty()) fs::remove_all(path, code);
}

}  // namespace kgrpo::evaluator
