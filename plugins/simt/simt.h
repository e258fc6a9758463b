// A GPU without a GPU: parse PTX, run kernels over a device memory with checks, count, model the time on a real device.
//
//   auto module = simt::Module::Parse(ptx);
//   simt::DeviceMemory memory;
//   simt::ModuleInstance instance(module, memory);
//   auto result = simt::Launch(instance, module->FindKernel("add"), config);
//   auto time = simt::EstimateTime(result.counts, {registers, static_shared, dynamic_shared},
//   simt::Device::Load("h100.yaml"));
#pragma once

#include "simt/check/earlier_launches.h"  // IWYU pragma: export
#include "simt/lower/module.h"            // IWYU pragma: export
#include "simt/state/counts.h"            // IWYU pragma: export
#include "simt/state/launch.h"            // IWYU pragma: export
#include "simt/state/memory.h"            // IWYU pragma: export
#include "simt/time/time_model.h"         // IWYU pragma: export
