// `kgrpo-host export RUN`: a run's samples as files that other tools open.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "cli/become_program.h"
#include "common/arguments.h"
#include "report/command.h"
#include "report/export.h"
#include "store/database.h"
#include "store/readable.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string run, output, format = "jsonl", purpose;
};

// Writes one purpose's rounds to a file, atomically. Returns their number.
uint64_t WriteLines(RunDatabase& database, Purpose purpose, const std::set<std::string>& parts, const fs::path& file) {
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

// Python program: reads JSON lines, writes them as a table with typed columns, and deletes the file of lines. The
// arguments: lines, table, then TYPE:NAME for each column, part:NAME for each of reward_parts.
constexpr const char* kToParquet = R"py(
import json, os, sys
lines, output = sys.argv[1:3]
try:
    import pyarrow, pyarrow.parquet
except ImportError as error:
    os.remove(lines)
    sys.exit(f"error: parquet needs pyarrow, and {sys.executable} has none ({error}): {sys.executable} -m pip install "
             "pyarrow, or name another Python by KGRPO_PYTHON. --format jsonl and datasets need none")
text = pyarrow.string()
message = pyarrow.struct([("role", text), ("content", text)])
types = {"int64": pyarrow.int64(), "float64": pyarrow.float64(), "string": text, "bool": pyarrow.bool_(),
         "messages": pyarrow.list_(message), "int32s": pyarrow.list_(pyarrow.int32()),
         "float32s": pyarrow.list_(pyarrow.float32())}
columns = [word.split(":", 1) for word in sys.argv[3:]]
fields = [(name, types[kind]) for kind, name in columns if kind != "part"]
parts = [(name, pyarrow.float64()) for kind, name in columns if kind == "part"]
schema = pyarrow.schema(fields + ([("reward_parts", pyarrow.struct(parts))] if parts else []))
count = 0
try:
    with open(lines, encoding="utf-8") as stream, pyarrow.parquet.ParquetWriter(output + ".partial", schema) as writer:
        while True:
            rows = [json.loads(line) for _, line in zip(range(1000), stream)]
            if not rows:
                break
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
            count += len(rows)
    os.replace(output + ".partial", output)
finally:
    os.remove(lines)
print(f"{output}: {count} rounds")
)py";

// Replaces this process by Python, which converts the lines.
int BecomeConverter(const fs::path& lines, const fs::path& output, const std::set<std::string>& parts) {
  std::vector<std::string> words = {ChosenPython(), "-c", kToParquet, lines.string(), output.string()};
  for (const ExportColumn& column : ExportColumns()) {
    const std::string type = column.type;
    words.push_back((type.starts_with("list:") ? type.substr(5) + "s" : type) + ":" + column.name);
  }
  for (const std::string& part : parts) words.push_back("part:" + part);
  try {
    BecomeProgram(std::move(words), "parquet is written by Python: name one that has pyarrow by KGRPO_PYTHON");
  } catch (const Error&) {
    fs::remove(lines);
    throw;
  }
}

std::vector<std::string> PurposeNames() {
  std::vector<std::string> names;
  names.reserve(std::size(kPurposes));
  for (const Purpose purpose : kPurposes) names.emplace_back(PurposeName(purpose));
  return names;
}

Purpose PurposeOf(const std::string& name) { return *std::ranges::find(kPurposes, name, PurposeName); }

int RunExport(ExportOptions options) {
  const fs::path folder = options.run;
  if (fs::exists(folder / "experiment.json"))
    throw Error(KGRPO_ERROR_INVALID, options.run + " holds the runs of an experiment: name one of them");
  RunDatabase database = OpenRecord(folder);
  const bool every = options.purpose.empty();  // each purpose, for --format datasets
  if (every) options.purpose = database.Get("purpose").value_or(PurposeName(Purpose::kTrain));
  if (!options.output.empty() && options.output != "-" && options.format != "datasets")
    RequireWritable("--output", options.output, options.purpose + "." + options.format);
  const std::set<std::string> parts = database.RewardParts();
  const Purpose purpose = PurposeOf(options.purpose);
  if ((options.format != "datasets" || !every) && database.StepsWithRounds(purpose).empty())
    throw Error(KGRPO_ERROR_NOT_FOUND, options.run + " has no rounds of \"" + options.purpose + "\"");
  if (options.format == "parquet") {
    const fs::path output = options.output.empty() ? folder / (options.purpose + ".parquet") : fs::path(options.output);
    const fs::path lines = output.string() + ".jsonl";
    WriteLines(database, purpose, parts, lines);
    return BecomeConverter(lines, output, parts);
  }
  if (options.format == "jsonl") {
    const auto print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
    if (options.output.empty() || options.output == "-") {
      ExportRounds(database, purpose, parts, print);
      return kFine;
    }
    const uint64_t count = WriteLines(database, purpose, parts, options.output);
    std::printf("%s: %llu rounds\n", options.output.c_str(), static_cast<unsigned long long>(count));
    return kFine;
  }
  const fs::path output = options.output.empty() ? folder / "dataset" : fs::path(options.output);
  fs::create_directories(output);
  std::vector<std::string> splits;
  for (const Purpose split : kPurposes) {
    if ((!every && split != purpose) || database.StepsWithRounds(split).empty()) continue;
    const fs::path lines = output / (std::string(PurposeName(split)) + ".jsonl");
    const uint64_t count = WriteLines(database, split, parts, lines);
    std::printf("%s: %llu rounds\n", lines.c_str(), static_cast<unsigned long long>(count));
    splits.emplace_back(PurposeName(split));
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
  command
      ->add_option("--format", options->format,
                   "jsonl: lines; datasets: a folder for datasets.load_dataset; parquet: a table (needs a Python with "
                   "pyarrow: KGRPO_PYTHON, else python3)")
      ->check(CLI::IsMember({"jsonl", "datasets", "parquet"}))
      ->capture_default_str();
  command
      ->add_option(
          "--purpose", options->purpose,
          "Rounds of this purpose (default: the run's own, which is training, an evaluation, or a search; with "
          "datasets: all)")
      ->check(CLI::IsMember(PurposeNames()));
  command->add_option("-o,--output", options->output,
                      "jsonl: a file (default: standard output); datasets: a folder (default: RUN/dataset); "
                      "parquet: a file (default: RUN/PURPOSE.parquet)");
  command->footer(
      "Examples:\n"
      "  kgrpo-host export runs/quickstart > samples.jsonl\n"
      "  kgrpo-host export runs/quickstart --format datasets -o my_samples");
  command->callback([=] { *action = [=] { return RunExport(*options); }; });
}

}  // namespace kgrpo::cli
