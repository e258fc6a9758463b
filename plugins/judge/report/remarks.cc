#include "judge/report/remarks.h"

#include <kgrpo/support/number_text.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <string_view>

#include "judge/report/declared_metrics.h"

namespace kgrpo::evaluator {
namespace {

constexpr std::string_view kRooms = "resident_blocks_by/";
constexpr double kFull = 0.995;

std::string ResourceName(std::string_view name) {
  if (name == "threads") return "block size";
  if (name == "blocks") return "number of blocks";
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string Whole(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

// "12 dram" behind "line/" is line 12 and "dram"; 0 where no number is there.
unsigned ReadLine(std::string_view text, std::string_view* rest) {
  unsigned line = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line);
  if (error != std::errc()) return 0;
  *rest = text.substr(static_cast<size_t>(end - text.data()));
  if (rest->starts_with(' ')) rest->remove_prefix(1);
  return line;
}

// "1 cycle", "1.5 cycles".
std::string Counted(double count, const std::string& what) {
  const std::string digits = ThreeDigits(count);
  return digits + " " + what + (digits == "1" ? "" : "s");
}

}  // namespace

std::vector<OccupancyRoom> OccupancyRooms(const std::vector<Metric>& metrics) {
  std::vector<OccupancyRoom> rooms;
  for (const auto& [name, blocks, low, high] : metrics) {
    if (name.starts_with(kRooms)) rooms.push_back({ResourceName(std::string_view(name).substr(kRooms.size())), blocks});
  }
  double least = 0;
  for (size_t i = 0; i < rooms.size(); ++i) least = i == 0 ? rooms[i].blocks : std::min(least, rooms[i].blocks);
  for (OccupancyRoom& room : rooms) room.least = room.blocks == least;
  return rooms;
}

std::string OccupancyLimit(const std::vector<Metric>& metrics) {
  const std::vector<OccupancyRoom> rooms = OccupancyRooms(metrics);
  if (rooms.empty()) return "";
  double occupancy = 0, waves = 1;
  for (const auto& [name, value, low, high] : metrics) {
    if (name == "occupancy") occupancy = value;
    if (name == "waves") waves = value;
  }
  std::string text;
  if (occupancy >= kFull) {
    text = "nothing";
  } else {
    double least = 0;
    const OccupancyRoom* next = nullptr;
    for (const OccupancyRoom& room : rooms) {
      if (room.least) {
        text += (text.empty() ? "" : " and ") + room.resource;
        least = room.blocks;
      } else if (next == nullptr || room.blocks < next->blocks) {
        next = &room;
      }
    }
    text += " (room for " + Whole(least) + (least == 1 ? " block" : " blocks");
    if (next != nullptr) text += "; " + next->resource + " for " + Whole(next->blocks);
    text += ")";
  }
  if (waves < 1) {
    text += std::string(occupancy >= kFull ? " but the grid" : "; and by the grid") + ": its blocks fill " +
            Percent(waves) + " of the places";
  }
  return text;
}

std::vector<LineFacts> LinesOf(const std::vector<Metric>& metrics) {
  std::map<unsigned, LineFacts> by_line;
  std::map<unsigned, double> largest;  // share, of one reason
  for (const auto& [name, value, low, high] : metrics) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos || !name.starts_with("line")) continue;
    const std::string_view family = std::string_view(name).substr(0, slash);
    std::string_view rest;
    const unsigned number = ReadLine(std::string_view(name).substr(slash + 1), &rest);
    if (number == 0) continue;
    if (family == "line") {
      LineFacts& line = by_line[number];
      line.share += value;
      if (value > largest[number]) {
        largest[number] = value;
        line.bound = rest;
      }
    } else if (family == "line_sectors") {
      by_line[number].sectors = value;
    } else if (family == "line_sectors_used") {
      by_line[number].sectors_used = value;
    } else if (family == "line_shared_cycles") {
      by_line[number].shared_cycles = value;
    } else if (family == "line_shared_conflicts") {
      by_line[number].shared_conflicts = value;
    }
  }
  std::vector<LineFacts> lines;
  for (auto& [number, line] : by_line) {
    line.line = number;
    lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const LineFacts& a, const LineFacts& b) { return a.share > b.share; });
  return lines;
}

std::string LineFacts::Text() const {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (!bound.empty()) add("mostly " + bound);
  if (sectors) {
    add(Counted(*sectors, "sector") + " a request");
    if (sectors_used) text += ", " + Percent(*sectors_used) + " of their bytes used";
  }
  if (shared_cycles) {
    add(Counted(*shared_cycles, "cycle") + " a shared memory access");
    if (shared_conflicts) text += ", " + Percent(*shared_conflicts) + " by bank conflicts";
  }
  return text;
}

std::vector<Remark> RemarksOf(const std::vector<Metric>& metrics) {
  std::vector<Remark> remarks;
  if (const std::string limit = OccupancyLimit(metrics); !limit.empty())
    remarks.push_back({kOccupancyTitle, "limited by", limit});
  for (const LineFacts& line : LinesOf(metrics)) {
    remarks.push_back({kLinesTitle, "", line.Text(), line.line, line.share});
  }
  return remarks;
}

}  // namespace kgrpo::evaluator
