// Derives those parameters of a device that microbenchmarks alone determine. Used by calibrate.
#ifndef KGRPO_TOOLS_CALIBRATE_KNOWN_H
#define KGRPO_TOOLS_CALIBRATE_KNOWN_H

#include <map>
#include <string>
#include <vector>

#include "calibrate/device_file.h"
#include "calibrate/microbenchmarks.h"
#include "simt/time/time_model.h"

namespace kgrpo::bench {

// name,at,value,unit
std::vector<Micro> ReadMicro(const std::string& path);

// The parameters that the measurements determine, by field of the device's file. `device` gives data sheet values to
// compare with.
std::map<std::string, NewValue> KnownFrom(const std::vector<Micro>& measured, const simt::Device& device,
                                          const std::string& source);

// Sets a field by its name in the file. Throws Error for a name that no microbenchmark determines.
void SetField(simt::Device& device, const std::string& name, double value);

}  // namespace kgrpo::bench

#endif
