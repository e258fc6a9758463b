// The text of a run's token ids, by the tokenizer.json that its model was saved with. Used by
// report/trajectory_parts.cc.
#ifndef KGRPO_REPORT_TOKEN_TEXTS_H
#define KGRPO_REPORT_TOKEN_TEXTS_H

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>

namespace kgrpo {

// Token id -> its text; bytes that are no UTF-8 by themselves are written "<E4>". Empty where the run's folder holds no
// tokenizer.json that can be read, or one of another kind than byte-level BPE: ids are shown then.
std::unordered_map<int32_t, std::string> ReadTokenTexts(const std::filesystem::path& run_folder);

}  // namespace kgrpo

#endif  // KGRPO_REPORT_TOKEN_TEXTS_H
