#include "config/brackets.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>
#include <vector>

namespace kgrpo {
namespace {

// Remembers the lists and mappings that have begun and not ended.
class OpenContainers : public YAML::EventHandler {
 public:
  const std::vector<YAML::Mark>& marks() const { return marks_; }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    marks_.push_back(mark);
  }
  void OnSequenceEnd() override { marks_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    marks_.push_back(mark);
  }
  void OnMapEnd() override { marks_.pop_back(); }
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}

 private:
  std::vector<YAML::Mark> marks_;
};

}  // namespace

std::optional<YAML::Mark> OpenBracket(const std::string& yaml) {
  OpenContainers open;
  std::istringstream stream(yaml);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(open)) {
    }
  } catch (const YAML::Exception&) {
    // Only the containers open at the error matter, not the error.
  }
  for (auto mark = open.marks().rbegin(); mark != open.marks().rend(); ++mark) {
    const auto at = static_cast<size_t>(mark->pos);
    if (at < yaml.size() && (yaml[at] == '{' || yaml[at] == '[')) return *mark;  // block style has no bracket
  }
  return {};
}

}  // namespace kgrpo
