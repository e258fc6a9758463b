#include "sim_kernels.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "coder_offline/coder.h"
#include "coder_offline/techniques.h"

namespace kgrpo::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t kExplored = 160;  // kernels looked at for a spread

// What the kernel of a source is called after the techniques that coder_offline notes in it.
std::string ScheduleOf(const std::string& source) {
  const std::string mark = "// schedule: ";
  const size_t at = source.find(mark);
  return at == std::string::npos ? "" : source.substr(at + mark.size(), source.find('\n', at) - at - mark.size());
}

// `count` kernels that suggestions lead to from the reference, evenly from the first to the last of those explored
// breadth first: later ones have more techniques.
std::vector<std::string> Variants(const std::string& reference, size_t count) {
  std::vector<std::string> found;
  std::set<std::string> seen = {reference};
  std::deque<std::string> waiting = {reference};
  while (count != 0 && !waiting.empty() && found.size() < kExplored) {
    const std::string source = waiting.front();
    waiting.pop_front();
    for (const std::string& suggestion : coder_offline::Suggestions()) {
      const auto answer = coder_offline::Implement(source, suggestion);
      if (answer.status != coder_offline::Status::kOk || !seen.insert(answer.source).second) continue;
      found.push_back(answer.source);
      waiting.push_back(answer.source);
    }
  }
  std::vector<std::string> chosen;
  const size_t wanted = std::min(count, found.size());
  for (size_t i = 0; i < wanted; ++i) chosen.push_back(found[(2 * i + 1) * found.size() / (2 * wanted)]);
  return chosen;
}

}  // namespace

const evaluator_sim::OpenProblem* SimKernels::Open(const std::string& folder) {
  std::unique_ptr<evaluator_sim::OpenProblem>& open = problems_[fs::weakly_canonical(folder).string()];
  if (open == nullptr) open = std::make_unique<evaluator_sim::OpenProblem>(folder, CacheFolder());
  return open.get();
}

SimKernels::SimKernels(const std::vector<std::string>& problems, size_t variants, const std::string& folder) {
  for (const std::string& path : problems) {
    const evaluator_sim::OpenProblem* open = Open(path);
    const evaluator::Problem& problem = open->problem();
    kernels_.push_back({open, problem.name, problem.reference_source});
    for (const std::string& source : Variants(problem.reference_source, variants))
      kernels_.push_back({open, problem.name + "/" + ScheduleOf(source), source});
  }
  if (folder.empty()) return;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".cu") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ostringstream source;
    source << std::ifstream(file).rdbuf();
    const std::string mark = "// problem: ", text = source.str();
    if (!text.starts_with(mark)) continue;
    kernels_.push_back({Open(text.substr(mark.size(), text.find('\n') - mark.size())),
                        fs::path(folder).filename().string() + "/" + file.stem().string(), text});
  }
}

std::string CacheFolder() {
  const fs::path folder = fs::temp_directory_path() / "kgrpo-bench-sim";
  fs::create_directories(folder);
  return folder.string();
}

std::string CsvName(std::string name) {
  std::replace(name.begin(), name.end(), ',', ';');
  return name;
}

}  // namespace kgrpo::bench
