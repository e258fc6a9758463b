#include "common/variants.h"

#include <set>

#include "coder_offline/coder.h"
#include "coder_offline/techniques.h"

namespace kgrpo::bench {

std::vector<std::string> Variants(const std::string& reference, size_t least) {
  std::vector<std::string> found = {reference};
  std::set<std::string> seen = {reference};
  for (size_t next = 0; next < found.size() && found.size() <= least; ++next) {
    const std::string source = found[next];  // a copy: `found` grows
    for (const std::string& suggestion : coder_offline::Suggestions()) {
      const auto answer = coder_offline::Implement(source, suggestion);
      if (answer.status == coder_offline::Status::kOk && seen.insert(answer.source).second)
        found.push_back(answer.source);
    }
  }
  found.erase(found.begin());
  return found;
}

std::string ScheduleOf(const std::string& source) {
  const std::string mark = "// schedule: ";
  const size_t at = source.find(mark);
  return at == std::string::npos ? "" : source.substr(at + mark.size(), source.find('\n', at) - at - mark.size());
}

}  // namespace kgrpo::bench
