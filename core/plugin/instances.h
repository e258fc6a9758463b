// Plugin instances as C++ objects: Policy, Coder, Evaluator, Reward, Trainer, Observer, and the Problem that an
// Evaluator opens.
//
// Each is made from an interface table, wherever that came from: a loaded library (plugin/loader.h) or, in tests, a
// table within the process. Move-only; destroying the object destroys the instance. Methods throw kgrpo::Error. Threads
// are those of the interface's header. The kgrpo_host must outlive the instance, and an Evaluator its Problems.
#ifndef KGRPO_PLUGIN_INSTANCES_H
#define KGRPO_PLUGIN_INSTANCES_H

#include <kgrpo/coder.h>
#include <kgrpo/draft/evaluator_tools.h>
#include <kgrpo/observer.h>
#include <kgrpo/policy.h>
#include <kgrpo/reward.h>
#include <kgrpo/trainer.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/plugin_calls.h"
#include "plugin/in_flight.h"
#include "plugin/records.h"

namespace kgrpo {

// Base of the instances: an interface table and the plugin's object, which create made and destroy frees.
template <typename Interface, typename Object>
class Instance {
 public:
  Instance(const Interface* api, const kgrpo_host* host, const nlohmann::json& options);
  Instance(Instance&& other) noexcept
      : api_(other.api_), plugin_(other.plugin_), raw_(std::exchange(other.raw_, nullptr)) {}
  Instance& operator=(Instance&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(plugin_, other.plugin_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Instance();

  const Interface* api() const { return api_; }
  Object* raw() const { return raw_; }
  // The library's name; the role's name for a table outside of any library.
  std::string plugin_name() const { return plugin_->name; }
  const PluginName* plugin() const { return plugin_; }

 protected:
  // Hold the result while the plugin's `function` runs, so that a crash is attributed to it.
  PluginCall Calling(const char* function) const { return PluginCall(plugin_, function); }

 private:
  const Interface* api_;
  const PluginName* plugin_;
  Object* raw_ = nullptr;
};

class Policy : public Instance<kgrpo_policy_interface, kgrpo_policy> {
 public:
  Policy(const kgrpo_policy_interface* api, const kgrpo_host* host, const nlohmann::json& options);
  Policy(Policy&&) noexcept = default;
  Policy& operator=(Policy&&) = delete;
  ~Policy();  // cancels what is in flight and waits for its end

  const kgrpo_policy_info& info() const;

  std::vector<int32_t> EncodeChat(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  std::string RenderChat(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  std::vector<int32_t> Encode(std::string_view text) const;
  // A prompt that no chat template has written: what belongs in front of it, and its text.
  std::vector<int32_t> EncodePrompt(std::string_view text) const;
  // A completion that was not sampled: its text and the end token. Throws Error if the policy has none.
  std::vector<int32_t> EncodeCompletion(std::string_view text) const;
  std::string Decode(std::span<const int32_t> ids, bool skip_special = false) const;

  struct GenerateRequest {
    std::span<const int32_t> prompt;
    uint64_t seed = 0;
  };
  // Receives a request's index and its completion or its error. Must not throw.
  using Done = std::function<void(size_t request, std::optional<Completion> completion, std::exception_ptr error)>;

  // Submits requests and returns. `done` is called exactly once for each, from any thread, possibly before this
  // returns. Throws when the policy took none of them: `done` is then not called. [any thread]
  void Submit(std::span<const GenerateRequest> requests, const kgrpo_sampling& sampling, Done done);
  void Cancel();  // [any thread]

  // Submits the requests and waits for all of them. Returns completions in the order of the requests, or throws the
  // first failure.
  std::vector<Completion> Generate(std::span<const GenerateRequest> requests, const kgrpo_sampling& sampling);

  // Log-probabilities of the completions' tokens, sequence after sequence, without a gradient; see
  // kgrpo_policy_interface. `entropies`, if given, is resized to match.
  std::vector<float> LogProbabilities(std::span<const kgrpo_sequence> sequences, double temperature = 1.0,
                                      kgrpo_policy_copy copy = KGRPO_POLICY_CURRENT,
                                      std::vector<float>* entropies = nullptr);

  void FreezeReference();
  void Save(kgrpo_policy_copy copy, const std::string& directory);
  void Load(kgrpo_policy_copy copy, const std::string& directory);

  // The table for a trainer. Lives as long as this.
  const kgrpo_policy_interface* trainer_api() const;
  // How often the reference was replaced, by this or by a trainer with that table; 0: there is no reference.
  uint64_t reference_version() const;

 private:
  struct Lent;
  std::shared_ptr<InFlight<kgrpo_completion>> in_flight_;
  std::shared_ptr<Lent> lent_;
};

class Coder : public Instance<kgrpo_coder_interface, kgrpo_coder> {
 public:
  Coder(const kgrpo_coder_interface* api, const kgrpo_host* host, const nlohmann::json& options);
  Coder(Coder&&) noexcept = default;
  Coder& operator=(Coder&&) = delete;
  ~Coder();  // cancels what is in flight and waits for its answers

  // Receives an answer, or the error for which the run cannot go on (then `answer` is empty). Must not throw.
  using Done = std::function<void(std::optional<CoderAnswer> answer, std::exception_ptr error)>;

  // Starts one request and returns. `request` and what it points to must live until `done` was called, which happens
  // exactly once, from any thread, possibly before this returns. Throws when the plugin took nothing: `done` is then
  // not called.
  void Implement(const kgrpo_coder_request& request, Done done);
  void Cancel();

  // A description of its settings on one line, for a person; empty for a coder without one.
  std::string Describe() const;

  // The text that would be sent for a request, for a person; empty for a coder without one.
  std::string DescribeRequest(const kgrpo_coder_request& request) const;

  bool has_suggestions() const { return api()->suggestions != nullptr; }
  std::vector<std::string> Suggestions() const;  // empty for a coder that takes any text

  // Spending by the coder's own account; nothing for a coder that keeps none.
  std::optional<CoderSpending> Spending() const;

 private:
  std::shared_ptr<InFlight<kgrpo_coder_answer>> in_flight_;
};

// An open problem.
class Problem {
 public:
  Problem(const kgrpo_evaluator_interface* api, kgrpo_evaluator* evaluator, const PluginName* plugin,
          const std::string& directory);
  Problem(Problem&& other) noexcept
      : api_(other.api_),
        evaluator_(other.evaluator_),
        plugin_(other.plugin_),
        raw_(std::exchange(other.raw_, nullptr)),
        info_(other.info_),
        directory_(std::move(other.directory_)) {}
  Problem& operator=(Problem&&) = delete;
  ~Problem();

  const kgrpo_problem_info& info() const { return *info_; }
  std::string name() const;
  const std::string& directory() const { return directory_; }
  kgrpo_problem* raw() const { return raw_; }

 private:
  const kgrpo_evaluator_interface* api_;
  kgrpo_evaluator* evaluator_;
  const PluginName* plugin_;
  kgrpo_problem* raw_ = nullptr;
  const kgrpo_problem_info* info_ = nullptr;
  std::string directory_;
};

// kgrpo_problem_finding as C++.
struct ProblemFinding {
  std::string code, sentence, advice;
};

class Evaluator : public Instance<kgrpo_evaluator_interface, kgrpo_evaluator> {
 public:
  using Instance::Instance;

  Problem OpenProblem(const std::string& directory) { return Problem(api(), raw(), plugin(), directory); }
  // `show_hidden`: the diagnosis may name hidden sizes. It is for a person: no prompt may quote it.
  Evaluation Evaluate(const Problem& problem, std::string_view source, uint64_t seed, bool thorough = false,
                      bool show_hidden = false);
  // The evaluation of the problem's reference kernel, whose speedup is 1. Throws KGRPO_ERROR_INVALID if it is not
  // correct.
  Evaluation Baseline(const Problem& problem, uint64_t seed = 0, bool thorough = false, bool show_hidden = false);
  std::string Describe() const;

  // The instance's tools, each of which may be null.
  const kgrpo_evaluator_tools& Tools() const;

  // A web page on one kernel; nothing for an evaluator that writes none.
  std::optional<std::string> Report(const Problem& problem, std::string_view source, std::string_view source_name,
                                    const Evaluation& candidate, const Evaluation& baseline) const;

  // The work that the problem states every kernel needs, beside the work counted for the candidate.
  struct BoundComparison {
    std::string text;  // lines for a terminal
    std::string json;  // an object
  };
  // Returns nothing for a kernel whose work was not counted, or if the evaluator does not count.
  std::optional<BoundComparison> ExplainBound(const Problem& problem, const Evaluation& candidate) const;

  // Findings that make a problem degenerate; nothing for an evaluator without such checks. [any thread]
  std::optional<std::vector<ProblemFinding>> CheckProblem(const Problem& problem);

 private:
  Evaluation Evaluate(const Problem& problem, const kgrpo_evaluate_request& request, const char* what);
};

class Reward : public Instance<kgrpo_reward_interface, kgrpo_reward> {
 public:
  using Instance::Instance;

  struct Scored {
    double score = 0;  // finite
    std::vector<Metric> parts;
  };
  // Throws KGRPO_ERROR_INTERNAL for a score that is not finite, as Idle does.
  Scored Score(const kgrpo_reward_request& request) const;
  // 0 when the reward has no such notion.
  double Idle(const kgrpo_reward_request& request) const;
};

class Trainer : public Instance<kgrpo_trainer_interface, kgrpo_trainer> {
 public:
  using Instance::Instance;

  kgrpo_trainer_source source() const;
  bool needs_reference() const;
  // Throws KGRPO_ERROR_INVALID if the trainer can learn nothing by that plan. Does nothing for a trainer that checks
  // none.
  void CheckPlan(const kgrpo_trainer_plan& plan) const;
  // `policy` must outlive the trainer and stay where it is.
  void Begin(Policy& policy, const kgrpo_trainer_plan& plan);

  // A sample's return and advantage: kgrpo_sample_outcome.
  struct SampleOutcome {
    double returned = 0;
    double advantage = 0;
  };
  struct Update {
    std::vector<Metric> metrics;                        // metrics of the whole update, as pushed
    std::vector<std::vector<Metric>> optimizer_steps;   // a row an optimiser step, in order
    std::vector<std::optional<SampleOutcome>> samples;  // one for each sample; nothing where the trainer pushed none
  };
  Update Train(std::span<const kgrpo_sample> samples);

  // With `keep_going` a failed stream does not end the saving; the caller checks the stream afterwards.
  void SaveState(std::ostream& out, bool keep_going = false);
  void LoadState(std::istream& in);
};

class Observer : public Instance<kgrpo_observer_interface, kgrpo_observer> {
 public:
  using Instance::Instance;

  void Begin(const kgrpo_run_info& run);
  void Round(const kgrpo_round_event& event);
  void Step(const kgrpo_step_event& event);
  void Checkpoint(const kgrpo_checkpoint_event& event);
  void End(std::string_view outcome);
};

}  // namespace kgrpo
#endif
