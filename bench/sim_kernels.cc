#include "sim_kernels.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/cache_folder.h"
#include "common/variants.h"

namespace kgrpo::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t kExplored = 160;  // kernels looked at for a spread

// `count` of a reference's variants, evenly from the first to the last of those explored.
std::vector<std::string> Spread(const std::string& reference, size_t count) {
  const std::vector<std::string> found = Variants(reference, count == 0 ? 0 : kExplored);
  std::vector<std::string> chosen;
  const size_t wanted = std::min(count, found.size());
  for (size_t i = 0; i < wanted; ++i) chosen.push_back(found[(2 * i + 1) * found.size() / (2 * wanted)]);
  return chosen;
}

}  // namespace

const evaluator_sim::OpenProblem* SimKernels::Open(const std::string& folder) {
  std::unique_ptr<evaluator_sim::OpenProblem>& open = problems_[fs::weakly_canonical(folder).string()];
  if (open == nullptr) open = std::make_unique<evaluator_sim::OpenProblem>(folder, CacheFolder("bench-sim"));
  return open.get();
}

SimKernels::SimKernels(const std::vector<std::string>& problems, size_t variants, const std::string& folder) {
  for (const std::string& path : problems) {
    const evaluator_sim::OpenProblem* open = Open(path);
    const evaluator::Problem& problem = open->problem;
    kernels_.push_back({open, problem.name, problem.reference_source});
    for (const std::string& source : Spread(problem.reference_source, variants))
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

std::string CsvName(std::string name) {
  std::replace(name.begin(), name.end(), ',', ';');
  return name;
}

}  // namespace kgrpo::bench
