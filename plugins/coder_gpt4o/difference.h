// Describes how a request differs from the recorded ones, for a replay that has no answer. Used by recording.cc.
#ifndef KGRPO_CODER_GPT4O_DIFFERENCE_H
#define KGRPO_CODER_GPT4O_DIFFERENCE_H

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {

class NearestRequest {
 public:
  // `body`: the request's JSON.
  explicit NearestRequest(const std::string& body);

  // Considers a recorded request. The nearest one differs in the fewest keys and messages; among equals it has the most
  // text in common at the beginning and end of its messages.
  void Consider(const std::string& body);

  // "model is "gpt-4o", recorded is "gpt-4o-mini"; message 2 (user), line 14 is "...", recorded is "..."". Says so
  // where nothing was offered.
  std::string Difference() const;

 private:
  struct Distance {
    size_t different = 0;  // keys and messages
    size_t common = 0;     // bytes of messages
  };
  Distance DistanceTo(const nlohmann::json& recorded) const;

  nlohmann::json wanted_;
  nlohmann::json nearest_;
  Distance distance_;
  bool any_ = false;
};

}  // namespace kgrpo::coder_gpt4o

#endif
