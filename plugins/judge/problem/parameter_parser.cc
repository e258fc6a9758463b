#include "judge/problem/parameter_parser.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kgrpo::evaluator {
namespace {

using Kind = Distribution::Kind;

// By Distribution::Kind.
const std::vector<std::string> kDistributionNames = {"normal",    "uniform",     "integers",    "large_offset",
                                                     "sparse",    "permutation", "offsets",     "constant",
                                                     "denormals", "extremes",    "torchscript", "source"};

// The distributions that each setting belongs to.
const std::map<std::string, std::set<Kind>> kSettings = {{"low", {Kind::kUniform, Kind::kIntegers}},
                                                         {"high", {Kind::kUniform, Kind::kIntegers, Kind::kOffsets}},
                                                         {"mean", {Kind::kNormal}},
                                                         {"deviation", {Kind::kNormal, Kind::kLargeOffset}},
                                                         {"offset", {Kind::kLargeOffset}},
                                                         {"density", {Kind::kSparse}},
                                                         {"ordinary", {Kind::kDenormals}},
                                                         {"infinities", {Kind::kExtremes}},
                                                         {"nans", {Kind::kExtremes}}};

bool NeedsFloating(Kind kind) {
  return kind == Kind::kNormal || kind == Kind::kLargeOffset || kind == Kind::kSparse || kind == Kind::kDenormals ||
         kind == Kind::kExtremes;
}

}  // namespace

const std::string& DistributionName(const Distribution& distribution) {
  return kDistributionNames[static_cast<size_t>(distribution.kind)];
}

struct ParameterParser::Reading {
  const YamlNode& node;
  const std::string& path;
  Parameter parameter;
  std::set<std::string> given;
  std::map<std::string, YamlNode> nodes;  // of keys that are read later than the others
  bool dtype_known = false;

  bool Drawn() const { return parameter.role == Role::kInput || parameter.role == Role::kInout; }
};

// The settings of a distribution, and its name.
ParameterParser::Fields ParameterParser::DistributionFields(Distribution& distribution, size_t& kind) {
  const auto expression = [&](std::optional<Expression>& out) {
    return [this, &out](const YamlNode& n, const std::string& p) {
      Expression parsed;
      if (!ParseExpression(n, p, parsed)) return;
      out = parsed;
      CheckLater(n, p, parsed, false);
    };
  };
  const auto decimal = [&](auto& out) {
    return [this, &out](const YamlNode& n, const std::string& p) {
      if (Number(n, p, number_)) out = number_;
    };
  };
  return {
      {"distribution",
       [this, &distribution, &kind](const YamlNode& n, const std::string& p) {
         Choice(n, p, kDistributionNames, kind);
         distribution.kind = static_cast<Kind>(kind);
       }},
      {"low", expression(distribution.low)},
      {"high", expression(distribution.high)},
      {"mean", decimal(distribution.mean)},
      {"deviation", decimal(distribution.deviation)},
      {"offset", decimal(distribution.offset)},
      {"density", decimal(distribution.density)},
      {"ordinary", decimal(distribution.ordinary)},
      {"infinities",
       [this, &distribution](const YamlNode& n, const std::string& p) { Boolean(n, p, distribution.infinities); }},
      {"nans", [this, &distribution](const YamlNode& n, const std::string& p) { Boolean(n, p, distribution.nans); }},
  };
}

// Checks that the settings suit the distribution, and the distribution the dtype.
void ParameterParser::CheckDistribution(const Reading& reading, const YamlNode& node, const std::string& path,
                                        const std::set<std::string>& given, const Distribution& distribution) {
  const Kind kind = distribution.kind;
  const std::string& name = DistributionName(distribution);
  const DTypeInfo& info = Info(reading.parameter.dtype);
  const bool drawn = reading.Drawn();
  for (const auto& [key, kinds] : kSettings) {
    if (given.count(key) && (!drawn || kinds.count(kind) == 0))
      Add(node, path + "." + key, "has no meaning for " + (drawn ? "the distribution " + name : "this role"));
  }
  if (drawn && (kind == Kind::kUniform || kind == Kind::kIntegers)) {
    for (const char* key : {"low", "high"}) {
      if (!given.count(key)) Add(node, path + "." + key, "is missing: the distribution " + name + " needs it");
    }
  }
  if (drawn && kind == Kind::kOffsets && !given.count("high")) Add(node, path + ".high", "is missing: the last offset");
  if (drawn && reading.dtype_known && info.is_floating && (kind == Kind::kPermutation || kind == Kind::kOffsets))
    Add(node, path + ".distribution", name + " needs an integer dtype");
  if (drawn && reading.dtype_known && !info.is_floating && NeedsFloating(kind)) {
    Add(node, path + ".distribution",
        name + " needs a floating dtype; use integers with low and high for " + info.name);
  }
  if (!(distribution.density > 0 && distribution.density <= 1)) Add(node, path + ".density", "must be in (0, 1]");
  if (!(distribution.ordinary >= 0 && distribution.ordinary <= 1)) Add(node, path + ".ordinary", "must be in [0, 1]");
  if (distribution.deviation && !(*distribution.deviation > 0)) Add(node, path + ".deviation", "must be positive");
}

bool ParameterParser::ParseRange(const YamlNode& node, const std::string& path, bool whole,
                                 std::pair<double, double>* range) {
  if (!node.IsList() || node.values.size() != 2) {
    Add(node, path, "expected the lowest and the highest value, such as [1, 5000]");
    return false;
  }
  if (!Number(node.values[0], path + "[0]", range->first) || !Number(node.values[1], path + "[1]", range->second))
    return false;
  const auto is_whole = [](double value) { return value == std::floor(value); };
  std::string mistake;
  if (range->first > range->second) mistake = "the lowest value is above the highest";
  if (whole && !(is_whole(range->first) && is_whole(range->second))) mistake = "expected whole numbers";
  if (!mistake.empty()) Add(node, path, mistake);
  return mistake.empty();
}

void ParameterParser::ParseValue(Reading& reading) {
  Parameter& parameter = reading.parameter;
  const std::string path = reading.path + ".value";
  const DTypeInfo& info = Info(parameter.dtype);
  if (!reading.given.count("value"))
    return Add(reading.node, path, "is missing: a scalar needs its value, an expression over the sizes");
  if (!ParseExpression(reading.nodes["value"], path, parameter.value) || !reading.dtype_known) return;
  CheckLater(reading.nodes["value"], path, parameter.value, !info.is_floating, [&info](int64_t value) {
    const bool fits = static_cast<double>(value) >= info.lowest && static_cast<double>(value) <= info.highest;
    return fits ? std::string() : std::to_string(value) + " does not fit " + info.name;
  });
  std::pair<double, double> range;
  const std::string range_path = reading.path + ".range";
  if (!reading.given.count("range") || !ParseRange(reading.nodes["range"], range_path, !info.is_floating, &range))
    return;
  if (range.first < info.lowest || range.second > info.highest)
    return Add(reading.nodes["range"], range_path, std::string("does not fit ") + info.name);
  parameter.range = range;
}

void ParameterParser::ParseShape(Reading& reading) {
  const std::string path = reading.path + ".shape";
  if (!reading.given.count("shape"))
    return Add(reading.node, path, "is missing: a tensor needs its shape, a list of expressions");
  const YamlNode shape = reading.nodes["shape"];
  if (!shape.IsList() || shape.values.empty()) return Add(shape, path, "expected a list of at least one dimension");
  for (size_t i = 0; i < shape.values.size(); ++i) {
    const std::string dimension_path = path + "[" + std::to_string(i) + "]";
    Expression parsed;
    if (!ParseExpression(shape.values[i], dimension_path, parsed)) continue;
    reading.parameter.shape.push_back(parsed);
    CheckLater(shape.values[i], dimension_path, parsed, true, [](int64_t value) {
      return value >= 1 ? std::string() : "a dimension must be at least 1, not " + std::to_string(value);
    });
  }
}

void ParameterParser::ParsePitch(Reading& reading) {
  const std::string path = reading.path + ".pitch";
  const YamlNode node = reading.nodes["pitch"];
  Parameter& parameter = reading.parameter;
  Expression pitch;
  if (!ParseExpression(node, path, pitch)) return;
  if (reading.nodes["shape"].values.size() < 2)
    return Add(node, path, "needs a shape of at least two dimensions: it is the distance between rows");
  parameter.pitch = pitch;
  if (parameter.shape.size() != reading.nodes["shape"].values.size()) return;  // reported already
  const std::string row = parameter.shape.back().text();
  const Expression room = Expression::Parse("(" + pitch.text() + ") - (" + row + ")");
  CheckLater(node, path, room, true, [row](int64_t value) {
    return value >= 0 ? std::string() : "is " + std::to_string(-value) + " less than a row's elements, " + row;
  });
}

// A list of names, or of mappings of a distribution and its settings.
void ParameterParser::ParseAlso(Reading& reading) {
  const YamlNode list = reading.nodes["also"];
  const std::string path = reading.path + ".also";
  if (!reading.Drawn()) return Add(list, path, "has no meaning for this role: only inputs and inouts are drawn");
  if (!list.IsList() || list.values.empty()) return Add(list, path, "expected a list of at least one distribution");
  for (size_t i = 0; i < list.values.size(); ++i) {
    const YamlNode item = list.values[i];
    const std::string item_path = path + "[" + std::to_string(i) + "]";
    Distribution distribution;
    size_t kind = 0;
    std::set<std::string> given;
    Fields fields = DistributionFields(distribution, kind);
    fields["value"] = [&](const YamlNode& n, const std::string& p) {
      if (distribution.kind == Kind::kConstant || item.Get("distribution") == nullptr) {
        Number(n, p, distribution.value);
      } else {
        Add(n, p, "has no meaning for the distribution " + DistributionName(distribution));
      }
    };
    if (item.IsMapping()) {
      // Its name first: what `value` means depends on it.
      if (const YamlNode* name = item.Get("distribution")) fields["distribution"](*name, item_path + ".distribution");
      fields["distribution"] = [](const YamlNode&, const std::string&) {};
      if (!Map(item, item_path, fields, {"distribution"}, &given)) continue;
    } else if (!Choice(item, item_path, kDistributionNames, kind)) {
      continue;
    }
    distribution.kind = static_cast<Kind>(kind);
    if (distribution.kind == Kind::kTorchScript || distribution.kind == Kind::kSource)
      Add(item, item_path, DistributionName(distribution) + " can only be a parameter's first distribution");
    CheckDistribution(reading, item, item_path, given, distribution);
    reading.parameter.also.push_back(distribution);
  }
}

void ParameterParser::ParseParameter(const YamlNode& node, const std::string& path) {
  Reading reading{node, path, Parameter(), {}, {}, false};
  Parameter& parameter = reading.parameter;
  size_t role = 0, kind = 0;
  Fields fields = DistributionFields(parameter.distribution, kind);
  fields["name"] = [&](const YamlNode& n, const std::string& p) { Identifier(n, p, parameter.name); };
  fields["list"] = [&](const YamlNode& n, const std::string& p) { Identifier(n, p, parameter.list); };
  fields["role"] = [&](const YamlNode& n, const std::string& p) {
    Choice(n, p, {"input", "output", "inout", "scalar"}, role);
  };
  fields["dtype"] = [&](const YamlNode& n, const std::string& p) {
    size_t index = 0;
    reading.dtype_known = Choice(n, p, DTypeNames(), index);
    if (reading.dtype_known) parameter.dtype = static_cast<DType>(index);
  };
  for (const char* key : {"shape", "value", "range", "pitch", "may_alias", "also"})
    fields[key] = [&reading, key](const YamlNode& n, const std::string&) { reading.nodes[key] = n; };
  if (!Map(node, path, fields, {"name", "role", "dtype"}, &reading.given)) {
    problem_.parameters.push_back(parameter);
    return;
  }
  parameter.role = static_cast<Role>(role);
  std::set<std::string>& given = reading.given;
  if (parameter.role == Role::kScalar) {
    for (const char* key : {"shape", "distribution", "pitch", "list"}) {
      if (given.count(key))
        Add(reading.nodes.count(key) ? reading.nodes[key] : node, path + "." + key,
            "a scalar has no " + std::string(key));
    }
    ParseValue(reading);
  } else {
    ParseShape(reading);
    if (given.count("range")) Add(reading.nodes["range"], path + ".range", "belongs to scalars");
    if (given.count("pitch") && given.count("shape")) ParsePitch(reading);
    if (given.count("value") && !(reading.Drawn() && parameter.distribution.kind == Kind::kConstant)) {
      Add(reading.nodes["value"], path + ".value", "belongs to scalars and to `distribution: constant`");
    } else if (given.count("value")) {
      Number(reading.nodes["value"], path + ".value", parameter.distribution.value);
    }
  }
  if (parameter.role == Role::kOutput && given.count("distribution")) {
    Add(node, path + ".distribution", "an output is not drawn; the evaluator fills it with a poison pattern");
  }
  if (given.count("may_alias") && parameter.role != Role::kOutput)
    Add(reading.nodes["may_alias"], path + ".may_alias", "has no meaning for this role: it belongs to an output");
  CheckDistribution(reading, node, path, given, parameter.distribution);
  if (given.count("also")) ParseAlso(reading);
  problem_.parameters.push_back(std::move(parameter));
}

void ParameterParser::ParseParameters(const YamlNode& node, const std::string& path) {
  if (!node.IsList() || node.values.empty()) return Add(node, path, "expected a list of at least one parameter");
  list_ = node;
  std::set<std::string> names;
  bool writes = false;
  for (size_t i = 0; i < node.values.size(); ++i) {
    const std::string item = path + "[" + std::to_string(i) + "]";
    ParseParameter(node.values[i], item);
    const Parameter& parameter = problem_.parameters.back();
    if (!parameter.name.empty() && !names.insert(parameter.name).second) {
      Add(node.values[i], item + ".name", "the name \"" + parameter.name + "\" is used twice");
    }
    writes = writes || parameter.IsWritten();
  }
  if (!writes) Add(node, path, "no parameter is an output or inout, so there is nothing to judge");
  // An output may come before the input whose memory it may have.
  for (size_t i = 0; i < node.values.size(); ++i) {
    const YamlNode* name = node.values[i].Get("may_alias");
    if (name == nullptr || problem_.parameters[i].role != Role::kOutput) continue;
    const std::string name_path = path + "[" + std::to_string(i) + "].may_alias";
    std::string text;
    if (!Text(*name, name_path, text)) continue;
    std::vector<std::string> inputs;
    for (size_t k = 0; k < problem_.parameters.size(); ++k) {
      if (problem_.parameters[k].role != Role::kInput) continue;
      inputs.push_back(problem_.parameters[k].name);
      if (inputs.back() == text) problem_.parameters[i].may_alias = k;
    }
    if (!problem_.parameters[i].may_alias)
      Add(*name, name_path, "\"" + text + "\" is not the name of an input" + DidYouMean(text, inputs));
  }
}

}  // namespace kgrpo::evaluator
