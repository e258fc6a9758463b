// Stores exchanges with a service in an SQLite file: the exact request and the answer. The modes replay and cache
// answer equal requests from it without the service, and a resumed run reuses the answers that it has paid for.
// docs/coder_gpt4o.md describes the tables. Used by coder.cc.
#pragma once

#include <kgrpo/support/sqlite.h>           // Database
#include "coder_gpt4o/completion_client.h"  // Completion

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace kgrpo::coder_gpt4o {

// Requests are matched by their identity, and by the sample: the host's seed of the request. The posted body does not
// serve for this, because it also holds measurements, which differ each time.
struct RecordedRequest {
  std::string body;      // the posted JSON object
  std::string identity;  // a similar JSON object without measurements
  std::string digest;    // SHA-256 of the identity
  uint64_t sample = 0;
  std::string service = {};  // the service's URL, without a query
};
RecordedRequest MakeRecordedRequest(std::string body, std::string identity, uint64_t sample);

struct RecordedCompletion {
  Completion completion;    // kAnswered or kFailed
  double cost = 0;          // US dollars, as it was when it was paid
  double lost_cost = 0;     // the part for attempts that gave no answer
  bool paid = true;         // paid by the run that owns the recording, not taken from a cache
  int64_t reservation = 0;  // the reservation that this replaces; 0: none
};

// US dollars.
struct Spending {
  double cost = 0;
  double lost_cost = 0;  // the part for attempts that gave no answer
};

// Calls that a process had in flight when it was killed, and the most that they can have cost, in US dollars.
struct LeftInFlight {
  uint64_t calls = 0;
  double cost = 0;
};

// Selects among several recorded answers to the same content.
enum class Match {
  kSample,    // the answer to the same sample, by the request's service
  kAnswered,  // as kSample; else another answer by the request's service, chosen by the sample modulo their
              // number
  kContent,   // the answer or failure of the same sample, by any service; else another answer, else another failure,
              // chosen as for kAnswered
};

// All functions may be called from any thread.
class Recording {
 public:
  enum class Access { kReplay, kReadWrite };

  // Throws KGRPO_ERROR_NOT_FOUND if a file to replay does not exist, KGRPO_ERROR_INVALID if it is no recording,
  // KGRPO_ERROR_UNSUPPORTED if its tables are of another version, and KGRPO_ERROR_UNAVAILABLE if it cannot be used.
  // `patience`: how long to wait for another process that locks the file.
  Recording(const std::filesystem::path& file, Access access,
            std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  std::optional<RecordedCompletion> Find(const RecordedRequest& request, Match match);

  // Records the highest possible cost of a request before it is sent, so that a later process finds it if this one is
  // killed; in place of an earlier `reservation`, if that is not 0. A cost of 0 leaves none. Returns the number of the
  // reservation. Only for a run's own recording, which one process at a time writes to.
  int64_t Reserve(const RecordedRequest& request, double cost, int64_t reservation = 0);
  // Turns the reservations left by a killed process into spending and lost cost. Call before the first Reserve.
  LeftInFlight BookLeftInFlight();

  // Stores the exchange if `keep`, and adds it to the spending if `paid`. After a failed change of the file, later
  // changes wait at most 10 ms until one succeeds: otherwise each remaining answer of an ending run would wait for
  // `patience`.
  void Add(const RecordedRequest& request, const RecordedCompletion& exchange, bool keep, bool paid);

  Spending Spent();  // by this process and earlier ones
  uint64_t Exchanges();

  const std::filesystem::path& file() const { return file_; }

 private:
  // Runs `change` within a transaction. Call with mutex_ held.
  void Change(const std::function<void()>& change);

  std::filesystem::path file_;
  Access access_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  bool failed_ = false;  // the last change failed; guarded by mutex_
  std::unique_ptr<Database> database_;
};

// The recording's file for the option `recording`: the named file, or the coder's file within a named run folder.
std::filesystem::path RecordingFile(const std::filesystem::path& named);

inline constexpr const char* kRecordingName = "exchanges.sqlite";

}  // namespace kgrpo::coder_gpt4o
