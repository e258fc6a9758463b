// An evaluator that asks servers (`kgrpo-host serve`). Problems travel by name and digest, and with their
// files if a server does not have them. Used by plugin.cc.
#pragma once

#include <kgrpo/evaluator.h>
#include <kgrpo/sdk/host.h>
#include <kgrpo/support/evaluation.h>
#include <kgrpo/support/problem_files.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "evaluator_remote/server_pool.h"

namespace kgrpo::evaluator_remote {

// A problem as a server described it.
class RemoteProblem {
 public:
  RemoteProblem(std::string name, ProblemFiles files);
  RemoteProblem(const RemoteProblem&) = delete;
  RemoteProblem& operator=(const RemoteProblem&) = delete;

  const std::string& name() const { return name_; }
  const kgrpo_problem_info& info() const { return info_; }

 private:
  friend class RemoteEvaluator;
  void Describe(const nlohmann::ordered_json& json);

  const std::string name_, sha256_;
  const ProblemFiles files_;
  std::atomic<bool> send_files_{false};  // a server did not know the digest
  std::string title_, family_, split_, task_, signature_, source_, refused_;
  std::vector<std::string> traits_, flags_;
  std::vector<kgrpo_str> trait_views_, flag_views_;
  kgrpo_problem_info info_{};
};

struct RemoteOptions {
  PoolOptions pool;
  std::string device;  // empty: the servers' first
};

// [any thread]
class RemoteEvaluator {
 public:
  // Asks what the servers are and declares their metrics. Waits for one of them; throws kgrpo::Error.
  RemoteEvaluator(const Host& host, RemoteOptions options);

  const std::string& description() const { return description_; }
  std::unique_ptr<RemoteProblem> Open(const std::string& directory);
  Evaluation Baseline(RemoteProblem& problem, uint64_t seed, bool thorough);
  Evaluation Evaluate(RemoteProblem& problem, std::string_view source, uint64_t seed, bool thorough);

 private:
  using Json = nlohmann::ordered_json;

  Json AskAbout(RemoteProblem& problem, const std::string& path, Json body, const char* key);
  Json Result(RemoteProblem& problem, Json body);
  void Compare(const Json& first, const Host& host);

  const std::string device_;
  ServerPool pool_;
  std::string description_;
};

}  // namespace kgrpo::evaluator_remote
