// LoadProblem: problem.yaml, reference.cu and oracle.cc into a Problem. Every mistake is collected with its position
// before any is thrown; unknown and repeated keys are mistakes.
#include <kgrpo/sdk/error.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "digest/sha256.h"
#include "evaluator_shared/problem.h"
#include "evaluator_shared/yaml_reader.h"

namespace kgrpo::evaluator {
namespace {

constexpr int64_t kLargestTensor = int64_t{1} << 31;  // bytes; keeps one mistyped size from taking the machine down
constexpr size_t kLargestFile = size_t{1} << 20;

const std::vector<std::string> kDistributionNames = {"normal", "uniform",     "integers", "large_offset",
                                                     "sparse", "permutation", "offsets",  "constant"};

bool IsIdentifier(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// Words that cannot name a parameter in C++.
bool IsReserved(const std::string& name) {
  static const std::set<std::string> kWords = {
      "auto",   "bool",     "break",  "case",   "char",     "class",  "const",    "continue", "default",
      "delete", "do",       "double", "else",   "enum",     "extern", "false",    "float",    "for",
      "goto",   "if",       "inline", "int",    "long",     "new",    "new",      "operator", "return",
      "short",  "signed",   "sizeof", "static", "struct",   "switch", "this",     "true",     "typedef",
      "union",  "unsigned", "using",  "void",   "volatile", "while",  "template", "namespace"};
  return kWords.count(name) > 0;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(KGRPO_ERROR_NOT_FOUND, path.string() + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class ProblemParser : public YamlReader {
 public:
  ProblemParser(std::filesystem::path directory, std::string file, Problem& problem)
      : YamlReader(file), directory_(std::move(directory)), file_(std::move(file)), problem_(problem) {}

  void Parse(const std::string& text);

 private:
  bool Identifier(const YAML::Node& node, const std::string& path, std::string& out);
  bool ParseExpression(const YAML::Node& node, const std::string& path, Expression& out);
  void ParseParameter(const YAML::Node& node, const std::string& path);
  void ParseParameters(const YAML::Node& node, const std::string& path);
  void ParseSize(const YAML::Node& node, const std::string& path, Bindings& out);
  void ParseSizeList(const YAML::Node& node, const std::string& path, std::vector<Bindings>& out);
  void ParseSizes(const YAML::Node& node, const std::string& path);
  void CheckExpressions();

  // An expression seen while parsing, checked against every size once the sizes are known.
  struct Pending {
    YAML::Node node;
    std::string path;
    Expression expression;
    bool whole;
    std::function<std::string(int64_t)> check;  // says what is wrong with a value, or ""
  };

  std::filesystem::path directory_;
  std::string file_;
  Problem& problem_;
  std::vector<Pending> pending_;
  std::vector<std::pair<YAML::Node, std::string>> sizes_seen_;
};

bool ProblemParser::Identifier(const YAML::Node& node, const std::string& path, std::string& out) {
  std::string text;
  if (!Text(node, path, text)) return false;
  if (!IsIdentifier(text) || IsReserved(text)) {
    Add(node, path, "\"" + text + "\" is not a C identifier");
    return false;
  }
  out = text;
  return true;
}

bool ProblemParser::ParseExpression(const YAML::Node& node, const std::string& path, Expression& out) {
  std::string text;
  if (!Text(node, path, text)) return false;
  try {
    out = Expression::Parse(text);
    return true;
  } catch (const std::invalid_argument& error) {
    Add(node, path, error.what());
    return false;
  }
}

void ProblemParser::ParseParameter(const YAML::Node& node, const std::string& path) {
  Parameter parameter;
  std::set<std::string> given;
  size_t role = 0, kind = 0;
  bool dtype_known = false;
  std::map<std::string, YAML::Node> nodes;
  double number = 0;
  const auto keep = [&](const char* name) {
    return [&nodes, name](const YAML::Node& n, const std::string&) { nodes[name] = n; };
  };
  const auto expression = [&](std::optional<Expression>& out) {
    return [this, &out](const YAML::Node& n, const std::string& p) {
      Expression parsed;
      if (!ParseExpression(n, p, parsed)) return;
      out = parsed;
      pending_.push_back({n, p, parsed, false, nullptr});
    };
  };
  const auto decimal = [&](auto& out) {
    return [this, &out, &number](const YAML::Node& n, const std::string& p) {
      if (Number(n, p, number)) out = number;
    };
  };
  Distribution& distribution = parameter.distribution;
  const Fields fields = {
      {"name", [&](const YAML::Node& n, const std::string& p) { Identifier(n, p, parameter.name); }},
      {"role",
       [&](const YAML::Node& n, const std::string& p) {
         Choice(n, p, {"input", "output", "inout", "scalar"}, role);
       }},
      {"dtype",
       [&](const YAML::Node& n, const std::string& p) {
         size_t index = 0;
         dtype_known = Choice(n, p, DTypeNames(), index);
         if (dtype_known) parameter.dtype = static_cast<DType>(index);
       }},
      {"shape", keep("shape")},
      {"value", keep("value")},
      {"distribution", [&](const YAML::Node& n, const std::string& p) { Choice(n, p, kDistributionNames, kind); }},
      {"low", expression(distribution.low)},
      {"high", expression(distribution.high)},
      {"mean", decimal(distribution.mean)},
      {"deviation", decimal(distribution.deviation)},
      {"offset", decimal(distribution.offset)},
      {"density", decimal(distribution.density)},
  };
  if (!Map(node, path, fields, {"name", "role", "dtype"}, &given)) {
    problem_.parameters.push_back(parameter);
    return;
  }
  parameter.role = static_cast<Role>(role);
  distribution.kind = static_cast<Distribution::Kind>(kind);
  const bool scalar = parameter.role == Role::kScalar;
  const bool drawn = parameter.role == Role::kInput || parameter.role == Role::kInout;
  const DTypeInfo& info = Info(parameter.dtype);
  const bool constant = distribution.kind == Distribution::Kind::kConstant;

  if (scalar) {
    for (const char* key : {"shape", "distribution"}) {
      if (given.count(key))
        Add(nodes.count(key) ? nodes[key] : node, path + "." + key, "a scalar has no " + std::string(key));
    }
    if (!given.count("value")) {
      Add(node, path + ".value", "is missing: a scalar needs its value, an expression over the sizes");
    } else if (ParseExpression(nodes["value"], path + ".value", parameter.value) && dtype_known) {
      const double lowest = info.lowest, highest = info.highest;
      pending_.push_back(
          {nodes["value"], path + ".value", parameter.value, !info.is_floating, [lowest, highest, &info](int64_t v) {
             const bool fits = static_cast<double>(v) >= lowest && static_cast<double>(v) <= highest;
             return fits ? std::string() : std::to_string(v) + " does not fit " + info.name;
           }});
    }
  } else {
    if (!given.count("shape")) {
      Add(node, path + ".shape", "is missing: a tensor needs its shape, a list of expressions");
    } else if (!nodes["shape"].IsSequence() || nodes["shape"].size() == 0) {
      Add(nodes["shape"], path + ".shape", "expected a list of at least one dimension");
    } else {
      for (size_t i = 0; i < nodes["shape"].size(); ++i) {
        const YAML::Node dimension = nodes["shape"][i];
        const std::string dimension_path = path + ".shape[" + std::to_string(i) + "]";
        Expression parsed;
        if (!ParseExpression(dimension, dimension_path, parsed)) continue;
        parameter.shape.push_back(parsed);
        pending_.push_back({dimension, dimension_path, parsed, true, [](int64_t value) {
                              return value >= 1 ? std::string()
                                                : "a dimension must be at least 1, not " + std::to_string(value);
                            }});
      }
    }
    if (given.count("value") && !(drawn && constant)) {
      Add(nodes["value"], path + ".value", "belongs to scalars and to `distribution: constant`");
    } else if (given.count("value")) {
      Number(nodes["value"], path + ".value", distribution.value);
    }
  }
  if (parameter.role == Role::kOutput && given.count("distribution")) {
    Add(node, path + ".distribution", "an output is not drawn; the judge fills it with a poison pattern");
  }
  // Which settings each distribution takes.
  const std::map<std::string, std::set<size_t>> takes = {{"low", {1, 2}},       {"high", {1, 2, 6}}, {"mean", {0}},
                                                         {"deviation", {0, 3}}, {"offset", {3}},     {"density", {4}}};
  for (const auto& [key, kinds] : takes) {
    if (given.count(key) && (!drawn || kinds.count(kind) == 0)) {
      Add(node, path + "." + key,
          "has no meaning for " + (drawn ? "the distribution " + kDistributionNames[kind] : "this role"));
    }
  }
  if (drawn && (kind == 1 || kind == 2)) {
    for (const char* key : {"low", "high"}) {
      if (!given.count(key))
        Add(node, path + "." + key, "is missing: the distribution " + kDistributionNames[kind] + " needs it");
    }
  }
  if (drawn && kind == 6 && !given.count("high")) Add(node, path + ".high", "is missing: the last offset");
  const bool whole_only = kind == 5 || kind == 6;
  if (drawn && dtype_known && whole_only && info.is_floating) {
    Add(node, path + ".distribution", kDistributionNames[kind] + " needs an integer dtype");
  }
  if (drawn && dtype_known && !info.is_floating && (kind == 0 || kind == 3 || kind == 4)) {
    Add(node, path + ".distribution",
        kDistributionNames[kind] + " needs a floating dtype; use integers with low and high for " + info.name);
  }
  if (!(distribution.density > 0 && distribution.density <= 1)) Add(node, path + ".density", "must be in (0, 1]");
  if (distribution.deviation && !(*distribution.deviation > 0)) Add(node, path + ".deviation", "must be positive");
  problem_.parameters.push_back(std::move(parameter));
}

void ProblemParser::ParseParameters(const YAML::Node& node, const std::string& path) {
  if (!node.IsSequence() || node.size() == 0) return Add(node, path, "expected a list of at least one parameter");
  std::set<std::string> names;
  bool writes = false;
  for (size_t i = 0; i < node.size(); ++i) {
    const std::string item = path + "[" + std::to_string(i) + "]";
    ParseParameter(node[i], item);
    const Parameter& parameter = problem_.parameters.back();
    if (!parameter.name.empty() && !names.insert(parameter.name).second) {
      Add(node[i], item + ".name", "the name \"" + parameter.name + "\" is used twice");
    }
    writes = writes || parameter.role == Role::kOutput || parameter.role == Role::kInout;
  }
  if (!writes) Add(node, path, "no parameter is an output or inout, so there is nothing to judge");
}

void ProblemParser::ParseSize(const YAML::Node& node, const std::string& path, Bindings& out) {
  if (!node.IsMap() || node.size() == 0)
    return Add(node, path, "expected symbols with their values, such as {n: 1000}");
  for (const auto& entry : node) {
    const std::string symbol = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const std::string symbol_path = path + "." + symbol;
    int64_t value = 0;
    if (!IsIdentifier(symbol)) {
      Add(entry.first, symbol_path, "a symbol must be an identifier");
    } else if (!entry.second.IsScalar() || !YAML::convert<int64_t>::decode(entry.second, value) || value < 1) {
      Add(entry.second, symbol_path, "expected a whole number of at least 1");
    } else if (!out.emplace(symbol, value).second) {
      Add(entry.first, symbol_path, "the key is given twice");
    }
  }
  sizes_seen_.emplace_back(node, path);
}

void ProblemParser::ParseSizeList(const YAML::Node& node, const std::string& path, std::vector<Bindings>& out) {
  if (!node.IsSequence() || node.size() == 0) return Add(node, path, "expected a list of at least one size");
  for (size_t i = 0; i < node.size(); ++i) {
    out.emplace_back();
    ParseSize(node[i], path + "[" + std::to_string(i) + "]", out.back());
  }
}

void ProblemParser::ParseSizes(const YAML::Node& node, const std::string& path) {
  Map(node, path,
      {{"visible", [this](const YAML::Node& n, const std::string& p) { ParseSizeList(n, p, problem_.visible); }},
       {"hidden", [this](const YAML::Node& n, const std::string& p) { ParseSizeList(n, p, problem_.hidden); }},
       {"timing", [this](const YAML::Node& n, const std::string& p) { ParseSize(n, p, problem_.timing); }}},
      {"visible", "hidden", "timing"});
  // Every size binds the same symbols; the timing size is the one the others are held against.
  if (problem_.timing.empty()) return;
  for (const auto& [size_node, size_path] : sizes_seen_) {
    if (!size_node.IsMap()) continue;
    std::set<std::string> bound;
    for (const auto& entry : size_node) {
      if (entry.first.IsScalar()) bound.insert(entry.first.Scalar());
    }
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

void ProblemParser::CheckExpressions() {
  std::vector<std::pair<std::string, const Bindings*>> sizes;
  for (size_t i = 0; i < problem_.visible.size(); ++i) {
    sizes.emplace_back("sizes.visible[" + std::to_string(i) + "]", &problem_.visible[i]);
  }
  for (size_t i = 0; i < problem_.hidden.size(); ++i) {
    sizes.emplace_back("sizes.hidden[" + std::to_string(i) + "]", &problem_.hidden[i]);
  }
  sizes.emplace_back("sizes.timing", &problem_.timing);
  std::vector<std::string> symbols;
  for (const auto& [symbol, value] : problem_.timing) symbols.push_back(symbol);
  for (const Pending& pending : pending_) {
    bool known = true;
    for (const std::string& symbol : pending.expression.Symbols()) {
      if (problem_.timing.count(symbol) > 0) continue;
      Add(pending.node, pending.path,
          "unknown symbol \"" + symbol + "\": the sizes do not bind it" + DidYouMean(symbol, symbols));
      known = false;
    }
    for (size_t i = 0; known && i < sizes.size(); ++i) {
      const std::set<std::string> used = pending.expression.Symbols();
      const bool bound = std::all_of(used.begin(), used.end(),
                                     [&](const std::string& symbol) { return sizes[i].second->count(symbol) > 0; });
      if (!bound) continue;  // reported with the size
      try {
        std::string wrong;
        if (pending.whole) {
          const int64_t value = pending.expression.EvaluateInteger(*sizes[i].second);
          if (pending.check) wrong = pending.check(value);
        } else if (!std::isfinite(pending.expression.Evaluate(*sizes[i].second))) {
          wrong = "is not finite";
        }
        if (wrong.empty()) continue;
        Add(pending.node, pending.path, wrong + " (with " + sizes[i].first + ")");
      } catch (const std::invalid_argument& error) {
        Add(pending.node, pending.path, std::string(error.what()) + " (with " + sizes[i].first + ")");
      }
      break;
    }
  }
}

void ProblemParser::Parse(const std::string& text) {
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::ParserException& error) {
    diagnostics().Add(error.mark.line + 1, error.mark.column + 1, "", "not YAML: " + error.msg);
    return;
  }
  size_t split = 0;
  std::vector<std::pair<YAML::Node, std::string>> tensors;
  YAML::Node parameters_node;
  const auto expression = [this](Expression& out, bool whole) {
    return [this, &out, whole](const YAML::Node& n, const std::string& p) {
      if (ParseExpression(n, p, out)) {
        pending_.push_back(
            {n, p, out, whole, [](int64_t v) { return v >= 1 ? std::string() : std::string("must be at least 1"); }});
      }
    };
  };
  const auto positive = [this](std::optional<double>& out) {
    return [this, &out](const YAML::Node& n, const std::string& p) {
      double value = 0;
      if (!Number(n, p, value)) return;
      if (value < 0) return Add(n, p, "must not be negative");
      out = value;
    };
  };
  const Fields fields = {
      {"name",
       [this](const YAML::Node& n, const std::string& p) {
         const std::string folder = directory_.filename().string();
         if (Text(n, p, problem_.name) && problem_.name != folder) {
           Add(n, p, "\"" + problem_.name + "\" is not the folder's name, \"" + folder + "\"");
         }
       }},
      {"title", [this](const YAML::Node& n, const std::string& p) { Text(n, p, problem_.title); }},
      {"family", [this](const YAML::Node& n, const std::string& p) { Text(n, p, problem_.family); }},
      {"split",
       [&, this](const YAML::Node& n, const std::string& p) {
         Choice(n, p, {"train", "heldout"}, split);
       }},
      {"traits", [this](const YAML::Node& n, const std::string& p) { TextList(n, p, problem_.traits); }},
      {"description", [this](const YAML::Node& n, const std::string& p) { Text(n, p, problem_.description); }},
      {"entry", [this](const YAML::Node& n, const std::string& p) { Identifier(n, p, problem_.entry); }},
      {"parameters",
       [&, this](const YAML::Node& n, const std::string& p) {
         parameters_node.reset(n);
         ParseParameters(n, p);
       }},
      {"sizes", [this](const YAML::Node& n, const std::string& p) { ParseSizes(n, p); }},
      {"tolerance",
       [&, this](const YAML::Node& n, const std::string& p) {
         Map(n, p,
             {{"relative", positive(problem_.tolerance.relative)}, {"absolute", positive(problem_.tolerance.absolute)}},
             {});
       }},
      {"accumulations", expression(problem_.accumulations, true)},
      {"needs",
       [&, this](const YAML::Node& n, const std::string& p) {
         Map(n, p,
             {{"bytes", expression(problem_.needed_bytes, false)}, {"flops", expression(problem_.needed_flops, false)}},
             {"bytes", "flops"});
       }},
      {"allow",
       [&, this](const YAML::Node& n, const std::string& p) {
         Map(n, p,
             {{"device_malloc",
               [this](const YAML::Node& v, const std::string& q) { Boolean(v, q, problem_.allow_device_malloc); }},
              {"libraries",
               [this](const YAML::Node& v, const std::string& q) { TextList(v, q, problem_.allowed_libraries); }}},
             {});
       }},
  };
  if (!Map(root, "", fields,
           {"name", "title", "family", "split", "traits", "description", "parameters", "sizes", "needs"})) {
    if (!root.IsMap()) return;
  }
  problem_.split = split == 0 ? "train" : "heldout";
  if (problem_.timing.empty()) return;  // already reported; nothing can be evaluated
  CheckExpressions();
  if (!diagnostics().empty()) return;
  std::vector<const Bindings*> sizes = {&problem_.timing};
  for (const Bindings& size : problem_.visible) sizes.push_back(&size);
  for (const Bindings& size : problem_.hidden) sizes.push_back(&size);
  for (size_t i = 0; i < problem_.parameters.size(); ++i) {
    const Parameter& parameter = problem_.parameters[i];
    for (const Bindings* size : sizes) {
      double bytes = static_cast<double>(Info(parameter.dtype).size);
      for (const Expression& dimension : parameter.shape) bytes *= dimension.Evaluate(*size);
      if (bytes <= static_cast<double>(kLargestTensor)) continue;
      Add(parameters_node[i], "parameters[" + std::to_string(i) + "]",
          "the tensor is larger than 2 GiB at one of the sizes");
      break;
    }
  }
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
  const fs::path yaml = folder / "problem.yaml", reference = folder / "reference.cu", oracle = folder / "oracle.cc";
  ProblemParser parser(folder, yaml.string(), problem);
  std::string yaml_text;
  for (const fs::path& file : {yaml, reference, oracle}) {
    const bool optional = file == oracle;
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
    } else {
      problem.oracle_source = std::move(text);
    }
  }
  parser.diagnostics().ThrowIfAny();
  problem.digest = Sha256OfParts({yaml_text, problem.reference_source, problem.oracle_source.value_or("")});
  return problem;
}

}  // namespace kgrpo::evaluator
