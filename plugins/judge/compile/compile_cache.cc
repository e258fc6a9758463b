#include "judge/compile/compile_cache.h"

#include <cstring>
#include <string_view>
#include <vector>

#include <kgrpo/support/sha256.h>

namespace kgrpo::evaluator {
namespace {

constexpr int kCompileCacheId = 0x6b676363;  // "kgcc"
constexpr char kForm[] = "compile outcome 2";

// All figures of KernelUsage, in the order of the form.
template <typename Usage>
auto Figures(Usage& usage) {
  return std::vector<decltype(&usage.registers)>{&usage.registers, &usage.stack_bytes, &usage.spill_bytes,
                                                 &usage.static_shared_bytes, &usage.constant_bytes};
}

void PutPart(std::string* bytes, std::string_view part) {
  const uint64_t size = part.size();
  bytes->append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes->append(part);
}

// Takes parts off the front of bytes; false once they do not fit.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::string Part() {
    uint64_t size = 0;
    if (rest_.size() < sizeof size) return Fail();
    std::memcpy(&size, rest_.data(), sizeof size);
    rest_.remove_prefix(sizeof size);
    if (rest_.size() < size) return Fail();
    std::string part(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return part;
  }

  int64_t Number() {
    const std::string part = Part();
    int64_t number = 0;
    if (part.size() != sizeof number) good_ = false;
    if (good_) std::memcpy(&number, part.data(), sizeof number);
    return number;
  }

  bool AtEnd() const { return good_ && rest_.empty(); }
  bool good() const { return good_; }

 private:
  std::string Fail() {
    good_ = false;
    rest_ = {};
    return "";
  }

  std::string_view rest_;
  bool good_ = true;
};

void PutNumber(std::string* bytes, int64_t number) {
  PutPart(bytes, std::string_view(reinterpret_cast<const char*>(&number), sizeof number));
}

}  // namespace

std::string CompileKey::Digest() const {
  return Sha256OfParts({kForm, source, entry, route, flags, compiler, architecture, policy, evaluator});
}

std::string ToBytes(const CompileOutcome& outcome) {
  const CompiledKernel& kernel = outcome.kernel;
  std::string bytes;
  for (const std::string* part :
       {&outcome.verdict, &outcome.diagnosis, &kernel.route, &kernel.object, &kernel.ptx, &kernel.cubin})
    PutPart(&bytes, *part);
  PutNumber(&bytes, static_cast<int64_t>(kernel.usage.size()));
  for (const auto& [name, usage] : kernel.usage) {
    PutPart(&bytes, name);
    for (const int* figure : Figures(usage)) PutNumber(&bytes, *figure);
  }
  return bytes;
}

std::optional<CompileOutcome> OutcomeFromBytes(const std::string& bytes) {
  Reader reader(bytes);
  CompileOutcome outcome;
  CompiledKernel& kernel = outcome.kernel;
  for (std::string* part :
       {&outcome.verdict, &outcome.diagnosis, &kernel.route, &kernel.object, &kernel.ptx, &kernel.cubin})
    *part = reader.Part();
  const int64_t kernels = reader.Number();
  for (int64_t i = 0; i < kernels && reader.good(); ++i) {
    KernelUsage& usage = kernel.usage[reader.Part()];
    for (int* figure : Figures(usage)) *figure = static_cast<int>(reader.Number());
  }
  if (!reader.AtEnd()) return std::nullopt;
  return outcome;
}

CompileCache::CompileCache(const std::string& path, uint64_t most_bytes)
    : most_bytes_(most_bytes),
      file_(path, kCompileCacheId,
            "CREATE TABLE IF NOT EXISTS compiled(number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, "
            "bytes INTEGER NOT NULL, digest TEXT NOT NULL, outcome BLOB NOT NULL);"
            "CREATE INDEX IF NOT EXISTS compiled_sizes ON compiled(number, bytes);",
            "the cache of compiled kernels") {}

std::optional<CompileOutcome> CompileCache::Find(const CompileKey& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  file_.MendIfDamaged();
  CacheFile::Statement select(file_, "SELECT outcome, digest FROM compiled WHERE key = ?");
  if (!select.Bind(1, key.Digest()).Row()) return std::nullopt;
  const std::string bytes = select.Text(0);
  if (Sha256(bytes) != select.Text(1)) return std::nullopt;
  std::optional<CompileOutcome> outcome = OutcomeFromBytes(bytes);
  if (outcome) outcome->cached = true;
  return outcome;
}

void CompileCache::Keep(const CompileKey& key, const CompileOutcome& outcome) {
  if (outcome.transient) return;
  const std::string bytes = ToBytes(outcome);
  if (bytes.size() > most_bytes_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  file_.MendIfDamaged();
  if (!CacheFile::Statement(file_, "BEGIN IMMEDIATE").Done()) return;
  const bool kept =
      CacheFile::Statement(file_, "INSERT OR REPLACE INTO compiled(key, bytes, digest, outcome) VALUES(?, ?, ?, ?)")
          .Bind(1, key.Digest())
          .Bind(2, static_cast<int64_t>(bytes.size()))
          .Bind(3, Sha256(bytes))
          .Bind(4, bytes, true)
          .Done();
  if (kept) Evict();
  if (!kept || !CacheFile::Statement(file_, "COMMIT").Done()) CacheFile::Statement(file_, "ROLLBACK").Done();
}

void CompileCache::Evict() {
  int64_t total = 0;
  {
    CacheFile::Statement sum(file_, "SELECT total(bytes) FROM compiled");
    if (!sum.Row()) return;
    total = sum.Integer(0);
  }
  const auto most = static_cast<int64_t>(most_bytes_);
  if (total <= most) return;
  // A tenth more than needed, so that a full cache does not evict at every kernel.
  int64_t surplus = total - (most - most / 10), last = -1;
  {
    CacheFile::Statement oldest(file_, "SELECT number, bytes FROM compiled ORDER BY number");
    while (surplus > 0 && oldest.Row()) {
      last = oldest.Integer(0);
      surplus -= oldest.Integer(1);
    }
  }
  CacheFile::Statement(file_, "DELETE FROM compiled WHERE number <= ? AND number < (SELECT max(number) FROM compiled)")
      .Bind(1, last)
      .Done();
}

}  // namespace kgrpo::evaluator
