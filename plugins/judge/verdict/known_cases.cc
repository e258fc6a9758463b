#include "judge/verdict/known_cases.h"

#include <sstream>

namespace kgrpo::evaluator {
namespace {

// What a case's inputs follow from.
std::string NameOf(const CorrectnessCase& one) {
  std::ostringstream name;
  name << SizeText(*one.size) << " " << one.key << " " << one.variant << " " << static_cast<int>(one.values) << " "
       << one.parameter << " " << one.aliased << " " << std::hexfloat << one.scalars;
  if (one.alternative) name << " " << one.alternative->parameter << " " << one.alternative->index;
  return name.str();
}

size_t BytesOf(const std::vector<double>& values) { return values.size() * sizeof(double); }

size_t BytesOf(const std::vector<Expected>& values) {
  size_t bytes = 0;
  for (const Expected& one : values) bytes += sizeof one + sizeof(double) * (one.reals.size() + one.wholes.size());
  return bytes;
}

}  // namespace

template <typename Value>
Value KnownCases::Get(const CorrectnessCase& one, std::optional<Value> Known::*member,
                      const std::function<Value()>& compute) {
  const std::string name = NameOf(one);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = known_.find(name);
    if (found != known_.end() && found->second.*member) return *(found->second.*member);
  }
  Value value = compute();
  const size_t bytes = BytesOf(value) + name.size();
  if (bytes > kMostOfCase) return value;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (known_.size() >= kMostCases) known_.clear();  // of evaluations with other keys
  if (known_.empty() || bytes_ + bytes > kMostBytes) {
    for (auto& [other, known] : known_) known.outputs.reset();  // scales are short
    bytes_ = 0;
  }
  std::optional<Value>& kept = known_[name].*member;
  if (!kept) bytes_ += bytes;
  kept = value;
  return value;
}

std::vector<Expected> KnownCases::Outputs(const CorrectnessCase& one,
                                          const std::function<std::vector<Expected>()>& compute) {
  return Get(one, &Known::outputs, compute);
}

std::vector<double> KnownCases::Scales(const CorrectnessCase& one,
                                       const std::function<std::vector<double>()>& compute) {
  return Get(one, &Known::scales, compute);
}

}  // namespace kgrpo::evaluator
