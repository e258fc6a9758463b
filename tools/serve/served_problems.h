// The problems of the service: those it was started with, and those that came with a request. Each is opened once for
// each device, on first use, and its baseline is kept. Used by service.cc.
#ifndef KGRPO_SERVE_SERVED_PROBLEMS_H
#define KGRPO_SERVE_SERVED_PROBLEMS_H

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/directories.h"
#include "plugin/instances.h"
#include "serve/requests.h"

namespace kgrpo::serve {

// An evaluator and its device name in requests, for example one of several modelled devices.
struct ServedDevice {
  std::string name;
  std::unique_ptr<Evaluator> evaluator;
};

// A problem's folder, and the problem as each device's evaluator has it. [any thread]
class ServedProblem {
 public:
  // `remove`: the destructor deletes the folder.
  ServedProblem(std::string name, std::string directory, std::string sha256, size_t devices, bool remove);
  ~ServedProblem();
  ServedProblem(const ServedProblem&) = delete;
  ServedProblem& operator=(const ServedProblem&) = delete;

  const std::string& name() const { return name_; }
  const std::string& sha256() const { return sha256_; }

  // The message with the path of the problem's folder replaced by the problem's name: clients see no paths of this
  // machine.
  std::string WithoutPath(std::string message) const;

  // Opens the problem on first use. Throws kgrpo::Error.
  const Problem& Open(const ServedDevice& device, size_t number);

  // Returns the reference's evaluation, the baseline of a kernel that is evaluated with the same arguments.
  Evaluation Baseline(const ServedDevice& device, size_t number, uint64_t seed, bool thorough);

 private:
  struct Opened {
    std::mutex mutex;  // held while the problem is opened
    std::optional<Problem> problem;
    std::mutex baseline_mutex;
    std::optional<Evaluation> baseline;
  };

  const std::string name_, directory_, sha256_;
  const bool remove_;
  std::vector<Opened> opened_;  // by device
};

// [any thread]
class ServedProblems {
 public:
  // `folders`: those to serve. `inline_code`: problems that come with a request may hold native code.
  ServedProblems(const std::vector<std::string>& folders, size_t devices, bool inline_code);

  // Throws HttpError: 404 "unknown_problem" where the client must send the files, 422 where they are not acceptable.
  std::shared_ptr<ServedProblem> Find(const ProblemRequest& request);

  // Those it was started with, by name.
  const std::map<std::string, std::shared_ptr<ServedProblem>>& named() const { return named_; }

 private:
  std::shared_ptr<ServedProblem> Keep(const ProblemRequest& request, const std::string& sha256);

  const size_t devices_;
  const bool inline_code_;
  TemporaryDirectory directory_;  // of those that came with requests
  std::map<std::string, std::shared_ptr<ServedProblem>> named_;
  std::map<std::string, std::shared_ptr<ServedProblem>> by_digest_;
  std::mutex mutex_;
  std::list<std::shared_ptr<ServedProblem>> inline_;  // the latest used first
  uint64_t kept_ = 0;                                 // number of problems from requests so far; names their folders
};

}  // namespace kgrpo::serve
#endif
