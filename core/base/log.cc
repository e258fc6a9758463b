#include "base/log.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

namespace kgrpo {

namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err};
  return kLevels[static_cast<size_t>(level)];
}

}  // namespace

// The logger passes every line that one of its sinks shows. Each sink has its own least level; the first sink is the
// terminal.
void InitLog(LogLevel least) {
  auto terminal = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  terminal->set_pattern("%^%l:%$ %v");
  auto logger = std::make_shared<spdlog::logger>("kgrpo", std::move(terminal));
  spdlog::set_default_logger(std::move(logger));
  SetLogLevel(least);
}

void AlsoLogTo(std::ostream& stream) {
  auto file = std::make_shared<spdlog::sinks::ostream_sink_mt>(stream, /*force_flush=*/true);
  file->set_pattern("%Y-%m-%d %H:%M:%S %l: %v");
  file->set_level(spdlog::level::info);
  spdlog::logger& logger = *spdlog::default_logger();
  logger.sinks().push_back(std::move(file));
  logger.set_level(std::min(logger.level(), spdlog::level::info));
}

void SetLogLevel(LogLevel least) {
  spdlog::logger& logger = *spdlog::default_logger();
  logger.sinks().front()->set_level(SpdlogLevel(least));
  logger.set_level(logger.sinks().size() > 1 ? std::min(SpdlogLevel(least), spdlog::level::info) : SpdlogLevel(least));
}

void LogAsRank(uint32_t rank) {
  SetLogLevel(LogLevel::kWarning);
  spdlog::default_logger()->sinks().front()->set_pattern("rank " + std::to_string(rank) + ": %^%l:%$ %v");
}

std::string PrintableText(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string printable;
  printable.reserve(text.size());
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '\n') {
      printable += "\n    ";
    } else if ((byte < 0x20 && character != '\t') || byte == 0x7f) {
      printable += "\\x";
      printable += kHex[byte >> 4];
      printable += kHex[byte & 15];
    } else {
      printable += character;
    }
  }
  return printable;
}

}  // namespace kgrpo
