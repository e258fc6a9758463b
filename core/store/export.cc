#include "store/export.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "store/json.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

Json Messages(const std::vector<ChatMessage>& messages) {
  Json json = Json::array();
  for (const ChatMessage& message : messages) json.push_back({{"role", message.role}, {"content", message.content}});
  return json;
}

Json RealOrNull(const Statement& select, int column) {
  if (select.IsNull(column) || !std::isfinite(select.Real(column))) return nullptr;
  return select.Real(column);
}

template <typename T>
Json ListOf(const Statement& select, int column) {
  Json list = Json::array();
  for (const T value : select.Values<T>(column)) list.push_back(value);
  return list;
}

}  // namespace

const std::vector<ExportColumn>& ExportColumns() {
  static const std::vector<ExportColumn> columns = {
      {"step", "int64"},
      {"trajectory", "int64"},
      {"round", "int64"},
      {"rounds", "int64"},
      {"problem", "string"},
      {"family", "string"},
      {"prompted_as", "string"},
      {"prompt", "messages"},
      {"completion", "messages"},
      {"prompt_ids", "list:int32"},
      {"completion_ids", "list:int32"},
      {"logprobs", "list:float32"},
      {"truncated", "bool"},
      {"reward", "float64"},
      {"idle_reward", "float64"},
      {"return", "float64"},
      {"advantage", "float64"},
      {"coder_outcome", "string"},
      {"coder_summary", "string"},
      {"coder_cost", "float64"},
      {"verdict", "string"},
      {"correct", "bool"},
      {"seconds", "float64"},
      {"baseline_seconds", "float64"},
      {"speedup", "float64"},
      {"modelled", "bool"},
      {"diagnosis", "string"},
      {"code_b", "string"},
      {"code_c", "string"},
  };
  return columns;
}

std::set<std::string> ExportedParts(Database& database) {
  std::set<std::string> parts;
  // A reward has a handful of forms, rounds are many.
  Statement select(database, "SELECT DISTINCT value.key FROM rounds, json_each(reward_parts) AS value");
  while (select.Step()) parts.insert(select.Text(0));
  return parts;
}

uint64_t ExportRounds(Database& database, const std::string& purpose, const std::set<std::string>& parts,
                      const std::function<void(const std::string& line)>& write) {
  const bool outcomes = purpose == "train" && database.HasTable("sample_outcomes");
  Statement select(
      database,
      std::string(
          "SELECT r.step, r.trajectory, r.round, t.problem_name, t.family, t.prompted_as, r.prompt, r.suggestion, "
          "r.prompt_ids, r.completion_ids, r.logprobs, r.truncated, r.reward, r.idle_reward, ") +
          (outcomes ? "o.returned, o.advantage, " : "NULL, NULL, ") +
          "r.coder_outcome, r.coder_summary, r.coder_cost, e.verdict, coalesce(e.correct, 0), e.seconds, "
          "t.baseline_seconds, r.speedup, coalesce(e.modelled, 0), e.diagnosis, "
          "(SELECT text FROM sources WHERE hash = code_b), (SELECT text FROM sources WHERE hash = code_c), "
          "r.reward_parts, t.rounds "
          "FROM rounds r JOIN trajectories t USING(purpose, step, trajectory) "
          "LEFT JOIN evaluations e USING(purpose, step, trajectory, round) " +
          (outcomes
               ? "LEFT JOIN sample_outcomes o ON o.step = r.step AND o.trajectory = r.trajectory AND o.round = r.round "
               : "") +
          "WHERE r.purpose = ? ORDER BY r.step, r.trajectory, r.round");
  select << purpose;
  uint64_t count = 0;
  for (; select.Step(); ++count) {
    const bool correct = select.Integer(20) != 0;
    Json row;
    row["step"] = select.Integer(0);
    row["trajectory"] = select.Integer(1);
    row["round"] = select.Integer(2);
    row["rounds"] = select.Integer(29);
    row["problem"] = select.Text(3);
    row["family"] = select.Text(4);
    row["prompted_as"] = select.Text(5);
    row["prompt"] = Messages(MessagesFromJson(select.Text(6)));
    row["completion"] = Messages({{"assistant", select.Text(7)}});
    row["prompt_ids"] = ListOf<int32_t>(select, 8);
    row["completion_ids"] = ListOf<int32_t>(select, 9);
    row["logprobs"] = ListOf<float>(select, 10);
    row["truncated"] = select.Integer(11) != 0;
    row["reward"] = select.Real(12);
    row["idle_reward"] = select.Real(13);
    row["return"] = RealOrNull(select, 14);
    row["advantage"] = RealOrNull(select, 15);
    row["coder_outcome"] = CoderOutcomeName(static_cast<kgrpo_coder_outcome>(select.Integer(16)));
    row["coder_summary"] = select.Text(17);
    row["coder_cost"] = select.Real(18);
    // Earlier versions called a correct kernel "right".
    row["verdict"] = correct ? KGRPO_VERDICT_CORRECT : select.Text(19);
    row["correct"] = correct;
    row["seconds"] = correct ? RealOrNull(select, 21) : Json();
    row["baseline_seconds"] = select.Real(22);
    row["speedup"] = select.Real(23);
    row["modelled"] = select.Integer(24) != 0;
    row["diagnosis"] = select.Text(25);
    row["code_b"] = select.Text(26);
    row["code_c"] = select.Text(27);
    Json found = Json::object();
    for (const std::string& part : parts) found[part] = nullptr;
    for (const Metric& part : MetricsFromJson(select.Text(28))) {
      if (std::isfinite(part.value)) found[part.name] = part.value;
    }
    row["reward_parts"] = std::move(found);
    write(DumpJson(row));
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
