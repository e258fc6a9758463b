#include "host/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

namespace kgrpo {

namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err};
  return kLevels[static_cast<size_t>(level)];
}

// "warning: ", and nothing before notes.
class LevelPrefix : public spdlog::custom_flag_formatter {
 public:
  explicit LevelPrefix(DebugLines debug) : debug_(debug) {}

  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    if (debug_ == DebugLines::kAsNotes && message.level == spdlog::level::debug) return;
    const spdlog::string_view_t name = spdlog::level::to_string_view(message.level);
    constexpr std::string_view kEnd = ": ";
    line.append(name.data(), name.data() + name.size());
    line.append(kEnd.data(), kEnd.data() + kEnd.size());
  }

  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelPrefix>(debug_); }

 private:
  const DebugLines debug_;
};

void SetFormat(spdlog::logger& logger, DebugLines debug) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelPrefix>('*', debug).set_pattern("%^%*%$%v");
  logger.set_formatter(std::move(formatter));
}

}  // namespace

void InitLog(LogLevel least) {
  auto logger = std::make_shared<spdlog::logger>("kgrpo", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(SpdlogLevel(least));
  SetFormat(*logger, DebugLines::kWithLevel);
  spdlog::set_default_logger(std::move(logger));
}

void SetLogLevel(LogLevel least, DebugLines debug) {
  SetFormat(*spdlog::default_logger(), debug);
  spdlog::default_logger()->set_level(SpdlogLevel(least));
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
