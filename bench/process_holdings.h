// Counts a process's resources that can leak, and tells whether they leaked. Used by evaluator_soak.cc.
#ifndef KGRPO_BENCH_PROCESS_HOLDINGS_H
#define KGRPO_BENCH_PROCESS_HOLDINGS_H

#include <string>
#include <vector>

namespace kgrpo::bench {

struct Holdings {
  double open_files = 0;  // descriptors of this process
  double children = 0;    // processes below this one, at any depth
  double zombies = 0;     // of them, those that ended and were not waited for
  double threads = 0;
  double temporary_files = 0;  // entries of the folder for temporary files
  double rss_mib = 0;
  double device_free_mib = 0;  // filled in by the caller, which has the device
};

// This process and those below it, now. Linux.
Holdings LookAtProcess();

// Returns "none", or what grew and by how much: the median of the last third of the samples against that of the first
// third, without the first sample (nothing was warm yet). For fewer than seven samples it returns that they are too
// few.
std::string Leaks(const std::vector<Holdings>& samples);

}  // namespace kgrpo::bench

#endif
