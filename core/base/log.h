// Format and destinations of log lines. The commands call InitLog once; all other code uses spdlog's default logger.
#ifndef KGRPO_BASE_LOG_H
#define KGRPO_BASE_LOG_H

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace kgrpo {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Sends log lines to standard error ("info: text"; with colour on a terminal), so that standard output holds only
// results.
void InitLog(LogLevel least);

// From this call on, log lines at kInfo and above go to `stream` too, with date and time, whatever level InitLog was
// given. `stream` must outlive all logging of the process; it is written under the logger's lock.
void AlsoLogTo(std::ostream& stream);

// Changes the level given to InitLog. [any thread]
void SetLogLevel(LogLevel least);

// From this call on, lines on standard error begin "rank 3: warning: ", and only warnings and errors are shown.
void LogAsRank(uint32_t rank);

// `text` with control characters other than tabs and newlines written as \x1b: kernels, compilers and models must not
// steer a person's terminal. Lines after the first are indented.
std::string PrintableText(std::string_view text);

}  // namespace kgrpo
#endif
