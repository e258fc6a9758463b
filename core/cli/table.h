// Plain tables on standard output: `plugins list`, `problems list`, ... Used by the commands in this folder.
#ifndef KGRPO_CLI_TABLE_H
#define KGRPO_CLI_TABLE_H

#include <string>
#include <vector>

namespace kgrpo::cli {

// Columns aligned to the left, two spaces between them. On a terminal the last column is wrapped to its width.
void PrintTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

// The same as a Markdown table; the columns after the first are aligned to the right where `numbers`.
void PrintMarkdownTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                        bool numbers = false);

}  // namespace kgrpo::cli
#endif
