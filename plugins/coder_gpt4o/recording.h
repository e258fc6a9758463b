// Exchanges with a service, kept in an SQLite file: the exact request and the answer. The modes replay and cache answer
// the same questions from it without the service, and a resumed run reuses the answers that it has paid for.
// docs/coder_gpt4o.md describes the tables. Used by coder.cc.
#ifndef KGRPO_CODER_GPT4O_RECORDING_H
#define KGRPO_CODER_GPT4O_RECORDING_H

#include <kgrpo/support/sqlite.h>           // Database
#include "coder_gpt4o/completion_client.h"  // Completion

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace kgrpo::coder_gpt4o {

// A request is known by what stays the same when it is made again, and by the sample of the run that it was made for:
// the host's seed of the request. What is posted holds measurements too, which differ whenever they are taken.
struct RecordedRequest {
  std::string body;      // that is posted
  std::string identity;  // a JSON object like it, without measurements
  std::string digest;    // SHA-256 of the identity
  uint64_t sample = 0;
  std::string service = {};  // who would be asked: host and path, without a query
};
RecordedRequest MakeRecordedRequest(std::string body, std::string identity, uint64_t sample);

struct RecordedCompletion {
  Completion completion;    // kAnswered or kFailed
  double cost = 0;          // as it was when it was paid
  double lost_cost = 0;     // of it: for attempts that gave no answer
  bool paid = true;         // by the run in whose recording it stands, not taken from a cache
  int64_t reservation = 0;  // that is over with it; 0: none was written down
};

// Calls that a process had in flight when it was killed, and the most that they can have cost: US dollars.
struct LeftInFlight {
  uint64_t calls = 0;
  double cost = 0;
};

// Which of several recorded answers to the same content is wanted.
enum class Match {
  kSample,    // that to the same sample, if the request's service answered it
  kAnswered,  // that to the same sample, else another one by the sample's number, of those that the
              // request's service answered
  kContent,   // that to the same sample, be it a failure; else as kAnswered, else a failure
};

// Any thread.
class Recording {
 public:
  enum class Access { kReplay, kReadWrite };

  // Throws KGRPO_ERROR_NOT_FOUND for a file to replay that is not there, KGRPO_ERROR_INVALID for one that is no
  // recording.
  // `patience`: for how long another process may hold the file.
  Recording(const std::filesystem::path& file, Access access,
            std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  std::optional<RecordedCompletion> Find(const RecordedRequest& request, Match match);

  // Writes down, before a request is sent, what it can cost at most: should this process be killed meanwhile, the next
  // one finds it. Returns the reservation's number. Of a run's own recording, which one process at a time writes to.
  int64_t Reserve(const RecordedRequest& request, double cost);
  // The request can cost so much now.
  void Raise(int64_t reservation, double cost);
  // It was not sent, or has cost nothing.
  void Release(int64_t reservation);
  // Adds the reservations that are there to what was spent, to what was lost of that, and to LostAttempts. Call before
  // the first Reserve.
  LeftInFlight BookLeftInFlight();

  // Keeps the exchange, with `keep`, and adds it to what was spent, with `paid`. Once a change of the file failed, it
  // is not waited for any more until one succeeds: the answers of a run that ends must not take its patience each.
  void Add(const RecordedRequest& request, const RecordedCompletion& exchange, bool keep, bool paid);

  // The sum of all costs added by Add, in this process and before: US dollars.
  double Spent();
  double LostCost();  // of that: for attempts that gave no answer
  // Why attempts that were paid for gave no answer, and how many.
  std::map<std::string, size_t> LostAttempts();
  uint64_t Exchanges();

  // In which words and keys the recorded request that is nearest differs from this one, measurements aside; for a
  // person.
  std::string Difference(const RecordedRequest& request);

  const std::filesystem::path& file() const { return file_; }

 private:
  // Runs it within a transaction. Under the mutex.
  void Change(const std::function<void()>& change);
  void AddLost(const std::string& why, uint64_t attempts);  // within one

  std::filesystem::path file_;
  Access access_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  bool failed_ = false;  // guarded: the last change
  std::unique_ptr<Database> database_;
};

// The file that a user names by `recording`: itself, or within a run's folder its coder's.
std::filesystem::path RecordingFile(const std::filesystem::path& named);

inline constexpr const char* kRecordingName = "exchanges.sqlite";

}  // namespace kgrpo::coder_gpt4o

#endif
