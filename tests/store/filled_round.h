// A round whose fields all have values of their own, and a round's fields as text. Used by tests of what keeps or sends
// rounds: a field that is lost on the way changes the text.
#ifndef KGRPO_TESTS_STORE_FILLED_ROUND_H
#define KGRPO_TESTS_STORE_FILLED_ROUND_H

#include "store/records.h"

#include <kgrpo/support/evaluation_json.h>

#include <concepts>
#include <string>
#include <vector>

namespace kgrpo::test {

class Filler {
 public:
  template <typename Name, typename T>
  void operator()(const Name&, T& value) {
    Fill(value);
  }
  void operator()(Digits, uint64_t& value) { value = ~uint64_t{0} - static_cast<uint64_t>(next_++); }
  template <typename T>
  void Group(std::optional<T>& group, const auto& fields) {
    fields(group.emplace());
  }

 private:
  std::string Text() { return "text " + std::to_string(next_++); }
  void Fill(std::integral auto& value) { value = static_cast<std::remove_reference_t<decltype(value)>>(next_++); }
  void Fill(bool& value) { value = true; }
  void Fill(double& value) { value = next_++ / 7.0; }
  void Fill(std::string& value) { value = Text(); }
  void Fill(std::vector<int32_t>& value) { value = {next_++, -1}; }
  void Fill(std::vector<float>& value) { value = {-0.1F * static_cast<float>(next_++), -1e-7F}; }
  void Fill(std::vector<ChatMessage>& value) { value = {{"system", Text()}, {"user", Text()}}; }
  void Fill(std::vector<Metric>& value) { value = {{Text(), next_++ / 7.0}, {"registers", 32}}; }
  void Fill(std::vector<Remark>& value) { value = {{"group", "label", Text(), 12, next_++ / 70.0}}; }
  void Fill(RoundPart& value) { value = RoundPart::kReward; }
  void Fill(kgrpo_coder_outcome& value) { value = KGRPO_CODER_UNCLEAR; }

  int next_ = 1;
};

class Shower {
 public:
  template <typename Name, typename T>
  void operator()(const Name&, const T& value) {
    Show(value);
  }
  template <typename T>
  void Group(const std::optional<T>& group, const auto& fields) {
    if (group) fields(*group);
    text += group ? "" : "absent\n";
  }

  std::string text;

 private:
  void Show(const auto& value) { text += nlohmann::ordered_json(value).dump() + "\n"; }
  void Show(const std::vector<ChatMessage>& value) {
    for (const ChatMessage& message : value) text += message.role + ": " + message.content + "\n";
  }
  void Show(const std::vector<Metric>& value) { text += MetricsJson(value).dump() + "\n"; }
  void Show(const std::vector<Remark>& value) { text += RemarksJson(value).dump() + "\n"; }
  void Show(RoundPart value) { text += std::string(RoundPartName(value)) + "\n"; }
  void Show(kgrpo_coder_outcome value) { text += std::string(CoderOutcomeName(value)) + "\n"; }
};

inline TrajectoryRecord FilledTrajectory() {
  TrajectoryRecord trajectory;
  Filler fill;
  VisitTrajectoryFields(trajectory, fill);
  VisitFields(trajectory.rounds_done.emplace_back(), fill);
  RoundRecord& bare = trajectory.rounds_done.emplace_back();  // without any of the groups
  bare.round = trajectory.rounds_done[0].round + 1;
  VisitFields(trajectory.failed_round.emplace(), fill);
  return trajectory;
}

inline std::string Shown(const TrajectoryRecord& trajectory) {
  Shower show;
  VisitTrajectoryFields(trajectory, show);
  for (const RoundRecord& round : trajectory.rounds_done) VisitFields(round, show);
  if (trajectory.failed_round) VisitFields(*trajectory.failed_round, show);
  return show.text;
}

}  // namespace kgrpo::test
#endif
