// Properties over all shipped problems: the coder reproduces their references, any sequence of suggestions is safe, and
// the results are read again as the same schedule. Tests the skeletons, program.cc and problems/.
#include "coder_offline/coder.h"
#include "coder_offline/program.h"
#include "coder_offline/skeleton.h"
#include "coder_offline/techniques.h"
#include "shipped.h"
#include "test.h"

namespace kgrpo::coder_offline {
namespace {

class EachProblem : public testing::TestWithParam<std::string> {};

TEST_P(EachProblem, ReferenceIsWhatTheCoderWrites) {
  std::string why;
  EXPECT_EQ(Rewrite(Reference(GetParam()), &why), Reference(GetParam())) << why;
}

// Braces, brackets and parentheses close in order, and no placeholder of a template is left.
void ExpectWellFormed(const std::string& source) {
  std::string open;
  for (const char c : source) {
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c == ')' || c == ']' || c == '}') {
      ASSERT_FALSE(open.empty());
      const char other = open.back();
      ASSERT_TRUE((other == '(' && c == ')') || (other == '[' && c == ']') || (other == '{' && c == '}')) << source;
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(source.find('@'), std::string::npos) << source;
}

TEST_P(EachProblem, AnySequenceOfSuggestionsIsSafeAndReadsBack) {
  std::mt19937 random(7);  // its sequence is part of the standard, so every machine walks the same paths
  for (int walk = 0; walk < 60; ++walk) {
    std::string source = Reference(GetParam());
    for (int round = 0; round < 8; ++round) {
      std::string text = Suggestions()[random() % Suggestions().size()];
      if (random() % 3 == 0) text += " and " + Suggestions()[random() % Suggestions().size()];
      const Answer answer = Implement(source, text);
      if (answer.status != Status::kOk) {
        ASSERT_EQ(answer.status, Status::kNotApplicable);
        ASSERT_TRUE(answer.source.empty());
        ASSERT_FALSE(answer.message.empty());
        continue;
      }
      ASSERT_NE(answer.source, source) << text;
      ASSERT_FALSE(answer.summary.empty());
      std::string why;
      ASSERT_EQ(Rewrite(answer.source, &why), answer.source) << text << ": " << why;
      ExpectWellFormed(answer.source);
      source = answer.source;
    }
  }
}

TEST_P(EachProblem, TheProblemsOwnPartStaysAsItIs) {
  std::string why;
  const auto before = ParseProgram(Reference(GetParam()), &why);
  ASSERT_TRUE(before) << why;
  for (const std::string& suggestion : Suggestions()) {
    const Answer answer = Implement(Reference(GetParam()), suggestion);
    if (answer.status != Status::kOk || suggestion == "fast intrinsics") continue;
    const auto after = ParseProgram(answer.source, &why);
    ASSERT_TRUE(after) << why;
    EXPECT_EQ(after->problem, before->problem) << suggestion;
    EXPECT_EQ(after->heading, before->heading) << suggestion;
  }
}

TEST_P(EachProblem, EverySuggestionIsEitherAppliedOrRefusedWithAReason) {
  int applied = 0;
  for (const std::string& suggestion : Suggestions()) {
    const Answer answer = Implement(Reference(GetParam()), suggestion);
    ASSERT_NE(answer.status, Status::kUnclear);
    if (answer.status == Status::kOk) ++applied;
    if (answer.status == Status::kNotApplicable) {
      EXPECT_GT(answer.message.size(), std::string("not applicable: ").size() + 10) << suggestion;
    }
  }
  EXPECT_GE(applied, 4);
  EXPECT_LE(applied, 16);
}

INSTANTIATE_TEST_SUITE_P(Shipped, EachProblem, testing::ValuesIn(ShippedProblems()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

TEST(Problems, CoverEightFamiliesInBothSplits) {
  std::map<std::string, std::set<std::string>> splits;
  const auto names = ShippedProblems();
  EXPECT_GE(names.size(), 24u);
  const auto field = [](const std::string& yaml, const std::string& key) {
    const size_t at = yaml.find("\n" + key + ": ");
    return yaml.substr(at + key.size() + 3, yaml.find('\n', at + 1) - at - key.size() - 3);
  };
  for (const std::string& name : names) {
    const std::string yaml = ReadText(std::filesystem::path(KGRPO_SOURCE_DIR) / "problems" / name / "problem.yaml");
    splits[field(yaml, "family")].insert(field(yaml, "split"));
  }
  EXPECT_GE(splits.size(), 8u);
  for (const auto& [family, present] : splits)
    EXPECT_EQ(present.size(), 2u) << family << " needs a train and a held-out problem";
}

TEST(Skeletons, EveryTechniqueOfEverySkeletonIsInTheSuggestions) {
  std::set<Technique> suggested;
  for (const std::string& suggestion : Suggestions()) suggested.insert(Understand(suggestion).at(0).technique);
  for (const Skeleton* skeleton : AllSkeletons()) {
    EXPECT_EQ(FindSkeleton(skeleton->name), skeleton);
    std::set<std::string> options;
    for (const Rule& rule : skeleton->rules) {
      EXPECT_TRUE(suggested.count(rule.technique)) << NameOf(rule.technique);
      EXPECT_TRUE(options.insert(std::string(OptionOf(rule.technique))).second)
          << skeleton->name << " " << OptionOf(rule.technique);
    }
    for (const Technique technique : suggested) EXPECT_FALSE(skeleton->WhyNever(technique).empty());
  }
}

}  // namespace
}  // namespace kgrpo::coder_offline
