#include "config/load.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/default_plugins.h"
#include "config/changes.h"
#include "config/diagnostic.h"
#include "config/emit.h"
#include "config/experiment.h"
#include "config/merge.h"
#include "config/node.h"
#include "config/pipeline_keys.h"
#include "config/problems.h"
#include "prompt/template.h"

namespace kgrpo {
namespace {

constexpr const char* kUnknownKey = "unknown key";  // schema.cc's words

const Position kDefault{"default", 0, 0, 0};

// The pipeline's schema with the keys that are read and left out before, so that messages about unknown keys name them.
const Schema& SchemaWithReadKeys() {
  static const Schema schema = [] {
    Schema with = PipelineSchema();
    with["properties"]["extends"] = Schema::object();
    for (const char* key : kExperimentKeys) with["properties"][key] = Schema::object();
    return with;
  }();
  return schema;
}

// The key of a role's part.
const char* KeyOf(Role role) { return role == Role::kObserver ? "observers" : RoleName(role); }

class Loader {
 public:
  Loader(const LoadRequest& request, const SchemaLookup& lookup) : request_(request), lookup_(lookup) {}

  PipelineConfig Load() {
    std::vector<std::string> files;
    root_ = ReadWithBases(request_.file, &files, &diagnostics_);
    if (files.empty()) Finish();  // nothing was read: complaints about missing keys would only hide why
    FillObservers();
    const std::vector<std::string> set = ApplySettings(request_.settings, &root_, &diagnostics_);
    LeaveOutExperiment();
    for (const Diagnostic& diagnostic : diagnostics_) unreadable_.insert(diagnostic.path);
    unreadable_count_ = diagnostics_.size();
    const bool readable = std::none_of(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic& d) {
      return (d.path.empty() && d.at.line > 0) ||
             d.path == "extends";  // syntax: keys that seem missing may stand behind the mistake
    });
    if (!readable) Finish();
    CheckAgainstSchema(root_, SchemaWithReadKeys(), "", &diagnostics_);
    CheckPresent();
    FillDefaults(PipelineSchema(), &root_, "", &removed_);
    FillNames();
    for (Role role : request_.roles)
      ForEachChoice(role, [&](Node* choice, const std::string& path) { CheckChoice(role, choice, path); });
    CheckLoop();
    CheckStages();
    CheckMaxSteps();
    may_change_.push_back(StepsKey(root_));
    if (request_.resumes) CheckChanges(set);
    for (const char* key : {"system", "user"}) CheckPrompt(key);
    if (!request_.ignore_problems) {
      CheckEvaluation();
      ExpandProblemLists(&root_, request_.needs_train_problems, request_.needs_heldout_problems, &diagnostics_);
    }
    Finish();
    PipelineConfig config = ReadPipeline(root_);
    config.option_places = OptionPlaces();
    config.may_change = std::move(may_change_);
    config.removed = std::move(removed_);
    config.inputs = std::move(inputs_);
    AddOwnInputs(&config);
    config.origins_yaml =
        EmitYamlWithOrigins(root_, [this](const std::string& path, const Position& at) { return OriginOf(path, at); });
    return config;
  }

 private:
  void Report(const Position& at, const std::string& path, std::string message, std::string suggestion = "") {
    diagnostics_.push_back({at, path, std::move(message), std::move(suggestion)});
  }

  void Finish() {
    if (diagnostics_.empty()) return;
    // Values that could not be read are reported already: the schema's errors about the rest of them add nothing.
    const auto found_later = diagnostics_.begin() + static_cast<std::ptrdiff_t>(unreadable_count_);
    diagnostics_.erase(
        std::remove_if(found_later, diagnostics_.end(),
                       [&](const Diagnostic& d) { return !d.path.empty() && unreadable_.contains(d.path); }),
        diagnostics_.end());
    SortDiagnostics(&diagnostics_);
    throw ConfigError(std::move(diagnostics_));
  }

  std::map<std::string, std::string> OptionPlaces() {
    std::map<std::string, std::string> places;
    const auto add = [&](const Node* choice, const std::string& path, const std::string& part) {
      const Node* options = choice->Get("options");
      if (options == nullptr) return;
      for (const Node::Member& option : options->members) {
        const Position& at = option.value.text.line > 0 ? option.value.text : option.value.at;
        if (at.line > 0 || at.file == "--set")
          places[part + ".options." + option.key] = OriginOf(path + ".options." + option.key, at);
      }
    };
    for (Role role : kRoles) {
      ForEachChoice(role, [&](Node* choice, const std::string& path) {
        add(choice, path, role == Role::kTrainer && !path.ends_with(']') ? path + "[0]" : path);
      });
    }
    return places;
  }

  // "configs/quickstart.yaml:12:9", "--set", "variant short", "default".
  std::string OriginOf(const std::string& path, const Position& at) const {
    if (at.file != "--set") return at.line > 0 ? at.ToString() : "default";
    const size_t first = request_.settings.size() - std::min(request_.run_settings, request_.settings.size());
    for (size_t i = request_.settings.size(); i-- > first;) {
      const std::string key = request_.settings[i].substr(0, request_.settings[i].find('='));
      const bool within =
          path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.' || path[key.size()] == '[');
      if (within) return request_.run_name;
    }
    return "--set";
  }

  void LeaveOutExperiment() {
    for (const char* key : kExperimentKeys) {
      const Node::Member* member = root_.Find(key);
      if (member == nullptr) continue;
      if (!request_.of_experiment)
        Report(member->at, key,
               "this file describes several runs, and this command takes one: give the resolved.yaml in the folder of "
               "one of them");
      root_.Erase(key);
    }
  }

  // The default list is inserted before the settings are applied, so that they can change its items.
  void FillObservers() {
    if (!root_.IsMapping() || root_.Find("observers") != nullptr) return;
    const Schema& observers = PipelineSchema()["properties"]["observers"];
    root_.members.push_back({"observers", kDefault, Node::FromJson(observers["default"], kDefault)});
  }

  void CheckPresent() {
    for (Role role : request_.roles) {
      if (root_.Find(KeyOf(role)) == nullptr)
        Report(root_.at, "", std::string("the key \"") + KeyOf(role) + "\" is missing");
    }
  }

  void FillNames() {
    if (root_.Find("name") == nullptr) {
      root_.members.push_back(
          {"name", kDefault, Node::Scalar(std::filesystem::path(request_.file).stem().string(), kDefault)});
    }
    if (root_.Find("output_dir") == nullptr && root_.Get("name")->IsString()) {
      const std::string directory = "runs/" + root_.Get("name")->scalar.get<std::string>();
      root_.members.push_back({"output_dir", kDefault, Node::Scalar(directory, kDefault)});
    }
    FillDefaults(PipelineSchema(), &root_);  // puts them in their place
  }

  // The mappings {plugin, options} of a role: one, or each of a list of trainers or observers.
  template <typename Body>
  void ForEachChoice(Role role, Body body) {
    const std::string key = KeyOf(role);
    Node* node = root_.Get(key);
    if (node == nullptr) return;
    if (node->IsMapping()) return body(node, key);
    if (role != Role::kTrainer && role != Role::kObserver) return;
    for (size_t i = 0; i < node->items.size(); ++i) {
      if (node->items[i].IsMapping()) body(&node->items[i], key + "[" + std::to_string(i) + "]");
    }
  }

  void CheckChoice(Role role, Node* choice, const std::string& path) {
    const Node* plugin = choice->Get("plugin");
    Node::Member* options = choice->Find("options");
    if (plugin == nullptr || !plugin->IsString() || plugin->scalar.get_ref<const std::string&>().empty()) return;
    Schema schema;
    try {
      schema = lookup_(role, plugin->scalar.get<std::string>());
    } catch (const Error& error) {
      return Report(plugin->at, path + ".plugin", error.what());
    }
    SuggestOptions(schema, path + ".options");
    AddMayChange(schema, path + ".options");
    if (options == nullptr || !options->value.IsMapping()) return;
    // Options that nobody wrote are reported at the plugin's name.
    if (options->value.at.line == 0 && options->value.at.file == "default") options->value.at = plugin->at;
    try {
      RequireUsableSchema(schema);
      CheckAgainstSchema(options->value, schema, path + ".options", &diagnostics_);
      FillDefaults(schema, &options->value, path + ".options", &removed_);
      AddInputs(schema, options->value, path + ".options");
    } catch (const Error& error) {
      Report(plugin->at, path + ".plugin",
             "the options schema that the plugin publishes is broken: " + std::string(error.what()));
    }
  }

  // Notes the options that the plugin marks as ones that may change.
  void AddMayChange(const Schema& schema, const std::string& options_path) {
    if (!schema.is_object() || !schema.contains("properties")) return;
    for (const auto& [key, property] : schema["properties"].items()) {
      const std::string path = JoinPath(options_path, key);
      if (property.is_object() && property.value(kMayChangeKeyword, Schema()) == true &&
          !MayChangeOnResume(path, may_change_))
        may_change_.push_back(path);
    }
  }

  // Notes the options that the plugin marks as naming what the run reads.
  void AddInputs(const Schema& schema, const Node& options, const std::string& path) {
    if (!schema.is_object() || !schema.contains("properties") || !options.IsMapping()) return;
    for (const auto& [key, property] : schema["properties"].items()) {
      const Node* value = options.Get(key);
      if (value == nullptr || !property.is_object()) continue;
      if (const Schema reads = property.value(kReadsKeyword, Schema()); !reads.is_null())
        inputs_.push_back({JoinPath(path, key), value->ToJson(), reads == "content"});
      AddInputs(property, *value, JoinPath(path, key));
    }
  }

  // Adds the inputs that the host's own keys name.
  static void AddOwnInputs(PipelineConfig* config) {
    for (const auto* folders : {&config->train_problems, &config->heldout_problems}) {
      for (const std::string& folder : *folders)
        config->inputs.push_back({"problems." + std::filesystem::path(folder).filename().string(), folder});
    }
    const auto add = [config](const std::string& key, const std::vector<std::string>& runs) {
      for (size_t i = 0; i < runs.size(); ++i) {
        if (runs[i] != kOwnRun) config->inputs.push_back({key + "[" + std::to_string(i) + "]", runs[i]});
      }
    };
    for (size_t i = 0; i < config->stages.size(); ++i)
      add("trainer[" + std::to_string(i) + "].demonstrations.from", config->stages[i].demonstrations.from);
    add("loop.replay.from", config->loop.replay.from);
  }

  void CheckChanges(const std::vector<std::string>& set) {
    for (const std::string& path : set) {
      const auto is_reported = [&](const Diagnostic& diagnostic) { return diagnostic.path == path; };
      if (std::ranges::any_of(diagnostics_, is_reported)) continue;
      const std::optional<uint64_t> over = EndOfFinishedStage(root_, path, request_.steps_done);
      if (path == StepsKey(root_)) continue;  // RequireStepsLeft compares it with the recorded steps
      std::string why = MayChangeOnResume(path, may_change_) ? "" : ReasonToKeep(path, may_change_);
      if (why.empty() && over)
        why = "a resumed run keeps it: this stage ended with step " + std::to_string(*over) +
              ", and the run continues after step " + std::to_string(request_.steps_done);
      if (!why.empty()) Report({"--set", 0, 0, 0}, path, why);
    }
  }

  // Suggests this plugin's option for an unknown key of the same name elsewhere.
  void SuggestOptions(const Schema& schema, const std::string& options_path) {
    if (!schema.is_object() || !schema.contains("properties")) return;
    for (Diagnostic& diagnostic : diagnostics_) {
      const std::string key = diagnostic.path.substr(diagnostic.path.rfind('.') + 1);
      const bool unplaced = unplaced_keys_.contains(diagnostic.path);
      if (!diagnostic.message.starts_with(kUnknownKey) || (!diagnostic.suggestion.empty() && !unplaced) ||
          diagnostic.path.starts_with(options_path) || !schema["properties"].contains(key)) {
        continue;
      }
      unplaced_keys_.insert(diagnostic.path);
      diagnostic.message = kUnknownKey;
      diagnostic.suggestion += (diagnostic.suggestion.empty() ? "" : "\" or \"") + options_path + "." + key;
    }
  }

  // An integer of the host's own keys; nothing when it is absent or was refused already.
  std::optional<uint64_t> Integer(const Node* node) {
    if (node == nullptr || !node->IsScalar() || !node->scalar.is_number_unsigned()) return {};
    return node->scalar.get<uint64_t>();
  }

  void CheckLoop() {
    const Node* loop = root_.Get("loop");
    if (loop == nullptr) return;
    const Node* size = loop->Get("batch_size");
    const Node* sharing = loop->Get("trajectories_per_problem");
    const std::optional<uint64_t> batch = Integer(size), share = Integer(sharing);
    if (!batch || !share || *share == 0 || *batch % *share == 0) return;
    if (&SetLast(sharing->at, size->at) == &sharing->at) {
      Report(sharing->at, "loop.trajectories_per_problem",
             "must divide loop.batch_size, which is " + std::to_string(*batch) + ", found " + std::to_string(*share));
    } else {
      Report(size->at, "loop.batch_size",
             "must be a multiple of loop.trajectories_per_problem, which is " + std::to_string(*share) + ", found " +
                 std::to_string(*batch));
    }
  }

  // A run that would measure no held-out problem all the same.
  void CheckEvaluation() {
    const Node* evaluation = root_.Get("evaluation");
    const Node* every = evaluation == nullptr ? nullptr : evaluation->Get("every");
    const Node* problems = root_.Get("problems");
    const Node* heldout = problems == nullptr ? nullptr : problems->Get("heldout");
    const bool trains = request_.needs_train_problems && request_.roles.contains(Role::kTrainer);
    if (!trains || !Integer(every)) return;
    for (const std::string key : {"at_start", "greedy", "patience"}) {
      const Node* asked = evaluation->Get(key);
      if (Integer(every) != 0 || asked == nullptr || !asked->IsScalar()) continue;
      if (asked->scalar != true && Integer(asked).value_or(0) == 0) continue;
      Report(asked->at, "evaluation." + key,
             "it has no effect: evaluation.every is 0, so held-out problems are not evaluated; set evaluation.every, "
             "or leave this out");
    }
    if (Integer(every) == 0 || heldout == nullptr || !heldout->IsList() || !heldout->items.empty()) return;
    Report(every->at, "evaluation.every",
           std::string("held-out problems are to be measured, and problems.heldout names none: ") +
               (request_.resumes ? "leave this at 0" : "name some, or set this to 0"));
  }

  // A stage's own `steps` overrule loop.max_steps, which a file may hold for those that extend it; on the command line
  // it is meant for this run.
  void CheckMaxSteps() {
    const Node* loop = root_.Get("loop");
    const Node* max_steps = loop == nullptr ? nullptr : loop->Get("max_steps");
    if (max_steps == nullptr || max_steps->at.file != "--set") return;
    const char* const set = request_.of_experiment ? " " : " --set ";  // a variant or a sweep sets it in the file
    size_t stages = 0, own = 0;
    std::string instead;
    ForEachChoice(Role::kTrainer, [&](Node* stage, const std::string& path) {
      ++stages;
      if (stage->Get("steps") == nullptr) return;
      ++own;
      if (request_.resumes)
        instead = " --set " + path + ".steps=N";  // only the last stage's may change
      else
        instead += set + path + ".steps=" + max_steps->ToJson().dump();
    });
    if (stages > 0 && own == stages) {
      Report(max_steps->at, "loop.max_steps",
             std::string("it has no effect: ") + (stages == 1 ? "the trainer has" : "each stage has") +
                 " its own `steps`; for fewer or more write" + instead);
    }
  }

  void CheckStages() {
    ForEachChoice(Role::kTrainer, [&](Node* stage, const std::string& path) {
      const Node* suggestions = stage->Get("suggestions");
      const Node* episodes = stage->Get("episodes");
      const std::optional<uint64_t> count = Integer(episodes);
      if (suggestions == nullptr || !suggestions->IsString() || !count) return;
      const bool uniform = suggestions->scalar == "uniform";
      if (uniform && *count == 0) {
        Report(SetLast(suggestions->at, episodes->at), path + ".suggestions",
               "\"uniform\" collects `episodes` trajectories when the stage starts: set " + path +
                   ".episodes to at least 1");
      }
      const Node* demonstrations = stage->Get("demonstrations");
      const Node* from = demonstrations == nullptr ? nullptr : demonstrations->Get("from");
      if (uniform && from != nullptr && from->IsList() && !from->items.empty())
        Report(from->at, path + ".demonstrations.from", "replaces `suggestions: uniform`: leave one of them out");
      if (!uniform && *count > 0) Report(episodes->at, path + ".episodes", "is for `suggestions: uniform` alone");
    });
  }

  void CheckPrompt(const char* key) {
    const Node* prompt = root_.Get("prompt");
    const Node* text = prompt == nullptr ? nullptr : prompt->Get(key);
    if (text == nullptr || !text->IsString()) return;
    const auto content = text->scalar.get<std::string>();
    for (const TemplateMistake& mistake : CheckTemplate(content)) {
      const bool in_file = text->text.line > 0;
      Report(in_file ? PlaceWithin(content, text->text, mistake.line, mistake.column) : text->at,
             std::string("prompt.") + key,
             (in_file ? ""
                      : "line " + std::to_string(mistake.line) + ", column " + std::to_string(mistake.column) +
                            " of the template: ") +
                 mistake.message);
    }
  }

  const LoadRequest& request_;
  const SchemaLookup& lookup_;
  Node root_;
  std::vector<Diagnostic> diagnostics_;
  std::set<std::string> unreadable_;  // paths of what reading refused: the first unreadable_count_ diagnostics
  size_t unreadable_count_ = 0;
  std::vector<Input> inputs_;
  std::vector<RemovedKey> removed_;
  std::vector<std::string> may_change_ = KeysThatMayChange();
  std::set<std::string> unplaced_keys_;  // paths of unknown keys that SuggestOptions found a place for
};

}  // namespace

PipelineConfig LoadPipeline(const LoadRequest& request, const SchemaLookup& lookup) {
  if (request.file.empty()) {
    PipelineConfig config;
    config.evaluator.plugin = request.evaluator.empty() ? KGRPO_DEFAULT_EVALUATOR : request.evaluator;
    config.evaluator.options = CheckOptions(OptionsFromSettings(request.settings),
                                            lookup(Role::kEvaluator, config.evaluator.plugin), "", "--set");
    return config;
  }
  LoadRequest with_evaluator = request;
  if (!request.evaluator.empty()) with_evaluator.settings.push_back("evaluator.plugin=" + request.evaluator);
  return Loader(with_evaluator, lookup).Load();
}

nlohmann::json CheckOptions(const nlohmann::ordered_json& options, const Schema& schema, const std::string& path,
                            const std::string& source) {
  RequireUsableSchema(schema);
  Node node = Node::FromJson(options, {source, 0, 0, 0});
  std::vector<Diagnostic> diagnostics;
  CheckAgainstSchema(node, schema, path, &diagnostics);
  if (!diagnostics.empty()) throw ConfigError(std::move(diagnostics));
  FillDefaults(schema, &node);
  return nlohmann::json(node.ToJson());
}

nlohmann::ordered_json OptionsFromSettings(const std::vector<std::string>& settings) {
  Node root = Node::Mapping({"--set", 0, 0, 0});
  std::vector<Diagnostic> diagnostics;
  ApplySettings(settings, &root, &diagnostics);
  if (!diagnostics.empty()) throw ConfigError(std::move(diagnostics));
  return root.ToJson();
}

}  // namespace kgrpo
