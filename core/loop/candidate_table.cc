#include "loop/candidate_table.h"

#include <algorithm>
#include <cstdio>

namespace kgrpo {
namespace {

std::string Times(double factor) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2fx", factor);
  return text;
}

std::string Right(const std::string& text, size_t width) {
  return (text.size() < width ? std::string(width - text.size(), ' ') : "") + text;
}

}  // namespace

void CandidateTable::Add(const SearchCandidate& candidate, const std::string& last) {
  judged_ = candidate.evaluations;
  screened_out_ = candidate.screened_out;
  best_ = candidate.best_speedup / start_speedup_;
  last_ = last;
  if (candidate.speedup == 0 || candidate.repeated) return;
  Row row = {candidate.speedup / start_speedup_, candidate.evaluations, candidate.round, ""};
  for (const std::string& suggestion : candidate.suggestions)
    row.suggestions += (row.suggestions.empty() ? "" : ", ") + suggestion;
  const auto place = std::ranges::find_if(fastest_, [&row](const Row& other) { return row.speedup > other.speedup; });
  fastest_.insert(place, std::move(row));
  if (fastest_.size() > kShown) fastest_.pop_back();
}

std::vector<std::string> CandidateTable::Lines() const {
  const std::string under_way = UnderWayText(under_way_);
  std::vector<std::string> lines = {std::to_string(judged_) + "/" + std::to_string(evaluations_) + " kernels judged" +
                                    (screened_out_ > 0 ? ", " + std::to_string(screened_out_) + " screened out" : "") +
                                    "  best " + Times(best_) + (under_way.empty() ? "" : "  " + under_way)};
  if (!fastest_.empty()) lines.emplace_back("  speedup  kernel  round  suggestions");
  for (const Row& row : fastest_) {
    lines.push_back("  " + Right(Times(row.speedup), 7) + Right(std::to_string(row.evaluation), 8) +
                    Right(std::to_string(row.round + 1), 7) + "  " + row.suggestions);
  }
  if (!last_.empty()) lines.push_back("  last: " + last_);
  return lines;
}

}  // namespace kgrpo
