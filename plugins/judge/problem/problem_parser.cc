// LoadProblem: problem.yaml, reference.cu, oracle.cc and inputs.cc into a Problem. Every mistake is collected with its
// position before any is thrown; unknown and repeated keys are mistakes.
#include <kgrpo/sdk/error.h>
#include <kgrpo/support/yaml.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <kgrpo/support/sha256.h>
#include "cuda_source/lexer.h"
#include "judge/problem/parameter_parser.h"
#include "judge/problem/problem.h"

namespace kgrpo::evaluator {
namespace {

constexpr size_t kLargestFile = size_t{1} << 20;
constexpr double kMostDiffering = 0.1;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(KGRPO_ERROR_NOT_FOUND, path.string() + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class ProblemParser : public ParameterParser {
 public:
  ProblemParser(std::filesystem::path directory, std::string file, Problem& problem)
      : ParameterParser(std::move(file), problem), directory_(std::move(directory)) {}

  void Parse(const std::string& text);

  // Finds the files of `oracle: torchscript` and `distribution: torchscript`; returns their digests.
  std::string FindTorchFiles();

  // inputs.cc, whose path `file` is, and `distribution: source` come together.
  void CheckInputsSource(const std::string& file);

 private:
  void ParseSize(const YamlNode& node, const std::string& path, Bindings& out);
  void ParseSizeList(const YamlNode& node, const std::string& path, std::vector<Bindings>& out);
  void ParseTiming(const YamlNode& node, const std::string& path);
  void ParseSizes(const YamlNode& node, const std::string& path);
  void ParseRanges(const YamlNode& node, const std::string& path);

  std::filesystem::path directory_;
  std::vector<std::pair<YamlNode, std::string>> sizes_seen_;
};

void ProblemParser::ParseSize(const YamlNode& node, const std::string& path, Bindings& out) {
  if (!node.IsMapping() || node.values.empty())
    return Add(node, path, "expected symbols with their values, such as {n: 1000}");
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& key = node.keys[i];
    const std::string symbol = key.value;
    const std::string symbol_path = path + "." + symbol;
    const int64_t value = ReadNumber(node.values[i]).value_or(YamlNumber()).integer.value_or(0);
    if (!IsIdentifier(symbol)) {
      Add(key, symbol_path, "a symbol must be an identifier");
    } else if (value < 1) {
      Add(node.values[i], symbol_path, "expected a whole number of at least 1");
    } else if (!out.emplace(symbol, value).second) {
      Add(key, symbol_path, "the key is given twice");
    }
  }
  sizes_seen_.emplace_back(node, path);
}

void ProblemParser::ParseSizeList(const YamlNode& node, const std::string& path, std::vector<Bindings>& out) {
  if (!node.IsList() || node.values.empty()) return Add(node, path, "expected a list of at least one size");
  for (size_t i = 0; i < node.values.size(); ++i) {
    out.emplace_back();
    ParseSize(node.values[i], path + "[" + std::to_string(i) + "]", out.back());
  }
}

// One size, or a list of them.
void ProblemParser::ParseTiming(const YamlNode& node, const std::string& path) {
  if (!node.IsList()) return ParseSize(node, path, problem_.timing);
  std::vector<Bindings> sizes;
  ParseSizeList(node, path, sizes);
  if (sizes.empty()) return;
  problem_.timing = sizes[0];
  problem_.further_timing.assign(sizes.begin() + 1, sizes.end());
}

// What drawn sizes keep to: {n: [1, 5000]}.
void ProblemParser::ParseRanges(const YamlNode& node, const std::string& path) {
  if (!node.IsMapping()) return Add(node, path, "expected symbols with their ranges, such as {n: [1, 5000]}");
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& symbol = node.keys[i].value;
    std::pair<double, double> range;
    if (problem_.timing.count(symbol) == 0) {
      Add(node.keys[i], path + "." + symbol, "is no symbol of sizes.timing");
    } else if (ParseRange(node.values[i], path + "." + symbol, true, &range)) {
      if (range.first < 1 || range.second > 1e15) {
        Add(node.values[i], path + "." + symbol, "a size is from 1 to 1e15");
      } else {
        problem_.ranges[symbol] = {static_cast<int64_t>(range.first), static_cast<int64_t>(range.second)};
      }
    }
  }
}

void ProblemParser::ParseSizes(const YamlNode& node, const std::string& path) {
  std::optional<YamlNode> ranges;
  Map(node, path,
      {{"visible", [this](const YamlNode& n, const std::string& p) { ParseSizeList(n, p, problem_.visible); }},
       {"hidden", [this](const YamlNode& n, const std::string& p) { ParseSizeList(n, p, problem_.hidden); }},
       {"timing", [this](const YamlNode& n, const std::string& p) { ParseTiming(n, p); }},
       {"ranges", [&ranges](const YamlNode& n, const std::string&) { ranges = n; }}},
      {"visible", "hidden", "timing"});
  // Every size binds the same symbols; the timing size is the one the others are held against.
  if (problem_.timing.empty()) return;
  if (ranges) ParseRanges(*ranges, path + ".ranges");
  for (const auto& [size_node, size_path] : sizes_seen_) {
    if (!size_node.IsMapping()) continue;
    std::set<std::string> bound;
    for (const YamlNode& key : size_node.keys) bound.insert(key.value);
    for (const auto& [symbol, value] : problem_.timing) {
      if (bound.count(symbol) == 0)
        Add(size_node, size_path, "binds no value to \"" + symbol + "\", which sizes.timing does");
    }
    for (const std::string& symbol : bound) {
      if (problem_.timing.count(symbol) == 0)
        Add(size_node, size_path, "binds \"" + symbol + "\", which sizes.timing does not");
    }
  }
}

void ProblemParser::Parse(const std::string& text) {
  const YamlFile file = ReadYaml(text);
  if (file.error)
    return diagnostics().Add(file.error->at.line, file.error->at.column, "", "not YAML: " + file.error->message);
  const YamlNode root = file.documents.empty() ? YamlNode() : file.documents[0];
  size_t split = 0;
  const auto expression = [this](Expression& out, bool whole) {
    return [this, &out, whole](const YamlNode& n, const std::string& p) {
      if (ParseExpression(n, p, out)) {
        CheckLater(n, p, out, whole,
                   [](int64_t v) { return v >= 1 ? std::string() : std::string("must be at least 1"); });
      }
    };
  };
  const auto positive = [this](std::optional<double>& out) {
    return [this, &out](const YamlNode& n, const std::string& p) {
      double value = 0;
      if (!Number(n, p, value)) return;
      if (value < 0) return Add(n, p, "must not be negative");
      out = value;
    };
  };
  const Fields fields = {
      {"name",
       [this](const YamlNode& n, const std::string& p) {
         const std::string folder = directory_.filename().string();
         if (Text(n, p, problem_.name) && problem_.name != folder) {
           Add(n, p, "\"" + problem_.name + "\" is not the folder's name, \"" + folder + "\"");
         }
       }},
      {"title", [this](const YamlNode& n, const std::string& p) { Text(n, p, problem_.title); }},
      {"family", [this](const YamlNode& n, const std::string& p) { Text(n, p, problem_.family); }},
      {"refused", [this](const YamlNode& n, const std::string& p) { Text(n, p, problem_.refused); }},
      {"flags", [this](const YamlNode& n, const std::string& p) { TextList(n, p, problem_.flags); }},
      {"oracle",
       [this](const YamlNode& n, const std::string& p) {
         size_t kind = 0;
         if (Choice(n, p, {"torchscript"}, kind)) problem_.oracle = OracleKind::kTorchScript;
       }},
      {"oracle_dtype",
       [this](const YamlNode& n, const std::string& p) {
         size_t kind = 0;
         if (Choice(n, p, {"float64", "float32"}, kind) && kind == 1) problem_.oracle_dtype = DType::kFloat32;
       }},
      {"reference",
       [this](const YamlNode& n, const std::string& p) {
         size_t kind = 0;
         if (Choice(n, p, {"none"}, kind)) problem_.has_reference = false;
       }},
      {"split",
       [&, this](const YamlNode& n, const std::string& p) {
         Choice(n, p, {"train", "heldout"}, split);
       }},
      {"traits", [this](const YamlNode& n, const std::string& p) { TextList(n, p, problem_.traits); }},
      {"description", [this](const YamlNode& n, const std::string& p) { Text(n, p, problem_.description); }},
      {"entry", [this](const YamlNode& n, const std::string& p) { Identifier(n, p, problem_.entry); }},
      {"parameters", [this](const YamlNode& n, const std::string& p) { ParseParameters(n, p); }},
      {"sizes", [this](const YamlNode& n, const std::string& p) { ParseSizes(n, p); }},
      {"tolerance",
       [&, this](const YamlNode& n, const std::string& p) {
         Map(n, p,
             {{"relative", positive(problem_.tolerance.relative)},
              {"absolute", positive(problem_.tolerance.absolute)},
              {"accumulation",
               [this](const YamlNode& v, const std::string& q) {
                 static const std::vector<std::string> kDTypes = {"float16", "bfloat16", "float32", "float64"};
                 size_t chosen = 0;
                 if (Choice(v, q, kDTypes, chosen)) problem_.tolerance.accumulation = DTypeFromName(kDTypes[chosen]);
               }},
              {"differing",
               [this](const YamlNode& v, const std::string& q) {
                 double share = 0;
                 if (!Number(v, q, share)) return;
                 if (share < 0 || share > kMostDiffering) return Add(v, q, "must be a share from 0 to 0.1");
                 problem_.tolerance.differing = share;
               }}},
             {});
       }},
      {"accumulations", expression(problem_.accumulations, true)},
      {"needs",
       [&, this](const YamlNode& n, const std::string& p) {
         Map(n, p,
             {{"bytes", expression(problem_.needed_bytes, false)}, {"flops", expression(problem_.needed_flops, false)}},
             {"bytes", "flops"});
       }},
      {"allow",
       [&, this](const YamlNode& n, const std::string& p) {
         Map(n, p,
             {{"device_malloc",
               [this](const YamlNode& v, const std::string& q) { Boolean(v, q, problem_.allow_device_malloc); }},
              {"libraries",
               [this](const YamlNode& v, const std::string& q) { TextList(v, q, problem_.allowed_libraries); }}},
             {});
       }},
  };
  std::vector<std::string> required = {"name", "title", "family", "split", "traits", "description"};
  if (root.Get("refused") == nullptr) required.insert(required.end(), {"parameters", "sizes", "needs"});
  if (!Map(root, "", fields, required)) {
    if (!root.IsMapping()) return;
  }
  problem_.split = split == 0 ? "train" : "heldout";
  if (problem_.timing.empty()) return;  // already reported; nothing can be evaluated
  CheckExpressions();
  if (!diagnostics().empty()) return;
  CheckParameters();
}

std::string ProblemParser::FindTorchFiles() {
  std::string digests;
  // The file's path; empty where it cannot be used.
  const auto find = [&](const std::string& path, bool optional) -> std::string {
    std::error_code code;
    const std::filesystem::path file = directory_ / path;
    if (!std::filesystem::is_regular_file(file, code)) {
      if (!optional) diagnostics().AddFile(file.string(), "there is no such file, which `torchscript` asks for");
    } else if (std::filesystem::file_size(file, code) > kLargestFile) {
      diagnostics().AddFile(file.string(), "is larger than 1 MiB");
    } else {
      digests += Sha256OfParts({ReadFile(file)});
      return file.string();
    }
    return "";
  };
  const auto find_for = [&](const Bindings& size, const std::string& path, bool optional,
                            std::vector<std::pair<Bindings, std::string>>* files) {
    const std::string file = find(path, optional);
    if (!file.empty()) files->emplace_back(size, file);
  };
  if (problem_.oracle == OracleKind::kTorchScript) problem_.eager_file = find("oracle/eager.pt", true);
  for (const auto& [name, size] : problem_.SizesByName()) {
    // A timing size's file may be missing: the reference kernel then gives the expected outputs.
    if (problem_.oracle == OracleKind::kTorchScript)
      find_for(*size, "oracle/" + name + ".pt", name.starts_with("timing"), &problem_.oracle_files);
    for (Parameter& parameter : problem_.parameters) {
      if (parameter.IsTensor() && parameter.distribution.kind == Distribution::Kind::kTorchScript)
        find_for(*size, "inputs/" + parameter.name + "." + name + ".pt", false, &parameter.distribution.tapes);
    }
  }
  return digests;
}

void ProblemParser::CheckInputsSource(const std::string& file) {
  bool asked = false;
  for (const Parameter& parameter : problem_.parameters)
    asked = asked || (parameter.IsTensor() && parameter.distribution.kind == Distribution::Kind::kSource);
  if (asked && !problem_.inputs_source)
    diagnostics().AddFile(file, "there is no such file, which `distribution: source` asks for");
  if (!asked && problem_.inputs_source)
    diagnostics().AddFile(file, "draws nothing: no parameter of problem.yaml has `distribution: source`");
}

}  // namespace

Problem LoadProblem(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code code;
  fs::path folder = fs::absolute(directory, code).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();
  if (!fs::is_directory(folder, code)) {
    throw Error(KGRPO_ERROR_NOT_FOUND,
                directory + ": no such folder; a problem is a folder with problem.yaml and reference.cu");
  }
  Problem problem;
  problem.directory = folder.string();
  const fs::path yaml = folder / "problem.yaml", reference = folder / "reference.cu", oracle = folder / "oracle.cc",
                 checker = folder / "checker.cc", inputs = folder / "inputs.cc", launcher = folder / "launcher.cu";
  ProblemParser parser(folder, yaml.string(), problem);
  std::string yaml_text;
  for (const fs::path& file : {yaml, reference, oracle, checker, inputs, launcher}) {
    const bool optional = (file != yaml && file != reference) || !problem.refused.empty();
    if (!fs::is_regular_file(file, code)) {
      if (!optional) parser.diagnostics().AddFile(file.string(), "there is no such file");
      continue;
    }
    if (fs::file_size(file, code) > kLargestFile) {
      parser.diagnostics().AddFile(file.string(), "is larger than 1 MiB");
      continue;
    }
    std::string text = ReadFile(file);
    if (file == yaml) {
      parser.Parse(text);
      yaml_text = std::move(text);
    } else if (file == reference) {
      problem.reference_source = std::move(text);
    } else if (file == inputs) {
      problem.inputs_source = std::move(text);
    } else if (file == launcher) {
      problem.launcher = std::move(text);
      problem.own_entry = problem.entry;
      problem.entry = cuda_source::FunctionName(problem.launcher);
      if (problem.entry.empty() || problem.entry == problem.own_entry)
        parser.diagnostics().AddFile(file.string(), "must define a function other than `entry` of problem.yaml");
    } else {
      if (problem.oracle == OracleKind::kTorchScript) {
        parser.diagnostics().AddFile(file.string(), "problem.yaml says `oracle: torchscript`: remove one of them");
      } else if (problem.oracle_source) {
        parser.diagnostics().AddFile(file.string(), "oracle.cc is there, too: remove one of them");
      }
      (file == oracle ? problem.oracle_source : problem.checker_source) = std::move(text);
      problem.oracle = file == oracle ? OracleKind::kSource : OracleKind::kChecker;
    }
  }
  std::string torch_files;  // their digests
  if (parser.diagnostics().empty() && problem.refused.empty()) {
    torch_files = parser.FindTorchFiles();
    parser.CheckInputsSource(inputs.string());
    for (const Parameter& parameter : problem.parameters) {
      if (problem.checker_source && (parameter.role == Role::kInout || parameter.may_alias))
        parser.diagnostics().AddFile(
            checker.string(), "cannot check " + parameter.name +
                                  ", which changes an input in place: make it an output (problems new: --output " +
                                  parameter.name + ")");
    }
  }
  parser.diagnostics().ThrowIfAny();
  problem.digest =
      Sha256OfParts({yaml_text, problem.reference_source,
                     problem.oracle_source.value_or("") + torch_files + problem.inputs_source.value_or("") +
                         problem.launcher + problem.checker_source.value_or("")});
  return problem;
}

}  // namespace kgrpo::evaluator
