#include "coder_offline/coder.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "coder_offline/plain/techniques.h"
#include "coder_offline/program.h"
#include "coder_offline/skeleton.h"
#include "coder_offline/techniques.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

// The reason why the skeleton does not support the schedule; empty if it does.
std::string WhyNotSchedule(const Skeleton& skeleton, const Schedule& schedule) {
  const std::vector<std::string>& starting = skeleton.starting_options;
  for (const auto& [option, value] : schedule.options) {
    if (std::find(starting.begin(), starting.end(), option) != starting.end()) continue;
    const auto rule =
        std::find_if(skeleton.rules.begin(), skeleton.rules.end(),
                     [&name = option](const Rule& candidate) { return OptionOf(candidate.technique) == name; });
    if (rule == skeleton.rules.end()) {
      return "its schedule has '" + option + "', which a kernel of kind '" + schedule.skeleton + "' does not have";
    }
    const bool known = rule->values.empty()
                           ? value == 1
                           : std::find(rule->values.begin(), rule->values.end(), value) != rule->values.end();
    if (!known) return "its schedule has '" + option + "=" + std::to_string(value) + "', a value that is not supported";
  }
  return "";
}

// The allowed value nearest to `asked`; the smaller of two equally near.
int Nearest(const std::vector<int>& values, int asked) {
  return *std::min_element(values.begin(), values.end(),
                           [&](int a, int b) { return std::abs(a - asked) < std::abs(b - asked); });
}

struct Read {
  Program program;
  const Skeleton* skeleton;
};

std::optional<Read> ReadSource(std::string_view source, std::string* why) {
  auto program = ParseProgram(source, why);
  if (!program) return std::nullopt;
  const Skeleton* skeleton = FindSkeleton(program->schedule.skeleton);
  if (skeleton == nullptr) {
    *why = "its schedule is of kind '" + program->schedule.skeleton + "', which this coder does not know";
    return std::nullopt;
  }
  *why = WhyNotSchedule(*skeleton, program->schedule);
  if (why->empty()) {
    *why = skeleton->missing(*program);
    if (!why->empty()) *why = "a kernel of kind '" + program->schedule.skeleton + "' needs " + *why;
  }
  if (!why->empty()) return std::nullopt;
  return Read{std::move(*program), skeleton};
}

std::string Write(const Read& read) {
  std::string text = read.program.heading + read.program.schedule.Line() + "\n";
  if (read.program.schedule.Has("half")) text += "#include <cuda_fp16.h>\n";
  return text + "\n" + ProblemText(read.program) + "\n" + read.skeleton->kernels(read.program);
}

// Applies one technique to the program's schedule. Returns the summary, or nullopt and sets *reason.
std::optional<std::string> Apply(const Ask& ask, Read* read, std::string* reason) {
  const Rule* rule = read->skeleton->FindRule(ask.technique);
  if (rule == nullptr) {
    *reason = read->skeleton->WhyNever(ask.technique);
    return std::nullopt;
  }
  Schedule& schedule = read->program.schedule;
  const std::string option(OptionOf(ask.technique));
  const bool present = schedule.Has(option);
  int value = 1;
  if (!rule->values.empty()) {
    if (ask.value > 0) {
      value = Nearest(rule->values, ask.value);
    } else {
      value = present ? schedule.Get(option, 1) : rule->preferred;
    }
  }
  const std::string done = Trim(Fill(rule->done, {{"value", value}}));
  if (present && schedule.Get(option, 1) == value) {
    *reason = "already applied: " + done;
    return std::nullopt;
  }
  if (rule->why_not) {
    *reason = rule->why_not(read->program);
    if (!reason->empty()) return std::nullopt;
  }
  schedule.options[option] = value;
  if (ask.value > 0 && !rule->values.empty() && ask.value != value) {
    return done + " (the nearest to " + std::to_string(ask.value) + ")";
  }
  return done;
}

}  // namespace

Answer Implement(std::string_view source, std::string_view suggestion) {
  std::vector<Ask> asks = Understand(suggestion);
  if (asks.empty()) {
    return {Status::kUnclear, "", "",
            "the suggestion names no technique that this coder knows; try \"tile in shared memory 32\" or \"vectorize "
            "loads 4\""};
  }
  if (!HasSchedule(source)) return ImplementPlain(source, asks);
  std::string why;
  std::optional<Read> read = ReadSource(source, &why);
  if (!read) return {Status::kNotApplicable, "", "", "not applicable: this coder can't read the kernel: " + why};

  // Techniques are retried until none applies any more, because one may need another: the order of the words does not
  // matter.
  std::stable_sort(asks.begin(), asks.end(), [](const Ask& a, const Ask& b) { return a.technique < b.technique; });
  std::vector<std::string> done;
  std::vector<std::string> reasons(asks.size());
  std::vector<bool> applied(asks.size(), false);
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < asks.size(); ++i) {
      if (applied[i]) continue;
      const auto summary = Apply(asks[i], &*read, &reasons[i]);
      if (!summary) continue;
      applied[i] = again = true;
      done.push_back(*summary);
    }
  }
  std::string left_out;
  for (size_t i = 0; i < asks.size(); ++i) {
    if (applied[i]) continue;
    if (!left_out.empty()) left_out += "; ";
    left_out += std::string(NameOf(asks[i].technique)) + " is not applicable: " + reasons[i];
  }
  if (done.empty()) {
    const std::string message = asks.size() == 1 ? "not applicable: " + reasons[0] : left_out;
    return {Status::kNotApplicable, "", "", message};
  }
  std::string summary = Join(done, "; ");
  if (!left_out.empty()) summary += " (" + left_out + ")";
  return {Status::kOk, Write(*read), summary, ""};
}

std::string Rewrite(std::string_view source, std::string* why) {
  const std::optional<Read> read = ReadSource(source, why);
  return read ? Write(*read) : "";
}

}  // namespace kgrpo::coder_offline
