// Plain tables on standard output: `plugins list`, `problems list`, ... Used by the programs in tools/.
#ifndef KGRPO_TOOLS_COMMON_TABLE_H
#define KGRPO_TOOLS_COMMON_TABLE_H

#include <string>
#include <vector>

namespace kgrpo::cli {

// Columns aligned to the left, two spaces between them. On a terminal the last column is wrapped to its width. Or a
// Markdown table; with `numbers` it aligns the columns after the first to the right.
void PrintTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                bool markdown = false, bool numbers = false);

}  // namespace kgrpo::cli
#endif
