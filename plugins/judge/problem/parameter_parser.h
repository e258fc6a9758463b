// Reads the `parameters` of a problem.yaml: roles, shapes, pitches, what they are drawn from. A base of the parser of
// the whole file (problem_parser.cc).
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "judge/problem/expression_reader.h"

namespace kgrpo::evaluator {

class ParameterParser : public ExpressionReader {
 public:
  using ExpressionReader::ExpressionReader;

 protected:
  // Reads [low, high], two numbers in this order, whole ones if `whole`; returns false after noting a mistake.
  bool ParseRange(const YamlNode& node, const std::string& path, bool whole, std::pair<double, double>* range);

  void ParseParameters(const YamlNode& node, const std::string& path);

  // Checks that need all parameters together, at sizes that were read without a mistake.
  void CheckParameters();

 private:
  // A parameter while it is read: `given` are its keys.
  struct Reading;

  void ParseParameter(const YamlNode& node, const std::string& path);
  void ParseValue(Reading& reading);
  void ParseShape(Reading& reading);
  void ParsePitch(Reading& reading);
  void ParseAlso(Reading& reading);
  Fields DistributionFields(Distribution& distribution, size_t& kind);
  void CheckDistribution(const Reading& reading, const YamlNode& node, const std::string& path,
                         const std::set<std::string>& given, const Distribution& distribution);
  void CheckAlias(size_t output);
  void CheckList(size_t tensor);
  void CheckPitchIsPassed(size_t tensor);
  void CheckBytes(size_t tensor);

  YamlNode list_;
  double number_ = 0;
};

}  // namespace kgrpo::evaluator
