// Converts ABI structs to the JSON that programs read and write. Used by the plugins for programs.
#pragma once

#include <kgrpo/coder.h>
#include <kgrpo/evaluator.h>
#include <kgrpo/reward.h>
#include <kgrpo/support/coder_answer.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kgrpo::program {

// The lowest 53 bits: what every language reads exactly from JSON.
uint64_t WireSeed(uint64_t seed);

// Parameters of "score" and "idle", as JSON's text: making a tree of it took a quarter of a request's time.
std::string RewardParams(const kgrpo_reward_request& request);

// Parameters of "implement".
nlohmann::ordered_json CoderParams(const kgrpo_coder_request& request);

// The answer to "implement", but for how long it took. Throws KGRPO_ERROR_INTERNAL with what is wrong with it.
CoderAnswer ReadCoderAnswer(const nlohmann::json& result);

// The answer to "open_problem", owned. Throws KGRPO_ERROR_INTERNAL with what is wrong with it.
class OpenedProblem {
 public:
  OpenedProblem(std::string directory, const nlohmann::json& result);
  OpenedProblem(const OpenedProblem&) = delete;
  OpenedProblem& operator=(const OpenedProblem&) = delete;
  const std::string& directory() const { return directory_; }
  const kgrpo_problem_info& info() const { return info_; }

 private:
  std::string directory_, name_, title_, family_, split_, task_, signature_, source_;
  std::vector<std::string> traits_;
  std::vector<kgrpo_str> trait_texts_;
  kgrpo_problem_info info_{};
};

}  // namespace kgrpo::program
