#include "report/export.h"

#include <kgrpo/support/dump_json.h>

#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <string_view>

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

struct Cell {
  ExportColumn column;
  Json value;
};

Json Messages(const std::vector<ChatMessage>& messages) {
  Json json = Json::array();
  for (const ChatMessage& message : messages) json.push_back({{"role", message.role}, {"content", message.content}});
  return json;
}

Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// Makes a cell of each field that it visits. Of an absent group, numbers are null and texts empty.
class Cells {
 public:
  void operator()(const char* name, bool value) { Add(name, "bool", value); }
  void operator()(const char* name, std::unsigned_integral auto value) {
    Add(name, "int64", absent_ ? Json() : Json(value));
  }
  void operator()(const char* name, double value) { Add(name, "float64", absent_ ? Json() : Finite(value)); }
  void operator()(const char* name, const std::string& text) { Add(name, "string", text); }
  void operator()(const char* name, kgrpo_coder_outcome value) { Add(name, "string", CoderOutcomeName(value)); }
  void operator()(const char* name, const std::vector<int32_t>& ids) { Add(name, "list:int32", ids); }
  void operator()(const char* name, const std::vector<float>& values) { Add(name, "list:float32", values); }
  void operator()(const char* name, const std::vector<ChatMessage>& messages) {
    Add(name, "messages", Messages(messages));
  }
  void operator()(KernelText field, const std::string& text) { (*this)(field.name, text); }
  void operator()(Digits field, uint64_t value) { (*this)(field.name, std::to_string(value)); }
  // Left out: lists of another form in each row. reward_parts is added later.
  void operator()(const char*, const std::vector<Metric>&) {}
  void operator()(const char*, const std::vector<Remark>&) {}
  void Group(const std::optional<RoundFailure>&, const auto&) {}  // a failed round is not exported
  template <typename T>
  void Group(const std::optional<T>& group, const auto& fields) {
    absent_ = !group;
    const T empty{};
    fields(group ? *group : empty);
    absent_ = false;
  }

  std::vector<Cell> cells;

 private:
  void Add(const char* name, const char* type, Json value) { cells.push_back({{name, type}, std::move(value)}); }

  bool absent_ = false;
};

std::vector<Cell> CellsOf(uint64_t step, const TrajectoryRecord& trajectory, const RoundRecord& round) {
  Cells row;
  row("step", step);
  row("trajectory", trajectory.trajectory);
  row("rounds", trajectory.rounds);
  row("problem", trajectory.problem_name);
  row("family", trajectory.family);
  row("prompted_as", trajectory.prompted_as);
  row("baseline_seconds", trajectory.baseline_seconds);
  VisitFields(round, row);
  row("completion", std::vector<ChatMessage>{{"assistant", round.suggestion}});
  return std::move(row.cells);
}

}  // namespace

const std::vector<ExportColumn>& ExportColumns() {
  static const std::vector<ExportColumn> columns = [] {
    std::vector<ExportColumn> list;
    for (const Cell& cell : CellsOf(0, {}, {})) list.push_back(cell.column);
    return list;
  }();
  return columns;
}

uint64_t ExportRounds(RunDatabase& database, Purpose purpose, const std::set<std::string>& parts,
                      const std::function<void(const std::string& line)>& write) {
  uint64_t count = 0;
  for (const uint64_t step : database.StepsWithRounds(purpose)) {
    for (const TrajectoryRecord& trajectory : database.ReadStep(purpose, step)) {
      for (const RoundRecord& round : trajectory.rounds_done) {
        Json row;
        for (Cell& cell : CellsOf(step, trajectory, round)) row[cell.column.name] = std::move(cell.value);
        for (const char* time : {"seconds", "seconds_low", "seconds_high"})
          if (!row["correct"].get<bool>()) row[time] = nullptr;  // the time of a kernel that does not count
        Json& found = row["reward_parts"] = Json::object();
        for (const std::string& part : parts) found[part] = nullptr;
        for (const Metric& part : round.reward_parts) found[part.name] = Finite(part.value);
        write(DumpJson(row));
        ++count;
      }
    }
  }
  return count;
}

std::string DatasetCard(const std::string& run, const std::vector<std::string>& splits,
                        const std::set<std::string>& parts) {
  std::string card = "---\nconfigs:\n- config_name: default\n  data_files:\n";
  for (const std::string& split : splits) card += "  - split: " + split + "\n    path: " + split + ".jsonl\n";
  card += "dataset_info:\n  config_name: default\n  features:\n";
  for (const ExportColumn& column : ExportColumns()) {
    const std::string_view type = column.type;
    card += "  - name: " + std::string(column.name) + "\n";
    if (type == "messages") {
      card += "    list:\n    - name: role\n      dtype: string\n    - name: content\n      dtype: string\n";
    } else if (type.starts_with("list:")) {
      card += "    list: " + std::string(type.substr(5)) + "\n";
    } else {
      card += "    dtype: " + std::string(type) + "\n";
    }
  }
  if (!parts.empty()) {
    card += "  - name: reward_parts\n    struct:\n";
    for (const std::string& part : parts) card += "    - name: " + Json(part).dump() + "\n      dtype: float64\n";
  }
  return card + "---\n\nThe samples of the run " + run +
         ", one row a round, written by `kgrpo-host export`. Open it with `datasets.load_dataset(\"FOLDER\")`.\n";
}

}  // namespace kgrpo
