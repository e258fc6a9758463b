#include "judge/report/occupancy_limit.h"

#include <kgrpo/support/number_text.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

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

}  // namespace kgrpo::evaluator
