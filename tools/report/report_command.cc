// `kgrpo-host report RUN...`: one HTML file that shows runs, every sample included.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "common/arguments.h"
#include "report/command.h"
#include "report/report.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> folders;
  std::string output;
  bool no_samples = false;
};

int RunReport(const ReportOptions& options) {
  if (!options.output.empty()) RequireWritable("-o", options.output, "report.html");
  std::vector<std::string> left_out;
  std::vector<RunMeasures> runs = ReadRuns(options.folders, &left_out, LookForDamage::kFirst);
  const fs::path output = !options.output.empty()       ? fs::path(options.output)
                          : options.folders.size() == 1 ? fs::path(options.folders.front()) / "report.html"
                                                        : fs::path("report.html");
  const std::string page = MakeReport(std::move(runs), !options.no_samples, left_out);
  WriteFileAtomically(output, page);
  for (const std::string& sentence : left_out) std::fprintf(stderr, "note: %s\n", sentence.c_str());
  std::printf("%s: %.1f MB. Open it in a browser; it needs no other file\n", output.c_str(),
              static_cast<double>(page.size()) / 1e6);
  return kFine;
}

}  // namespace

void AddReportCommand(CLI::App& app, const Globals&, Action* action) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "One page that shows runs, every sample included");
  command->add_option("RUN", options->folders, "Folders of runs, or of an experiment")->required();
  command->add_option("-o,--output", options->output,
                      "The file to write. Default: report.html in the folder, or here where several are given");
  command->add_flag("--no-samples", options->no_samples, "Leave the samples out: a small page");
  command->footer(
      "Examples:\n"
      "  kgrpo-host report runs/quickstart             writes runs/quickstart/report.html\n"
      "  kgrpo-host report runs/ab -o ab.html          all runs of an experiment, seeds as bands");
  command->callback([=] { *action = [=] { return RunReport(*options); }; });
}

}  // namespace kgrpo::cli
