// The samples of a run as rows for other tools: one JSON object a round, every column in every row and of one type.
// Called by `kgrpo-host export`.
#ifndef KGRPO_REPORT_EXPORT_H
#define KGRPO_REPORT_EXPORT_H

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "store/database.h"

namespace kgrpo {

// A column and what `datasets` calls its type; a type that begins with "list:" is a list of it, "messages" a chat.
struct ExportColumn {
  const char* name;
  const char* type;
};

// The fields of records.h and the trajectory's, in the order of the rows' keys. Besides these, a row has
// `reward_parts`, a struct of RunDatabase::RewardParts().
const std::vector<ExportColumn>& ExportColumns();

// Hands every round of `purpose` to `write` as one line without its line break, in the order of step, trajectory and
// round. Returns their number.
uint64_t ExportRounds(RunDatabase& database, Purpose purpose, const std::set<std::string>& parts,
                      const std::function<void(const std::string& line)>& write);

// The README.md of a folder that datasets.load_dataset(FOLDER) opens: its splits ("train" in train.jsonl) and columns.
std::string DatasetCard(const std::string& run, const std::vector<std::string>& splits,
                        const std::set<std::string>& parts);

}  // namespace kgrpo

#endif  // KGRPO_REPORT_EXPORT_H
