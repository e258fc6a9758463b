#include "loop/candidate_lines.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/log.h"  // PrintableText

namespace kgrpo {
namespace {

// Returns the reason why the coder gave no kernel, as one short line; empty where it gave none.
std::string ReasonOf(const SearchCandidate& candidate) {
  constexpr size_t kMost = 160;
  std::string line = candidate.message.substr(0, candidate.message.find('\n'));
  if (const std::string said = "not applicable: "; line.starts_with(said))
    line.erase(0, said.size());  // the outcome says it already
  if (line.empty()) return "";
  if (line.size() > kMost) line = line.substr(0, kMost) + "...";
  return " (" + PrintableText(line) + ")";
}

std::string JudgedBefore(const SearchCandidate& candidate) {
  return candidate.repeated ? " (judged before)" : "";
}

}  // namespace

std::string CandidateLines::Said(const SearchCandidate& candidate) const {
  char speedup[64] = "";
  if (candidate.outcome == kScreenedOut) {
    if (!candidate.screening->correct)
      return candidate.suggestion + ": screened out as " + candidate.screening->verdict + JudgedBefore(candidate);
    std::snprintf(speedup, sizeof speedup, ": screened out at %.2fx by the screen's time", candidate.screened_speedup);
    return candidate.suggestion + speedup + JudgedBefore(candidate);
  }
  if (candidate.speedup > 0) std::snprintf(speedup, sizeof speedup, " %.2fx", candidate.speedup / start_speedup_);
  const std::string refusal = candidate.outcome + ReasonOf(candidate);
  if (const auto known = refused_.find(refusal);
      known != refused_.end() && known->second.front() != candidate.suggestion)
    return candidate.suggestion + ": " + candidate.outcome + " (as " + known->second.front() + ")";
  return candidate.suggestion + ": " + refusal + speedup + JudgedBefore(candidate);
}

bool CandidateLines::Add(const SearchCandidate& candidate) {
  if (candidate.evaluation || candidate.screening || candidate.outcome == kEvaluatorFailed) {
    refusals_.AddKernel();
    if (candidate.evaluation && !candidate.repeated) return true;
    return ++times_[Said(candidate)] == 1;
  }
  refusals_.Add(candidate.message);
  const std::string refusal = candidate.outcome + ReasonOf(candidate);
  ++times_[refusal];
  std::vector<std::string>& suggestions = refused_[refusal];
  if (std::ranges::find(suggestions, candidate.suggestion) != suggestions.end()) return false;
  suggestions.push_back(candidate.suggestion);
  return true;
}

std::vector<std::string> CandidateLines::Repeats() const {
  std::vector<std::pair<uint64_t, std::string>> order;
  for (const auto& [said, times] : times_) {
    if (times == 1) continue;
    order.emplace_back(times, said);
    if (const auto refused = refused_.find(said); refused != refused_.end()) {
      for (size_t i = 0; i < refused->second.size(); ++i)
        order.back().second += (i == 0 ? ": " : ", ") + refused->second[i];
    }
  }
  std::ranges::stable_sort(order, std::ranges::greater(), &std::pair<uint64_t, std::string>::first);
  std::vector<std::string> lines;
  uint64_t rest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i < kShown) {
      lines.push_back(std::to_string(order[i].first) + " times  " + order[i].second);
    } else {
      rest += order[i].first;
    }
  }
  if (rest > 0) lines.push_back(std::to_string(rest) + " times  " + std::to_string(order.size() - kShown) + " others");
  return lines;
}

}  // namespace kgrpo
