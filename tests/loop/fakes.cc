#include "fakes.h"

#include "store/database.h"
#include "store/files.h"

#include <kgrpo/sdk/error.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

namespace kgrpo::fakes {

const std::vector<std::string> kTechniques = {"tile", "vectorise", "unroll", "fuse", "pad", "overflow"};

namespace {

constexpr size_t kContexts = 16;  // of the policy's table
constexpr int32_t kEnd = 1;
constexpr int32_t kFirstTechnique = 1000;

uint64_t Mix(uint64_t value) {  // a bijective scramble
  value ^= value >> 31;
  value *= 0x7fb5d329728ea185ull;
  value ^= value >> 27;
  value *= 0x81dadef4bc2dd44dull;
  return value ^ (value >> 33);
}

uint64_t Hash(std::string_view text, uint64_t seed = 0) {
  uint64_t hash = Mix(seed + 0x9e3779b97f4a7c15ull);
  for (const char c : text) hash = Mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

double Unit(uint64_t hash) {
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

void Delay(std::string_view what) {
  const uint64_t seed = knobs().delay_seed;
  if (seed == 0) return;
  const auto limit = static_cast<double>(knobs().delay_microseconds);
  std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int64_t>(Unit(Hash(what, seed)) * limit)));
}

kgrpo_str Schema() {
  return Str("{}");
}

}  // namespace

Knobs& knobs() {
  static Knobs knobs;
  return knobs;
}

void Reset() {
  Knobs& k = knobs();
  k.delay_seed = 0;
  k.delay_microseconds = 2000;
  k.coder_fails_every = 0;
  k.coder_error = k.coder_counts = k.thorough_refutes = k.forgets_state = k.cancelled = k.cancel_in_thorough = false;
  k.not_finite_at = k.cancel_after_updates = k.coder_calls = k.evaluations = k.thorough = k.updates = 0;
}

// ---- policy
// ------------------------------------------------------------------------------------------------------------

}  // namespace kgrpo::fakes

struct kgrpo_policy {
  std::array<float, kgrpo::fakes::kContexts * 6> current{}, gradient{}, reference{};
  bool has_reference = false;
  int64_t shape[2] = {kgrpo::fakes::kContexts, 6};
  kgrpo_tensor value_tensor{}, gradient_tensor{};
  kgrpo_parameter parameter{};
  kgrpo_policy_info info{};
  int32_t end = kgrpo::fakes::kEnd;
};

namespace kgrpo::fakes {
namespace {

// The prompt's bytes; what the policy looks at of them is the first word.
size_t ContextOf(const int32_t* ids, size_t count) {
  std::string word;
  for (size_t i = 0; i < count && ids[i] != ' '; ++i) word += static_cast<char>(ids[i]);
  return Hash(word) % kContexts;
}

std::array<double, 6> LogProbabilities(const float* table, size_t context, double temperature) {
  std::array<double, 6> logits;
  double total = 0;
  for (size_t t = 0; t < 6; ++t) {
    logits[t] = static_cast<double>(table[context * 6 + t]) / temperature;
    total += std::exp(logits[t]);
  }
  for (double& logit : logits) logit -= std::log(total);
  return logits;
}

kgrpo_error* CreatePolicy(const kgrpo_host*, kgrpo_str, kgrpo_policy** out) {
  return Guard([&] {
    auto* policy = new kgrpo_policy;
    const auto tensor = [policy](float* data) {
      kgrpo_tensor t{};
      t.data = data;
      t.device.type = KGRPO_DEVICE_CPU;
      t.ndim = 2;
      t.dtype = {KGRPO_DTYPE_FLOAT, 32, 1};
      t.shape = policy->shape;
      return t;
    };
    policy->value_tensor = tensor(policy->current.data());
    policy->gradient_tensor = tensor(policy->gradient.data());
    policy->parameter = {Str("table"), &policy->value_tensor, &policy->gradient_tensor, 1};
    policy->info = {
        sizeof(kgrpo_policy_info), Str("Table"), Str("cpu"), policy->current.size(), 2000, 4096, &policy->end, 1};
    *out = policy;
  });
}

kgrpo_error* EncodeChat(kgrpo_policy*, const kgrpo_message* messages, size_t count, const kgrpo_chat_options*,
                        kgrpo_token_sink sink) {
  return Guard([&] {
    std::vector<int32_t> ids;
    for (const char c : View(messages[count - 1].content)) ids.push_back(static_cast<unsigned char>(c));
    sink.put(sink.context, ids.data(), ids.size());
  });
}

kgrpo_error* RenderChat(kgrpo_policy*, const kgrpo_message* messages, size_t count, const kgrpo_chat_options*,
                        kgrpo_text_sink sink) {
  return Guard([&] { sink.put(sink.context, messages[count - 1].content); });
}

kgrpo_error* Encode(kgrpo_policy*, kgrpo_str text, kgrpo_token_sink sink) {
  return Guard([&] {
    for (size_t t = 0; t < kTechniques.size(); ++t) {
      if (kTechniques[t] != View(text)) continue;
      const auto id = static_cast<int32_t>(kFirstTechnique + t);
      sink.put(sink.context, &id, 1);
    }
  });
}

kgrpo_error* Decode(kgrpo_policy*, const int32_t* ids, size_t count, int32_t, kgrpo_text_sink sink) {
  return Guard([&] {
    for (size_t i = 0; i < count; ++i) {
      if (ids[i] >= kFirstTechnique)
        sink.put(sink.context, Str(kTechniques[static_cast<size_t>(ids[i] - kFirstTechnique)]));
    }
  });
}

kgrpo_error* Generate(kgrpo_policy* self, const kgrpo_generate_request* requests, size_t count,
                      const kgrpo_sampling* sampling, kgrpo_completion_sink sink) {
  return Guard([&] {
    // The rounding of a real model depends on what it generates together: so does this one's seed.
    uint64_t together = 0;
    for (size_t i = 0; i < count; ++i) together = Mix(together ^ requests[i].seed);
    for (size_t n = 0; n < count; ++n) {
      const size_t i = count - 1 - n;  // in another order than asked
      const auto logprobs = LogProbabilities(
          self->current.data(), ContextOf(requests[i].prompt_ids, requests[i].prompt_size), sampling->temperature);
      double left = Unit(Mix(requests[i].seed ^ together));
      size_t chosen = 0;
      while (chosen + 1 < 6 && left >= std::exp(logprobs[chosen])) left -= std::exp(logprobs[chosen++]);
      const int32_t ids[2] = {static_cast<int32_t>(kFirstTechnique + chosen), kEnd};
      const float values[2] = {static_cast<float>(logprobs[chosen]), 0.0f};
      kgrpo_completion completion{};
      completion.struct_size = sizeof(completion);
      completion.request = i;
      completion.ids = ids;
      completion.logprobs = values;
      completion.size = 2;
      completion.text = Str(kTechniques[chosen]);
      completion.finish_reason = KGRPO_FINISH_STOP;
      sink.put(sink.context, &completion);
    }
  });
}

kgrpo_error* Forward(kgrpo_policy* self, const kgrpo_forward_request* request, float* logprobs, float* entropies,
                     kgrpo_forward_context**) {
  return Guard([&] {
    if (request->need_gradient) throw Error(KGRPO_ERROR_UNSUPPORTED, "the table's trainer needs no gradient");
    size_t out = 0;
    for (size_t s = 0; s < request->sequence_count; ++s) {
      const kgrpo_sequence& sequence = request->sequences[s];
      const auto values = LogProbabilities(self->current.data(), ContextOf(sequence.prompt_ids, sequence.prompt_size),
                                           request->temperature);
      double entropy = 0;
      for (const double value : values) entropy -= std::exp(value) * value;
      for (size_t i = 0; i < sequence.completion_size; ++i, ++out) {
        const bool technique = sequence.completion_ids[i] >= kFirstTechnique;
        logprobs[out] =
            technique ? static_cast<float>(values[static_cast<size_t>(sequence.completion_ids[i] - kFirstTechnique)])
                      : 0;
        if (entropies != nullptr) entropies[out] = technique ? static_cast<float>(entropy) : 0;
      }
    }
  });
}

kgrpo_error* SavePolicy(kgrpo_policy* self, uint32_t copy, kgrpo_str directory) {
  return Guard([&] {
    const auto& table = copy == KGRPO_POLICY_CURRENT ? self->current : self->reference;
    std::ofstream file(Copy(directory) + "/table.bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(table.data()), sizeof(table));
    if (!file.flush()) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write the table");
  });
}

kgrpo_error* LoadPolicy(kgrpo_policy* self, uint32_t copy, kgrpo_str directory) {
  return Guard([&] {
    auto& table = copy == KGRPO_POLICY_CURRENT ? self->current : self->reference;
    std::ifstream file(Copy(directory) + "/table.bin", std::ios::binary);
    file.read(reinterpret_cast<char*>(table.data()), sizeof(table));
    if (!file) throw Error(KGRPO_ERROR_NOT_FOUND, "no table in " + Copy(directory));
    if (copy == KGRPO_POLICY_REFERENCE) self->has_reference = true;
  });
}

kgrpo_error* Backward(kgrpo_policy*, kgrpo_forward_context*, const float*) {
  return MakeError(KGRPO_ERROR_UNSUPPORTED, "the table's trainer needs no gradient");
}

}  // namespace

const kgrpo_policy_interface kPolicy = {
    sizeof(kgrpo_policy_interface),
    Schema,
    CreatePolicy,
    [](kgrpo_policy* self) { delete self; },
    [](const kgrpo_policy* self) -> const kgrpo_policy_info* { return &self->info; },
    EncodeChat,
    RenderChat,
    Encode,
    Decode,
    Generate,
    Forward,
    Backward,
    [](kgrpo_policy*, kgrpo_forward_context*) {},
    [](kgrpo_policy* self, size_t* count) -> const kgrpo_parameter* {
      *count = 1;
      return &self->parameter;
    },
    [](kgrpo_policy* self) -> kgrpo_error* {
      self->gradient.fill(0);
      return nullptr;
    },
    [](kgrpo_policy* self) -> kgrpo_error* {
      self->reference = self->current;
      self->has_reference = true;
      return nullptr;
    },
    SavePolicy,
    LoadPolicy};

// ---- coder
// -------------------------------------------------------------------------------------------------------------

}  // namespace kgrpo::fakes

struct kgrpo_coder {
  std::mutex mutex;
  std::vector<std::thread> threads;
};

namespace kgrpo::fakes {
namespace {

void Answer(const kgrpo_coder_request& request, kgrpo_coder_done done) {
  const std::string suggestion = Copy(request.suggestion);
  const std::string code = Copy(request.code_b);
  Delay(code + suggestion);
  if (knobs().coder_error) {
    done.done(done.context, nullptr, MakeError(KGRPO_ERROR_BUDGET, "the money is spent"));
    return;
  }
  CoderAnswer answer;
  answer.seconds = 0.001;
  answer.attempts = 1;
  const int fails_every = knobs().coder_fails_every;
  const bool known = std::find(kTechniques.begin(), kTechniques.end(), suggestion) != kTechniques.end();
  if (fails_every > 0 && Hash(code + suggestion, request.seed) % static_cast<uint64_t>(fails_every) == 0) {
    answer.outcome = KGRPO_CODER_FAILED;
    answer.message = "the line was cut";
  } else if (!known) {
    answer.outcome = KGRPO_CODER_UNCLEAR;
    answer.message = "no such technique";
  } else if (code.find("// " + suggestion) != std::string::npos) {
    answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
    answer.message = "it is there already";
  } else {
    answer.outcome = KGRPO_CODER_OK;
    answer.source = code + "// " + suggestion + "\n";
    answer.summary = suggestion + " applied";
    if (knobs().coder_counts) answer.source += "/* answer " + std::to_string(knobs().coder_calls) + " */\n";
  }
  const kgrpo_coder_answer c = answer.ToC();
  done.done(done.context, &c, nullptr);
}

kgrpo_error* Implement(kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  return Guard([&] {
    ++knobs().coder_calls;
    if (knobs().delay_seed == 0) return Answer(*request, done);  // before Implement returned: that is allowed
    const std::lock_guard lock(self->mutex);
    self->threads.emplace_back([request, done] { Answer(*request, done); });
  });
}

}  // namespace

const kgrpo_coder_interface kCoder = {sizeof(kgrpo_coder_interface),
                                      Schema,
                                      [](const kgrpo_host*, kgrpo_str, kgrpo_coder** out) -> kgrpo_error* {
                                        return Guard([&] { *out = new kgrpo_coder; });
                                      },
                                      [](kgrpo_coder* self) {
                                        if (self == nullptr) return;
                                        for (std::thread& thread : self->threads) thread.join();
                                        delete self;
                                      },
                                      Implement,
                                      [](kgrpo_coder*) {},
                                      [](const kgrpo_coder*, kgrpo_text_sink sink) -> kgrpo_error* {
                                        return Guard([&] {
                                          for (const std::string& technique : kTechniques)
                                            sink.put(sink.context, Str(technique));
                                        });
                                      }};

// ---- evaluator
// ---------------------------------------------------------------------------------------------------------

}  // namespace kgrpo::fakes

struct kgrpo_problem {
  std::string name, title, family, task, source;
  kgrpo_str traits[2];
  kgrpo_problem_info info{};
};
struct kgrpo_evaluator {};

namespace kgrpo::fakes {
namespace {

kgrpo_error* OpenProblem(kgrpo_evaluator*, kgrpo_str directory, kgrpo_problem** out) {
  return Guard([&] {
    auto problem = std::make_unique<kgrpo_problem>();
    problem->name = std::filesystem::path(Copy(directory)).filename();
    if (problem->name.find("missing") != std::string::npos)
      throw Error(KGRPO_ERROR_NOT_FOUND, "no problem in " + Copy(directory));
    problem->title = "Problem " + problem->name;
    problem->family = problem->name.substr(0, problem->name.find('_'));
    problem->task = "Compute " + problem->name + " <fast> & \"right\".";
    problem->source = "// kernel of " + problem->name + "\n";
    problem->traits[0] = Str("streaming");
    problem->traits[1] = Str(problem->family);
    kgrpo_problem_info& info = problem->info;
    info.struct_size = sizeof(info);
    info.name = Str(problem->name);
    info.title = Str(problem->title);
    info.family = Str(problem->family);
    info.split = Str("train");
    info.task = Str(problem->task);
    info.signature = Str("void launch()");
    info.source = Str(problem->source);
    info.traits = problem->traits;
    info.trait_count = 2;
    *out = problem.release();
  });
}

// Each family has one technique that helps much, one that is wrong; "overflow" doesn't compile anywhere.
Evaluation Judge(const kgrpo_problem& problem, const std::string& source) {
  Evaluation evaluation;
  evaluation.compiled = evaluation.correct = true;
  evaluation.verdict = "right";
  evaluation.modelled = true;
  evaluation.time_source = "table";
  evaluation.seconds = 1e-3;
  const size_t best = Hash(problem.family) % 5;
  for (size_t t = 0; t < kTechniques.size(); ++t) {
    if (source.find("// " + kTechniques[t]) == std::string::npos) continue;
    if (kTechniques[t] == "overflow") {
      evaluation.compiled = evaluation.correct = false;
      evaluation.verdict = "not_compiled";
    } else if (t == (best + 2) % 5 && evaluation.compiled) {
      evaluation.correct = false;
      evaluation.verdict = "wrong";
    } else {
      evaluation.seconds /= t == best ? 3.0 : 0.8 + 0.4 * Unit(Hash(problem.name + kTechniques[t]));
    }
  }
  if (!evaluation.correct) evaluation.seconds = 0;
  evaluation.seconds_low = evaluation.seconds_high = evaluation.seconds;
  evaluation.diagnosis = "bound by " + problem.family;
  evaluation.metrics = {{"registers", 32}};
  return evaluation;
}

kgrpo_error* EvaluateSource(kgrpo_evaluator*, kgrpo_problem* problem, const kgrpo_evaluate_request* request,
                            kgrpo_evaluation_sink sink) {
  return Guard([&] {
    const std::string source = Copy(request->source);
    ++(request->thorough ? knobs().thorough : knobs().evaluations);
    if (request->thorough && knobs().cancel_in_thorough) {
      knobs().cancelled = true;
      throw Error(KGRPO_ERROR_CANCELLED, "cancelled");
    }
    Delay(problem->name + source);
    Evaluation evaluation = Judge(*problem, source);
    if (request->thorough && knobs().thorough_refutes) {
      evaluation.correct = false;
      evaluation.verdict = "wrong";
      evaluation.seconds = evaluation.seconds_low = evaluation.seconds_high = 0;
    }
    const EvaluationView view = evaluation.ToC();
    sink.put(sink.context, view.c());
  });
}

}  // namespace

const kgrpo_evaluator_interface kEvaluator = {
    sizeof(kgrpo_evaluator_interface),
    Schema,
    [](const kgrpo_host*, kgrpo_str, kgrpo_evaluator** out) -> kgrpo_error* {
      return Guard([&] { *out = new kgrpo_evaluator; });
    },
    [](kgrpo_evaluator* self) { delete self; },
    OpenProblem,
    [](kgrpo_evaluator*, kgrpo_problem* problem) { delete problem; },
    [](const kgrpo_problem* problem) -> const kgrpo_problem_info* { return &problem->info; },
    [](kgrpo_evaluator*, kgrpo_problem* problem, kgrpo_evaluation_sink sink) -> kgrpo_error* {
      return Guard([&] {
        Evaluation baseline = Judge(*problem, problem->source);
        if (problem->name.find("broken") != std::string::npos) {
          baseline.correct = false;
          baseline.verdict = "wrong";
        }
        const EvaluationView view = baseline.ToC();
        sink.put(sink.context, view.c());
      });
    },
    EvaluateSource,
    [](const kgrpo_evaluator*) { return Str("a table of speedups,\nnothing is run"); }};

// ---- reward
// ------------------------------------------------------------------------------------------------------------

}  // namespace kgrpo::fakes

struct kgrpo_reward {};

namespace kgrpo::fakes {
namespace {

kgrpo_error* Score(const kgrpo_reward*, const kgrpo_reward_request* request, kgrpo_metric_sink parts, double* score) {
  return Guard([&] {
    double base = 0, speedup = 0;
    if (request->candidate == nullptr) {
      base = request->answer->outcome == KGRPO_CODER_NOT_APPLICABLE ? 0 : -0.75;
    } else if (!request->candidate->compiled) {
      base = -1;
    } else if (!request->candidate->correct) {
      base = -0.5;
    } else {
      base = 0.3;
      speedup = request->baseline->seconds / request->candidate->seconds;
    }
    parts.add(parts.context, {Str("base"), base});
    parts.add(parts.context, {Str("speedup"), speedup});
    *score = base + speedup;
  });
}

kgrpo_error* Idle(const kgrpo_reward*, const kgrpo_reward_request* request, double* score) {
  *score = request->current->correct ? 0.3 + request->baseline->seconds / request->current->seconds : 0;
  return nullptr;
}

}  // namespace

const kgrpo_reward_interface kReward = {sizeof(kgrpo_reward_interface),
                                        Schema,
                                        [](const kgrpo_host*, kgrpo_str, kgrpo_reward** out) -> kgrpo_error* {
                                          return Guard([&] { *out = new kgrpo_reward; });
                                        },
                                        [](kgrpo_reward* self) { delete self; },
                                        Score,
                                        Idle};

// ---- trainer
// -----------------------------------------------------------------------------------------------------------

}  // namespace kgrpo::fakes

struct kgrpo_trainer {
  uint32_t source = KGRPO_TRAINER_ROLLOUTS;
  const kgrpo_policy_interface* api = nullptr;
  kgrpo_policy* policy = nullptr;
  uint64_t updates = 0;
  std::array<float, kgrpo::fakes::kContexts * 6> momentum{};
};

namespace kgrpo::fakes {
namespace {

kgrpo_error* Update(kgrpo_trainer* self, const kgrpo_sample* samples, size_t count, kgrpo_update_sink sink) {
  return Guard([&] {
    ++knobs().updates;
    ++self->updates;
    if (knobs().not_finite_at > 0 && self->updates == static_cast<uint64_t>(knobs().not_finite_at.load())) {
      throw Error(KGRPO_ERROR_NOT_FINITE, "the loss is not a number");
    }
    double mean = 0;
    for (size_t i = 0; i < count; ++i) mean += samples[i].reward / static_cast<double>(count);
    size_t parameter_count = 0;
    const kgrpo_parameter* parameter = self->api->parameters(self->policy, &parameter_count);
    auto* table = static_cast<float*>(parameter->value->data);
    for (float& m : self->momentum) m *= 0.5f;
    for (size_t i = 0; i < count; ++i) {
      const kgrpo_sample& sample = samples[i];
      const bool imitate = self->source == KGRPO_TRAINER_DEMONSTRATIONS;
      if (!imitate && sample.logprobs == nullptr) throw Error(KGRPO_ERROR_INVALID, "samples need log-probabilities");
      const size_t context = ContextOf(sample.prompt_ids, sample.prompt_size);
      const auto technique = static_cast<size_t>(sample.completion_ids[0] - kFirstTechnique);
      const double advantage = imitate ? 0.01 : sample.reward - mean;
      self->momentum[context * 6 + technique] +=
          static_cast<float>(0.3 * advantage / std::sqrt(static_cast<double>(count)));
    }
    for (size_t i = 0; i < self->momentum.size(); ++i) table[i] += self->momentum[i];
    sink.step(sink.context, {Str("loss"), -mean});
    const kgrpo_metric row[2] = {{Str("loss"), -mean}, {Str("learning_rate"), 0.3}};
    if (sink.optimizer_step != nullptr) sink.optimizer_step(sink.context, row, 2);
    if (knobs().cancel_after_updates > 0 && knobs().updates == knobs().cancel_after_updates) knobs().cancelled = true;
  });
}

}  // namespace

const kgrpo_trainer_interface kTrainer = {
    sizeof(kgrpo_trainer_interface),
    Schema,
    [](const kgrpo_host*, kgrpo_str options, kgrpo_trainer** out) -> kgrpo_error* {
      return Guard([&] {
        auto trainer = std::make_unique<kgrpo_trainer>();
        trainer->source = nlohmann::json::parse(View(options)).value("source", 0u);
        *out = trainer.release();
      });
    },
    [](kgrpo_trainer* self) { delete self; },
    [](const kgrpo_trainer* self) { return self->source; },
    [](const kgrpo_trainer* self) -> int32_t { return self->source == KGRPO_TRAINER_ROLLOUTS; },
    [](kgrpo_trainer* self, const kgrpo_policy_interface* api, kgrpo_policy* policy,
       const kgrpo_trainer_plan*) -> kgrpo_error* {
      self->api = api;
      self->policy = policy;
      return nullptr;
    },
    Update,
    [](kgrpo_trainer* self, kgrpo_writer writer) -> kgrpo_error* {
      if (kgrpo_error* error = writer.write(writer.context, &self->updates, sizeof(self->updates))) return error;
      return writer.write(writer.context, self->momentum.data(), sizeof(self->momentum));
    },
    [](kgrpo_trainer* self, kgrpo_reader reader) -> kgrpo_error* {
      if (knobs().forgets_state) return nullptr;
      size_t got = 0;
      if (kgrpo_error* error = reader.read(reader.context, &self->updates, sizeof(self->updates), &got)) return error;
      return reader.read(reader.context, self->momentum.data(), sizeof(self->momentum), &got);
    }};

// ---- a pipeline
// --------------------------------------------------------------------------------------------------------

namespace {

// A host that offers little: the fakes ask for nothing.
const kgrpo_host kHost = {};

}  // namespace

PipelineConfig Config(const std::filesystem::path& output, uint64_t demonstration_steps, uint64_t steps) {
  PipelineConfig config;
  config.name = "fake";
  config.seed = 7;
  config.policy.plugin = "fake_policy";
  config.train_problems = {"map_a", "map_b", "reduce_a", "reduce_b", "matmul_a"};
  config.heldout_problems = {"map_c", "reduce_c", "matmul_c"};
  config.loop.batch_size = 8;
  config.loop.trajectories_per_problem = 2;
  config.loop.rounds = 3;
  config.loop.generation_batch = 3;
  config.loop.workers = 3;
  config.prompt.system = "You improve kernels.";
  config.prompt.user = "{{problem.family}} {{applied_joined}}";
  config.checkpoint.every = 3;
  config.evaluation.every = 4;
  config.evaluation.episodes = 2;
  if (demonstration_steps > 0) {
    StageConfig warm;
    warm.trainer.plugin = "fake_imitation";
    warm.trainer.options = {{"source", KGRPO_TRAINER_DEMONSTRATIONS}};
    warm.steps = demonstration_steps;
    warm.suggestions = SuggestionSource::kUniform;
    warm.episodes = 6;
    warm.demonstrations_per_step = 5;
    config.stages.push_back(warm);
  }
  StageConfig climb;
  climb.trainer.plugin = "fake_climber";
  climb.trainer.options = {{"source", KGRPO_TRAINER_ROLLOUTS}, {"gamma", 0.5}};
  climb.steps = steps;
  config.stages.push_back(climb);
  config.output_dir = output;
  config.resolved_yaml = "name: fake\n";
  return config;
}

PipelineParts Parts(const PipelineConfig& config) {
  PipelineParts parts;
  const nlohmann::json none = nlohmann::json::object();
  parts.policy = std::make_unique<Policy>(&kPolicy, &kHost, none);
  parts.coder = std::make_unique<Coder>(&kCoder, &kHost, none);
  parts.evaluator = std::make_unique<Evaluator>(&kEvaluator, &kHost, none);
  parts.reward = std::make_unique<Reward>(&kReward, &kHost, none);
  for (const StageConfig& stage : config.stages) {
    parts.trainers.push_back(std::make_unique<Trainer>(&kTrainer, &kHost, stage.trainer.options));
  }
  parts.identities = {{"policy", "fake_policy", "1.0", "", ""}, {"evaluator", "fake_evaluator", "1.0", "", ""}};
  parts.cancelled = [] { return knobs().cancelled.load(); };
  parts.take_metrics = [] { return std::map<std::string, double>{{"fake/metric", 2.5}}; };
  return parts;
}

std::filesystem::path Folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(KGRPO_BINARY_DIR) / "test_runs" / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder.parent_path());
  return folder;
}

RunOutcome RunIn(const PipelineConfig& config, bool resume, FaultPoints faults, Console* console) {
  PipelineParts parts = Parts(config);
  const RunFolder folder =
      resume ? RunFolder::Open(config.output_dir) : RunFolder::Create(config.output_dir, config.resolved_yaml, false);
  RunOptions options;
  options.resume = resume;
  options.faults = std::move(faults);
  options.console = console;
  RunProblems problems(config, parts);
  return Run(config, parts, problems, folder, options);
}

std::string Samples(const std::filesystem::path& output) {
  Database database(output / "run.sqlite");
  std::ostringstream text;
  Statement select(
      database,
      "SELECT purpose, step, trajectory, round, prompt, suggestion, hex(prompt_ids), hex(completion_ids), "
      "hex(logprobs), truncated, code_a, code_b, code_c, coder_outcome, unchanged, applied, speedup, reward, "
      "idle_reward, reward_parts, seed, verdict, seconds, diagnosis FROM rounds LEFT JOIN evaluations "
      "USING(purpose, step, trajectory, round) ORDER BY purpose, step, trajectory, round");
  while (select.Step()) {
    for (int column = 0; column < 24; ++column) text << select.Text(column) << '|';
    text << '\n';
  }
  Statement best(database, "SELECT step, problem, trajectory, round, source, speedup FROM best_kernels ORDER BY 1, 2");
  while (best.Step()) {
    for (int column = 0; column < 6; ++column) text << best.Text(column) << '|';
    text << '\n';
  }
  return text.str();
}

std::string FinalWeights(const std::filesystem::path& output) {
  return ReadFile(output / "final" / "table.bin");
}

}  // namespace kgrpo::fakes
