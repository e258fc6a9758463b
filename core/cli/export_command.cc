// `kgrpo-host export RUN`: a run's samples as files that other tools open.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "store/database.h"
#include "store/export.h"
#include "store/files.h"
#include "store/readable.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string run, output, format = "jsonl", purpose = "train";
};

// One purpose's rounds as a file, which is there whole or not at all. Returns their number.
uint64_t WriteLines(Database& database, const std::string& purpose, const std::set<std::string>& parts,
                    const fs::path& file) {
  fs::path partial = file;
  partial += ".partial";
  std::ofstream stream(partial, std::ios::binary | std::ios::trunc);
  const uint64_t count =
      ExportRounds(database, purpose, parts, [&](const std::string& line) { stream << line << '\n'; });
  stream.close();
  if (!stream) {
    fs::remove(partial);
    throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + file.string() + ": is there a folder, and room?");
  }
  fs::rename(partial, file);
  return count;
}

uint64_t CountOf(Database& database, const std::string& purpose) {
  Statement select(database, "SELECT count(*) FROM rounds WHERE purpose = ?");
  select << purpose;
  return select.Step() ? static_cast<uint64_t>(select.Integer(0)) : 0;
}

int RunExport(const ExportOptions& options) {
  const fs::path folder = options.run, file = folder / "run.sqlite";
  if (fs::exists(folder / "experiment.json"))
    throw Error(KGRPO_ERROR_INVALID, options.run + " holds the runs of an experiment: name one of them");
  if (!fs::exists(file))
    throw Error(KGRPO_ERROR_NOT_FOUND, "there is no run in " + options.run + ": it has no run.sqlite");
  RequireRecord(folder);
  Database database(file, Database::ToRead(file));
  const std::set<std::string> parts = ExportedParts(database);
  if (options.format == "jsonl") {
    const auto print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
    if (CountOf(database, options.purpose) == 0)
      throw Error(KGRPO_ERROR_NOT_FOUND, options.run + " holds no rounds of \"" + options.purpose + "\"");
    if (options.output.empty() || options.output == "-") {
      ExportRounds(database, options.purpose, parts, print);
      return kFine;
    }
    const uint64_t count = WriteLines(database, options.purpose, parts, options.output);
    std::printf("%s: %llu rounds\n", options.output.c_str(), static_cast<unsigned long long>(count));
    return kFine;
  }
  const fs::path output = options.output.empty() ? folder / "dataset" : fs::path(options.output);
  fs::create_directories(output);
  std::vector<std::string> splits;
  for (const char* purpose : {"train", "heldout", "demonstration"}) {
    if (CountOf(database, purpose) == 0) continue;
    const fs::path lines = output / (std::string(purpose) + ".jsonl");
    const uint64_t count = WriteLines(database, purpose, parts, lines);
    std::printf("%s: %llu rounds\n", lines.c_str(), static_cast<unsigned long long>(count));
    splits.emplace_back(purpose);
  }
  if (splits.empty()) throw Error(KGRPO_ERROR_NOT_FOUND, options.run + " holds no rounds yet");
  WriteFileAtomically(output / "README.md",
                      DatasetCard((folder / "").parent_path().filename().string(), splits, parts));
  std::printf("open it: datasets.load_dataset(\"%s\")\n", output.c_str());
  return kFine;
}

}  // namespace

void AddExportCommand(CLI::App& app, const Globals&, Action* action) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Samples of a run as files that other tools open");
  command->add_option("RUN", options->run, "The run's folder")->required();
  command->add_option("--format", options->format, "jsonl: lines; datasets: a folder for datasets.load_dataset")
      ->check(CLI::IsMember({"jsonl", "datasets"}))
      ->capture_default_str();
  command
      ->add_option("--purpose", options->purpose,
                   "With jsonl: rounds of training, held-out episodes, or demonstrations")
      ->check(CLI::IsMember({"train", "heldout", "demonstration"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output,
                      "jsonl: a file (default: standard output); datasets: a folder (default: RUN/dataset)");
  command->footer(
      "Examples:\n"
      "  kgrpo-host export runs/quickstart > samples.jsonl\n"
      "  kgrpo-host export runs/quickstart --format datasets -o my_samples");
  command->callback([=] { *action = [=] { return RunExport(*options); }; });
}

}  // namespace kgrpo::cli
