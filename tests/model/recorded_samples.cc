#include "model/recorded_samples.h"

#include <kgrpo/sdk/error.h>

#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "model/json_lines.h"
#include "report/export.h"

namespace kgrpo::cli {
namespace {

constexpr uint64_t kMaxRound = 999'999;
constexpr float kLargestLogprob = 1e-3F;  // rounding can put the log-probability of a certain token just above 0

[[noreturn]] void Refuse(const std::string& message) { throw Error(KGRPO_ERROR_INVALID, message); }

std::vector<float> ReadLogprobs(const JsonLine& line, size_t tokens) {
  std::vector<float> logprobs = line.Numbers("logprobs");
  if (logprobs.size() != tokens) {
    Refuse("\"logprobs\" has " + std::to_string(logprobs.size()) + " numbers for " + std::to_string(tokens) +
           " completion tokens: give one a token, or leave the key out");
  }
  for (size_t i = 0; i < logprobs.size(); ++i) {
    if (std::isfinite(logprobs[i]) && logprobs[i] <= kLargestLogprob) continue;
    Refuse("\"logprobs\"[" + std::to_string(i) +
           "]: expected the natural logarithm of a probability, finite and at most "
           "0, found " +
           line.Get("logprobs")[i].dump());
  }
  return logprobs;
}

// The columns of a run's export that an update does not need.
const std::vector<std::string>& Ignored() {
  static const std::vector<std::string> ignored = [] {
    std::vector<std::string> names = {"reward_parts"};
    for (const ExportColumn& column : ExportColumns()) names.emplace_back(column.name);
    return names;
  }();
  return ignored;
}

uint32_t RoundOf(const JsonLine& line, const char* key, uint64_t least) {
  const uint64_t value = line.Count(key);
  if (value < least || value > kMaxRound + least) {
    Refuse("\"" + std::string(key) + "\": expected an integer from " + std::to_string(least) + " to " +
           std::to_string(kMaxRound + least) + ", found " + std::to_string(value));
  }
  return static_cast<uint32_t>(value);
}

RecordedSample ReadSample(const JsonLine& line) {
  line.RequireKnown({"prompt_ids", "completion_ids", "logprobs", "reward", "idle_reward", "step", "trajectory", "round",
                     "rounds", "problem", "truncated"},
                    Ignored());
  RecordedSample sample;
  sample.line = line.number();
  sample.prompt = line.Ids("prompt_ids");
  sample.completion = line.Ids("completion_ids");
  // A run writes an empty list for a completion that was not sampled.
  if (line.Has("logprobs") && line.Get("logprobs") != nlohmann::ordered_json::array())
    sample.logprobs = ReadLogprobs(line, sample.completion.size());
  sample.reward = line.Number("reward");
  if (line.Has("idle_reward")) sample.idle_reward = line.Number("idle_reward");
  sample.trajectory = line.Count("trajectory");
  if (line.Has("step")) sample.step = line.Count("step");
  sample.round = RoundOf(line, "round", 0);
  if (line.Has("rounds")) sample.rounds = RoundOf(line, "rounds", 1);
  sample.problem = line.NameOrNumber("problem");
  if (line.Has("truncated")) sample.truncated = line.Flag("truncated");
  return sample;
}

// The trajectories of a step as read so far.
class Trajectories {
 public:
  void Add(const RecordedSample& sample) {
    if (sample.step < step_) {
      Refuse("\"step\" is " + std::to_string(sample.step) + " after " + std::to_string(step_) +
             ": sort the lines by step, each of which is an update");
    }
    if (sample.step > step_) *this = Trajectories();
    step_ = sample.step;
    const std::string name = "trajectory " + std::to_string(sample.trajectory);
    const First& first =
        first_.emplace(sample.trajectory, First{sample.problem, sample.rounds, sample.line}).first->second;
    if (first.problem != sample.problem) {
      Refuse(name + " works on problem " + first.problem + " (line " + std::to_string(first.line) + "), not on " +
             sample.problem + ": give each trajectory of the file its own number");
    }
    if (first.rounds != sample.rounds) {
      Refuse(name + " has another number of \"rounds\" in line " + std::to_string(first.line) +
             ": give all of its lines the same");
    }
    const auto [earlier, added] = rounds_.emplace(std::pair(sample.trajectory, sample.round), sample.line);
    if (!added) {
      Refuse(name + " has a round " + std::to_string(sample.round) + " already (line " +
             std::to_string(earlier->second) + "): give each trajectory of the file its own number");
    }
  }

 private:
  struct First {
    std::string problem;
    uint32_t rounds;
    size_t line;
  };
  uint64_t step_ = 0;
  std::map<uint64_t, First> first_;                         // the first sample of each
  std::map<std::pair<uint64_t, uint32_t>, size_t> rounds_;  // the line of each
};

void RequireIdsFit(const std::string& key, const std::vector<int32_t>& ids, uint32_t vocabulary) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (static_cast<uint32_t>(ids[i]) < vocabulary) continue;
    Refuse("\"" + key + "\"[" + std::to_string(i) + "]: token id " + std::to_string(ids[i]) +
           " is outside the model's vocabulary of " + std::to_string(vocabulary) +
           ": samples must be made of this model's tokens");
  }
}

}  // namespace

std::vector<RecordedSample> ReadRecordedSamples(const std::string& file) {
  std::vector<RecordedSample> samples;
  Trajectories trajectories;
  ReadJsonLines(file, [&](const JsonLine& line) {
    RecordedSample sample = ReadSample(line);
    trajectories.Add(sample);
    samples.push_back(std::move(sample));
  });
  if (samples.empty()) {
    Refuse(InputName(file) +
           ": holds no sample: it must have one JSON object a line (kgrpo-model update --help shows it)");
  }
  return samples;
}

void RequireFit(const std::string& file, const std::vector<RecordedSample>& samples, const kgrpo_policy_info& model) {
  LineMistakes mistakes(InputName(file));
  for (const RecordedSample& sample : samples) {
    mistakes.Try(sample.line, [&] {
      RequireIdsFit("prompt_ids", sample.prompt, model.vocabulary_size);
      RequireIdsFit("completion_ids", sample.completion, model.vocabulary_size);
      const size_t size = sample.prompt.size() + sample.completion.size();
      if (size > model.context_length) {
        Refuse("its " + std::to_string(size) + " tokens exceed the model's context of " +
               std::to_string(model.context_length) + ": shorten the prompt or leave the sample out");
      }
    });
  }
  mistakes.ThrowIfAny();
}

std::string WithLine(const std::string& file, std::span<const RecordedSample> samples, const std::string& message) {
  constexpr std::string_view kBegins = "sample ";
  if (!message.starts_with(kBegins)) return message;
  size_t index = 0;
  const char* const end = message.data() + message.size();
  const auto [after, error] = std::from_chars(message.data() + kBegins.size(), end, index);
  if (error != std::errc() || index >= samples.size() || after == end || *after != ':') return message;
  return InputName(file) + ":" + std::to_string(samples[index].line) + std::string(after, end);
}

}  // namespace kgrpo::cli
