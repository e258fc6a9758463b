#include "config/load.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "config/emit.h"
#include "config/merge.h"
#include "config/node.h"
#include "config/pipeline_schema.h"
#include "config/problems.h"
#include "config/verbatim.h"
#include "prompt/template.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

// Of two keys that do not go together, the place to blame: what was said last. --set overrules the file, the file what
// it extends, and that the defaults.
const Position& SaidLast(const Position& a, const Position& b) {
  const auto age = [](const Position& at) { return at.file == "--set" ? -1 : at.line == 0 ? INT_MAX : at.rank; };
  return age(b) < age(a) ? b : a;
}

class Loader {
 public:
  Loader(const LoadRequest& request, const SchemaLookup& lookup) : request_(request), lookup_(lookup) {}

  PipelineConfig Load() {
    std::vector<std::string> files;
    root_ = ReadWithBases(request_.file, &files, &diagnostics_);
    if (files.empty()) Finish();  // nothing was read: complaints about missing keys would only hide why
    ApplySettings(request_.settings, &root_, &diagnostics_);
    for (const Diagnostic& diagnostic : diagnostics_) unreadable_.insert(diagnostic.path);
    unreadable_count_ = diagnostics_.size();
    const bool readable = std::none_of(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic& d) {
      return (d.path.empty() && d.at.line > 0) ||
             d.path == "extends";  // syntax: what is missing below may stand behind the mistake
    });
    if (!readable) Finish();
    CheckAgainstSchema(root_, PipelineSchema(), "", &diagnostics_);
    CheckPresent();
    FillDefaults(PipelineSchema(), &root_);
    FillNames();
    for (Role role : kRoles)
      ForEachChoice(role, [&](Node* choice, const std::string& path) { CheckChoice(role, choice, path); });
    CheckLoop();
    CheckStages();
    CheckPrompt("system");
    CheckPrompt("user");
    if (!request_.ignore_problems) ExpandProblems();
    Finish();
    return Read();
  }

 private:
  // ---- checks -----------------------------------------------------------------------------------

  void Report(const Position& at, const std::string& path, std::string message, std::string suggestion = "") {
    diagnostics_.push_back({at, path, std::move(message), std::move(suggestion)});
  }

  void Finish() {
    if (diagnostics_.empty()) return;
    // What could not be read was reported: that the schema does not like what is left of it is no news.
    const auto found_later = diagnostics_.begin() + static_cast<std::ptrdiff_t>(unreadable_count_);
    diagnostics_.erase(
        std::remove_if(found_later, diagnostics_.end(),
                       [&](const Diagnostic& d) { return !d.path.empty() && unreadable_.contains(d.path); }),
        diagnostics_.end());
    SortDiagnostics(&diagnostics_);
    throw ConfigError(std::move(diagnostics_));
  }

  void CheckPresent() {
    for (Role role : request_.roles) {
      if (root_.Find(RoleName(role)) == nullptr) {
        Report(root_.at, "", std::string("the key \"") + RoleName(role) + "\" is missing");
      }
    }
  }

  void FillNames() {
    const Position at{"default", 0, 0, 0};
    if (root_.Find("name") == nullptr) {
      root_.members.push_back({"name", at, Node::Scalar(std::filesystem::path(request_.file).stem().string(), at)});
    }
    if (root_.Find("output_dir") == nullptr && root_.Get("name")->IsString()) {
      const std::string directory = "runs/" + root_.Get("name")->scalar.get<std::string>();
      root_.members.push_back({"output_dir", at, Node::Scalar(directory, at)});
    }
    FillDefaults(PipelineSchema(), &root_);  // puts them in their place
  }

  // The mappings {plugin, options} of a role: one, or each stage of a list of trainers.
  template <typename Body>
  void ForEachChoice(Role role, Body body) {
    Node* node = root_.Get(RoleName(role));
    if (node == nullptr) return;
    if (node->IsMapping()) return body(node, RoleName(role));
    if (role != Role::kTrainer) return;
    for (size_t i = 0; i < node->items.size(); ++i) {
      if (node->items[i].IsMapping()) body(&node->items[i], "trainer[" + std::to_string(i) + "]");
    }
  }

  void CheckChoice(Role role, Node* choice, const std::string& path) {
    if (!request_.roles.contains(role)) return;
    const Node* plugin = choice->Get("plugin");
    Node::Member* options = choice->Find("options");
    if (plugin == nullptr || !plugin->IsString() || plugin->scalar.get_ref<const std::string&>().empty()) return;
    Schema schema;
    try {
      schema = lookup_(role, plugin->scalar.get<std::string>());
    } catch (const Error& error) {
      return Report(plugin->at, path + ".plugin", error.what());
    }
    if (options == nullptr || !options->value.IsMapping()) return;
    // Options that nobody wrote are judged at the plugin's name.
    if (options->value.at.line == 0 && options->value.at.file == "default") options->value.at = plugin->at;
    try {
      RequireUsableSchema(schema);
      CheckAgainstSchema(options->value, schema, path + ".options", &diagnostics_);
      FillDefaults(schema, &options->value);
    } catch (const Error& error) {
      Report(plugin->at, path + ".plugin",
             "the options schema that the plugin publishes is broken: " + std::string(error.what()));
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
    if (&SaidLast(sharing->at, size->at) == &sharing->at) {
      Report(sharing->at, "loop.trajectories_per_problem",
             "must divide loop.batch_size, which is " + std::to_string(*batch) + ", found " + std::to_string(*share));
    } else {
      Report(size->at, "loop.batch_size",
             "must be a multiple of loop.trajectories_per_problem, which is " + std::to_string(*share) + ", found " +
                 std::to_string(*batch));
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
        Report(SaidLast(suggestions->at, episodes->at), path + ".suggestions",
               "\"uniform\" collects `episodes` trajectories when the stage starts: set " + path +
                   ".episodes to at least 1");
      }
      if (!uniform && *count > 0) Report(episodes->at, path + ".episodes", "is for `suggestions: uniform` alone");
    });
  }

  void CheckPrompt(const char* key) {
    const Node* prompt = root_.Get("prompt");
    const Node* text = prompt == nullptr ? nullptr : prompt->Get(key);
    if (text == nullptr || !text->IsString()) return;
    const auto content = text->scalar.get<std::string>();
    for (const TemplateMistake& mistake : CheckTemplate(content)) {
      if (text->text.line > 0) {
        Report(PlaceWithin(content, text->text, mistake.line, mistake.column), std::string("prompt.") + key,
               mistake.message);
        continue;
      }
      Report(text->at, std::string("prompt.") + key,
             "line " + std::to_string(mistake.line) + ", column " + std::to_string(mistake.column) +
                 " of the template: " + mistake.message);
    }
  }

  // ---- problems ---------------------------------------------------------------------------------

  // The folders of one list; entries without a pattern are also put in *literal.
  std::vector<std::string> Expand(const char* key, std::set<std::string>* literal) {
    std::vector<std::string> folders;
    const Node* problems = root_.Get("problems");
    const Node* list = problems == nullptr ? nullptr : problems->Get(key);
    if (list == nullptr || !list->IsList()) return folders;
    for (size_t i = 0; i < list->items.size(); ++i) {
      const Node& item = list->items[i];
      if (!item.IsString()) continue;
      const std::string pattern = item.scalar.get<std::string>();
      const std::string path = std::string("problems.") + key + "[" + std::to_string(i) + "]";
      try {
        const std::vector<std::string> found = ExpandFolders(pattern);
        if (found.empty() && !pattern.empty()) {
          Report(item.at, path,
                 (IsPattern(pattern) ? "no folder matches " : "there is no folder ") + Describe(item) +
                     " (looked from " + std::filesystem::current_path().string() + ")");
        }
        folders.insert(folders.end(), found.begin(), found.end());
        if (!IsPattern(pattern)) literal->insert(found.begin(), found.end());
      } catch (const Error& error) {
        Report(item.at, path, error.what());
      }
    }
    std::sort(folders.begin(), folders.end());
    folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
    return folders;
  }

  void ExpandProblems() {
    Node* problems = root_.Get("problems");
    if (problems == nullptr || !problems->IsMapping()) return;
    std::set<std::string> named_train, named_heldout;
    std::vector<std::string> train = Expand("train", &named_train);
    std::vector<std::string> heldout = Expand("heldout", &named_heldout);
    // A folder named outright in one list is not meant by the other's patterns.
    std::erase_if(train, [&](const std::string& f) { return named_heldout.contains(f) && !named_train.contains(f); });
    std::erase_if(heldout, [&](const std::string& f) { return named_train.contains(f) && !named_heldout.contains(f); });
    std::vector<std::string> both;
    std::set_intersection(train.begin(), train.end(), heldout.begin(), heldout.end(), std::back_inserter(both));
    for (const std::string& folder : both) {
      const Position& heldout_at = problems->Get("heldout")->at;
      const Position& at = SaidLast(heldout_at, problems->Get("train")->at);
      const auto [mine, other] = &at == &heldout_at ? std::pair("problems.heldout", "problems.train")
                                                    : std::pair("problems.train", "problems.heldout");
      Report(at, mine, folder + " is in " + other + " too: name it outright in one of the lists");
    }
    CheckNotEmpty(*problems, "train", train, request_.needs_train_problems);
    CheckNotEmpty(*problems, "heldout", heldout, request_.needs_heldout_problems);
    CheckDistinctNames(*problems, train, heldout);
    for (auto [key, folders] : {std::pair("train", &train), std::pair("heldout", &heldout)}) {
      Node* list = problems->Get(key);
      if (list != nullptr && list->IsList()) *list = Node::FromJson(Json(*folders), list->at);
    }
  }

  void CheckNotEmpty(const Node& problems, const char* key, const std::vector<std::string>& folders, bool needed) {
    const Node* list = problems.Get(key);
    if (!needed || !folders.empty() || list == nullptr || !list->IsList()) return;
    if (!list->items.empty()) {  // each of its entries was reported, unless all were taken by the other list
      const bool reported = std::any_of(diagnostics_.begin(), diagnostics_.end(), [&](const Diagnostic& d) {
        return d.path.starts_with(std::string("problems.") + key + "[");
      });
      if (reported) return;
    }
    const Position& at = list->at.line != 0 || list->at.file == "--set" ? list->at
                         : problems.at.line != 0                        ? problems.at
                                                                        : root_.at;
    Report(at, std::string("problems.") + key, "no problem is left to use: list folders such as problems/*");
  }

  // Problems are known by their folder's name from here on.
  void CheckDistinctNames(const Node& problems, const std::vector<std::string>& train,
                          const std::vector<std::string>& heldout) {
    std::map<std::string, std::string> folder_of;
    for (const auto& [key, folders] : {std::pair("train", &train), std::pair("heldout", &heldout)}) {
      for (const std::string& folder : *folders) {
        const std::string name = std::filesystem::path(folder).filename().string();
        const auto [place, fresh] = folder_of.emplace(name, folder);
        if (fresh || place->second == folder) continue;
        Report(problems.Get(key)->at, std::string("problems.") + key,
               folder + " has the same name as " + place->second + ": names of problems must differ");
      }
    }
  }

  // ---- reading what was found right -------------------------------------------------------------

  static PluginChoice ReadChoice(const Json& json) {
    return {json.at("plugin").get<std::string>(), nlohmann::json(json.at("options"))};
  }

  PipelineConfig Read() {
    const Json json = root_.ToJson();
    PipelineConfig config;
    config.name = json.at("name");
    config.seed = json.at("seed");
    for (auto [role, choice] :
         {std::pair(Role::kPolicy, &config.policy), std::pair(Role::kCoder, &config.coder),
          std::pair(Role::kEvaluator, &config.evaluator), std::pair(Role::kReward, &config.reward)}) {
      if (json.contains(RoleName(role))) *choice = ReadChoice(json.at(RoleName(role)));
    }
    const Json& loop = json.at("loop");
    config.loop.max_steps = loop.at("max_steps");
    config.loop.batch_size = loop.at("batch_size");
    config.loop.rounds = loop.at("rounds");
    config.loop.trajectories_per_problem = loop.at("trajectories_per_problem");
    config.loop.generation_batch = loop.at("generation_batch");
    config.loop.workers = loop.at("workers");
    const Json& sampling = loop.at("sampling");
    config.loop.sampling = {sampling.at("max_new_tokens"), sampling.at("temperature"), sampling.at("top_k"),
                            sampling.at("top_p"), sampling.at("min_p")};
    config.loop.advance = loop.at("advance") == "always" ? Advance::kAlways : Advance::kCorrect;
    config.loop.fresh_inputs = loop.at("fresh_inputs");
    config.loop.on_coder_failure = loop.at("on_coder_failure") == "drop" ? CoderFailure::kDrop : CoderFailure::kPunish;
    if (json.contains("trainer")) {
      const Json& trainer = json.at("trainer");
      for (const Json& stage : trainer.is_array() ? trainer : Json::array({trainer})) {
        config.stages.push_back(
            {ReadChoice(stage), stage.value("steps", config.loop.max_steps),
             stage.at("suggestions") == "uniform" ? SuggestionSource::kUniform : SuggestionSource::kPolicy,
             stage.at("episodes"), stage.at("demonstrations_per_step")});
      }
    }
    config.train_problems = json.at("problems").at("train").get<std::vector<std::string>>();
    config.heldout_problems = json.at("problems").at("heldout").get<std::vector<std::string>>();
    const Json& prompt = json.at("prompt");
    config.prompt.system = prompt.at("system");
    config.prompt.user = prompt.at("user");
    if (!prompt.at("enable_thinking").is_null())
      config.prompt.enable_thinking = prompt.at("enable_thinking").get<bool>();
    const Json& checkpoint = json.at("checkpoint");
    config.checkpoint = {checkpoint.at("every"), checkpoint.at("keep_last"), checkpoint.at("keep_best")};
    config.evaluation = {json.at("evaluation").at("every"), json.at("evaluation").at("episodes")};
    config.controls = {json.at("controls").at("shuffle_prompts"), json.at("controls").at("shuffle_rewards")};
    config.output_dir = json.at("output_dir");
    config.resolved_yaml = EmitYaml(json);
    return config;
  }

  const LoadRequest& request_;
  const SchemaLookup& lookup_;
  Node root_;
  std::vector<Diagnostic> diagnostics_;
  std::set<std::string> unreadable_;  // paths of what reading refused: the first unreadable_count_ diagnostics
  size_t unreadable_count_ = 0;
};

}  // namespace

PipelineConfig LoadPipeline(const LoadRequest& request, const SchemaLookup& lookup) {
  return Loader(request, lookup).Load();
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
