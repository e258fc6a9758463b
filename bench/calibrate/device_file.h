// Writes a device's file with fitted values in it. Used by calibrate.
#ifndef KGRPO_TOOLS_CALIBRATE_DEVICE_FILE_H
#define KGRPO_TOOLS_CALIBRATE_DEVICE_FILE_H

#include <map>
#include <string>

namespace kgrpo::bench {

struct NewValue {
  double value = 0;
  std::string source;  // the comment behind it: "measured, 2026-11-22, NVIDIA H100 80GB HBM3"
};

// The text of a device's file with the values of these fields replaced. Lines of other fields, and comments that stand
// alone, stay as they are. Throws Error for a field that the text does not have.
std::string WithValues(const std::string& text, const std::map<std::string, NewValue>& values);

}  // namespace kgrpo::bench

#endif
