#include "config/experiment.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "config/merge.h"
#include "config/node.h"

namespace kgrpo {
namespace {

// A variant, or a point of the sweep.
struct Delta {
  std::string name;
  std::vector<std::string> settings;
  Position at;
  std::map<std::string, Position> places;
};

bool IsName(const std::string& name) {
  if (name.empty() || std::isalnum(static_cast<unsigned char>(name[0])) == 0) return false;
  return std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  });
}

// Makes any text usable in a folder's name.
std::string AsFolderName(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("._-=+").find(c) == std::string::npos)
      c = '_';
  }
  return text;
}

std::string LastPart(const std::string& path) { return path.substr(path.rfind('.') + 1); }

class Reader {
 public:
  explicit Reader(const LoadRequest& request) {
    std::vector<std::string> files;
    root_ = ReadWithBases(request.file, &files, &mistakes_);
    ApplySettings(request.settings, &root_, &mistakes_);
    mistakes_.clear();  // LoadPipeline reports these
  }

  std::optional<std::vector<ExperimentRun>> Read() {
    if (std::ranges::none_of(kExperimentKeys, [&](const char* key) { return root_.Find(key) != nullptr; })) return {};
    const std::vector<Delta> variants = Variants();
    const std::vector<Delta> points = Points();
    const std::vector<std::optional<uint64_t>> seeds = Seeds();
    std::vector<ExperimentRun> runs;
    for (const Delta& variant : variants) {
      for (const Delta& point : points) {
        for (const std::optional<uint64_t> seed : seeds) {
          ExperimentRun run;
          const bool alone = variant.name == kBaseVariant && !point.name.empty();
          run.variant = alone ? point.name : variant.name + (point.name.empty() ? "" : "," + point.name);
          run.settings = variant.settings;
          run.settings.insert(run.settings.end(), point.settings.begin(), point.settings.end());
          run.places = point.places;
          run.places.insert(variant.places.begin(), variant.places.end());
          run.folder = AsFolderName(run.variant);
          if (seed) {
            run.seed = seed;
            run.settings.push_back("seed=" + std::to_string(*seed));
            run.folder += "/seed-" + std::to_string(*seed);
          }
          run.at = alone ? point.at : variant.at;
          if (mistakes_.empty() && !folders_.insert(run.folder).second) {
            Report(run.at, "", "two runs would share the folder " + run.folder + ": give the variants other names");
          }
          runs.push_back(std::move(run));
        }
      }
    }
    if (!mistakes_.empty()) {
      SortDiagnostics(&mistakes_);
      throw ConfigError(std::move(mistakes_));
    }
    return runs;
  }

 private:
  void Report(const Position& at, const std::string& path, std::string message) {
    mistakes_.push_back({at, path, std::move(message), ""});
  }

  // The delta's leaves as settings. Lists are replaced whole; a key may be a path: "trainer[1].options.gamma".
  void Flatten(const Node& node, const std::string& path, Delta* delta) {
    if (node.IsMapping()) {
      for (const Node::Member& member : node.members) {
        Flatten(member.value, path.empty() ? member.key : path + "." + member.key, delta);
      }
      return;
    }
    AddSetting(path, node, delta);
  }

  static void AddSetting(const std::string& path, const Node& value, Delta* delta) {
    delta->settings.push_back(path + "=" + value.ToJson().dump());
    delta->places[path] = value.text.line > 0 ? value.text : value.at;
  }

  std::vector<Delta> Variants() {
    std::vector<Delta> variants = {{kBaseVariant, {}, root_.at, {}}};
    const Node* node = root_.Get("variants");
    if (node == nullptr) return variants;
    if (!node->IsMapping()) {
      Report(node->at, "variants", "expected a mapping of names to deltas, found " + Describe(*node));
      return variants;
    }
    for (const Node::Member& member : node->members) {
      const std::string path = "variants." + member.key;
      if (!IsName(member.key) || member.key == kBaseVariant) {
        Report(member.at, path,
               member.key == kBaseVariant ? "\"base\" is the file itself: take another name"
                                          : "a variant's name consists of letters, digits, '.', '_' and '-'");
        continue;
      }
      Delta delta = {member.key, {}, member.at, {}};
      if (member.value.IsMapping()) Flatten(member.value, "", &delta);
      if (!member.value.IsMapping() || delta.settings.empty()) {
        Report(member.value.at, path,
               "expected what this variant changes, as in {loop: {rounds: 2}}, found " +
                   (member.value.IsMapping() ? "nothing" : Describe(member.value)));
        continue;
      }
      RefuseReserved(delta.settings, member.at, path);
      variants.push_back(std::move(delta));
    }
    return variants;
  }

  // Refuses keys that the experiment itself sets for each run.
  void RefuseReserved(const std::vector<std::string>& settings, const Position& at, const std::string& path) {
    for (const std::string& setting : settings) {
      const std::string key = setting.substr(0, setting.find('='));
      for (const char* reserved : {"output_dir", "variants", "sweep", "seeds", "extends"}) {
        if (key == reserved) Report(at, path, "a variant cannot change " + key);
      }
    }
  }

  std::vector<Delta> Points() {
    std::vector<Delta> points = {{"", {}, root_.at, {}}};
    const Node* node = root_.Get("sweep");
    if (node == nullptr) return points;
    if (!node->IsMapping() || node->members.empty()) {
      Report(node->at, "sweep", "expected a mapping of keys to lists of values, found " + Describe(*node));
      return points;
    }
    std::multiset<std::string> last_parts;
    for (const Node::Member& member : node->members) last_parts.insert(LastPart(member.key));
    for (const Node::Member& member : node->members) {
      const std::string path = "sweep." + member.key;
      if (!member.value.IsList() || member.value.items.empty()) {
        Report(member.value.at, path, "expected a list of values, found " + Describe(member.value));
        continue;
      }
      RefuseReserved({member.key + "="}, member.at, path);
      const std::string shown = last_parts.count(LastPart(member.key)) == 1 ? LastPart(member.key) : member.key;
      std::vector<Delta> more;
      for (const Delta& point : points) {
        for (const Node& value : member.value.items) {
          const std::string text = value.ToJson().dump();
          Delta next = {point.name + (point.name.empty() ? "" : ",") + shown + "=" +
                            (value.IsString() ? value.scalar.get<std::string>() : text),
                        point.settings, value.at, point.places};
          AddSetting(member.key, value, &next);
          more.push_back(std::move(next));
        }
      }
      points = std::move(more);
    }
    return points;
  }

  std::vector<std::optional<uint64_t>> Seeds() {
    const Node* node = root_.Get("seeds");
    if (node == nullptr) return {std::nullopt};
    std::vector<std::optional<uint64_t>> seeds;
    if (!node->IsList() || node->items.empty()) {
      Report(node->at, "seeds", "expected a list of seeds, as in [1, 2, 3], found " + Describe(*node));
      return {std::nullopt};
    }
    for (const Node& item : node->items) {
      if (!item.IsScalar() || !item.scalar.is_number_unsigned()) {
        Report(item.at, "seeds", "expected a seed (an integer of at least 0), found " + Describe(item));
        continue;
      }
      seeds.push_back(item.scalar.get<uint64_t>());
      if (std::ranges::count(seeds, seeds.back()) > 1) {
        Report(item.at, "seeds", "the seed " + std::to_string(*seeds.back()) + " is there twice");
      }
    }
    return seeds;
  }

  Node root_;
  std::vector<Diagnostic> mistakes_;
  std::set<std::string> folders_;
};

}  // namespace

Position ExperimentRun::PlaceOf(const std::string& key) const {
  for (const auto& [setting, place] : places) {
    const bool within = key.starts_with(setting) &&
                        (key.size() == setting.size() || key[setting.size()] == '.' || key[setting.size()] == '[');
    if (within) return place;
  }
  return at;
}

std::optional<std::vector<ExperimentRun>> ReadExperiment(const LoadRequest& request) { return Reader(request).Read(); }

}  // namespace kgrpo
