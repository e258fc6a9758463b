#include "cli/recorded_samples.h"

#include <kgrpo/sdk/error.h>

#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cli/json_lines.h"

namespace kgrpo::cli {
namespace {

constexpr uint64_t kMaxRound = 999'999;
constexpr float kLargestLogprob = 1e-3F;  // rounding can put the log-probability of a certain token just above 0

[[noreturn]] void Refuse(const std::string& message) {
  throw Error(KGRPO_ERROR_INVALID, message);
}

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

// Columns of a run's own rollouts (core/store/rollouts.cc) that an update does not need.
const std::vector<std::string> kIgnored = {
    "step",       "stage",         "rounds",           "family",        "prompted_as",   "prompt",
    "completion", "code_a",        "code_b",           "code_c",        "compiled",      "correct",
    "verdict",    "coder_outcome", "seconds",          "coder_summary", "coder_message", "modelled",
    "speedup",    "return",        "baseline_seconds", "diagnosis",     "advantage",
};

RecordedSample ReadSample(const JsonLine& line) {
  line.RequireKnown({"prompt_ids", "completion_ids", "logprobs", "reward", "idle_reward", "trajectory", "round",
                     "problem", "truncated"},
                    kIgnored);
  RecordedSample sample;
  sample.line = line.number();
  sample.prompt = line.Ids("prompt_ids");
  sample.completion = line.Ids("completion_ids");
  if (line.Has("logprobs")) sample.logprobs = ReadLogprobs(line, sample.completion.size());
  sample.reward = line.Number("reward");
  if (line.Has("idle_reward")) sample.idle_reward = line.Number("idle_reward");
  sample.trajectory = line.Count("trajectory");
  const uint64_t round = line.Count("round");
  if (round > kMaxRound) {
    Refuse("\"round\": expected an integer from 0 to " + std::to_string(kMaxRound) + ", found " +
           std::to_string(round));
  }
  sample.round = static_cast<uint32_t>(round);
  sample.problem = line.NameOrNumber("problem");
  if (line.Has("truncated")) sample.truncated = line.Flag("truncated");
  return sample;
}

// The trajectories of a file as read so far.
class Trajectories {
 public:
  void Add(const RecordedSample& sample) {
    const std::string name = "trajectory " + std::to_string(sample.trajectory);
    const auto [first, is_new] = first_.emplace(sample.trajectory, std::pair(sample.problem, sample.line));
    if (const auto& [problem, line] = first->second; problem != sample.problem) {
      Refuse(name + " works on problem " + problem + " (line " + std::to_string(line) + "), not on " + sample.problem +
             ": give each trajectory of the file its own number");
    }
    const auto [earlier, added] = rounds_.emplace(std::pair(sample.trajectory, sample.round), sample.line);
    if (!added) {
      Refuse(name + " has a round " + std::to_string(sample.round) + " already (line " +
             std::to_string(earlier->second) + "): give each trajectory of the file its own number");
    }
  }

 private:
  std::map<uint64_t, std::pair<std::string, size_t>> first_;  // the problem, and the line of its first sample
  std::map<std::pair<uint64_t, uint32_t>, size_t> rounds_;    // the line of each
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
           ": holds no sample: it must have one JSON object a line (kgrpo-host update --help shows it)");
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

std::string WithLine(const std::string& file, const std::vector<RecordedSample>& samples, const std::string& message) {
  constexpr std::string_view kBegins = "sample ";
  if (!message.starts_with(kBegins)) return message;
  size_t index = 0;
  const char* const end = message.data() + message.size();
  const auto [after, error] = std::from_chars(message.data() + kBegins.size(), end, index);
  if (error != std::errc() || index >= samples.size() || after == end || *after != ':') return message;
  return InputName(file) + ":" + std::to_string(samples[index].line) + std::string(after, end);
}

}  // namespace kgrpo::cli
