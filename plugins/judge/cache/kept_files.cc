#include "judge/cache/kept_files.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "judge/problem/random.h"  // Mix
#include "judge/process/own_files.h"
#include "process/subprocess.h"  // Descriptor

namespace kgrpo::evaluator {
namespace {

using process::Descriptor;

namespace fs = std::filesystem;

struct Header {
  char magic[8];
  uint64_t bytes;  // of the file
  uint64_t checksum;
};
static_assert(sizeof(Header) <= KeptFiles::kHeaderBytes);

constexpr char kMagic[8] = {'k', 'g', 'r', 'p', 'o', 'k', 'f', '1'};

// Checksum of the data after the header. It guards against damage, not against malice: the cache directory is the
// user's own.
uint64_t ChecksumOf(const uint8_t* data, uint64_t bytes) {
  std::array<uint64_t, 4> lanes = {1, 2, 3, 4};  // independent, so that multiplications overlap
  uint64_t at = 0;
  for (; at + 32 <= bytes; at += 32) {
    for (size_t lane = 0; lane < 4; ++lane) {
      uint64_t word = 0;
      std::memcpy(&word, data + at + 8 * lane, sizeof word);
      lanes[lane] = std::rotl((lanes[lane] ^ word) * 0x9e3779b97f4a7c15u, 29);
    }
  }
  uint64_t sum = Mix(bytes);
  for (; at < bytes; ++at) sum = Mix(sum ^ data[at]);
  for (const uint64_t lane : lanes) sum = Mix(sum ^ lane);
  return sum;
}

[[noreturn]] void FailWithErrno(const std::string& what) {
  throw Error(KGRPO_ERROR_UNAVAILABLE, what + ": " + std::strerror(errno));
}

void WriteAll(int file, const void* bytes, size_t count) {
  const auto* from = static_cast<const uint8_t*>(bytes);
  while (count > 0) {
    const ssize_t written = write(file, from, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) FailWithErrno("a cached file cannot be written");
    from += written;
    count -= static_cast<size_t>(written);
  }
}

std::shared_ptr<const MappedFile> Write(int file, const std::function<void(const KeptFiles::Append&)>& write) {
  const std::array<uint8_t, KeptFiles::kHeaderBytes> room = {};
  WriteAll(file, room.data(), room.size());
  uint64_t bytes = room.size();
  write([&](const void* data, size_t count) {
    WriteAll(file, data, count);
    bytes += count;
  });
  auto mapped = std::make_shared<const MappedFile>(file, bytes);
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.bytes = bytes;
  header.checksum = ChecksumOf(mapped->data() + room.size(), bytes - room.size());
  if (pwrite(file, &header, sizeof header, 0) != sizeof header) FailWithErrno("a cached file cannot be written");
  return mapped;
}

}  // namespace

MappedFile::MappedFile(int file, uint64_t bytes) : bytes_(bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) FailWithErrno("a file cannot be mapped");
  data_ = static_cast<const uint8_t*>(data);
}

MappedFile::~MappedFile() { munmap(const_cast<uint8_t*>(data_), bytes_); }

std::shared_ptr<const MappedFile> KeptFiles::Find(const std::string& key) const {
  if (!keep_ || !IsOwnFile(folder_ + "/" + key)) return nullptr;
  const Descriptor file(open((folder_ + "/" + key).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return nullptr;
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes < kHeaderBytes) return nullptr;
  try {
    auto mapped = std::make_shared<const MappedFile>(file.get(), bytes);
    Header header;
    std::memcpy(&header, mapped->data(), sizeof header);
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.bytes != bytes ||
        header.checksum != ChecksumOf(mapped->data() + kHeaderBytes, bytes - kHeaderBytes))
      return nullptr;
    futimens(file.get(), nullptr);  // used now; failing to say so is harmless
    return mapped;
  } catch (const Error&) {
    return nullptr;  // it is computed again
  }
}

std::shared_ptr<const MappedFile> KeptFiles::Keep(const std::string& key,
                                                  const std::function<void(const Append&)>& write) const {
  if (auto mapped = TryKeep(key, write)) return mapped;
  Descriptor file(memfd_create("kgrpo", MFD_CLOEXEC));
  if (file.get() < 0) FailWithErrno("no memory for what is to be cached");
  return Write(file.get(), write);
}

// Null where the folder cannot be used.
std::shared_ptr<const MappedFile> KeptFiles::TryKeep(const std::string& key,
                                                     const std::function<void(const Append&)>& write) const {
  std::error_code code;
  fs::create_directories(folder_, code);
  std::string temporary = folder_ + "/" + key + ".XXXXXX";
  const Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return nullptr;
  if (!keep_) unlink(temporary.c_str());
  try {
    auto mapped = Write(file.get(), write);
    if (!keep_) return mapped;
    if (rename(temporary.c_str(), (folder_ + "/" + key).c_str()) != 0) FailWithErrno(temporary);
    GiveUpOldest(key);
    return mapped;
  } catch (const Error&) {
    unlink(temporary.c_str());
    return nullptr;
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

// Other processes may remove files at the same time: whatever fails is left.
void KeptFiles::GiveUpOldest(const std::string& newest) const {
  struct Kept {
    fs::path path;
    fs::file_time_type used;
    uint64_t bytes;
  };
  std::vector<Kept> all;
  uint64_t total = 0;
  std::error_code code;
  for (fs::directory_iterator entry(folder_, code), end; !code && entry != end; entry.increment(code)) {
    std::error_code gone;
    const Kept kept = {entry->path(), entry->last_write_time(gone), entry->file_size(gone)};
    if (gone) continue;
    total += kept.bytes;
    if (kept.path.filename() != newest) all.push_back(kept);
  }
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (size_t i = 0; i < all.size() && total > most_bytes_; ++i) {
    std::error_code failed;
    if (fs::remove(all[i].path, failed)) total -= all[i].bytes;
  }
}

}  // namespace kgrpo::evaluator
