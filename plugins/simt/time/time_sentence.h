// The sentence that says what bounds a kernel's time. Part of the time model.
#pragma once

#include <cstdio>
#include <string>

#include "simt/time/traffic.h"

namespace kgrpo::simt {

template <typename... Args>
std::string Print(const char* format, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

inline std::string BytesText(double bytes) {
  if (bytes >= 1e9) return Print("%.2f GB", bytes / 1e9);
  if (bytes >= 1e6) return Print("%.1f MB", bytes / 1e6);
  return Print("%.1f kB", bytes / 1e3);
}

// Waiting of a multiprocessor's warps, over its successive rounds of resident blocks.
struct Waiting {
  LatencyPath chain;    // of all rounds together
  Latencies latencies;  // the latencies that apply
  double cycles = 0;    // over all rounds: the chain's cycles and the start of blocks
  double rounds = 1;
};

std::string TimeSentence(const Counts& counts, const Device& device, const TimeEstimate& estimate,
                         const Traffic& traffic, const Waiting& waiting);

}  // namespace kgrpo::simt
