// The file that the evaluator writes for kgrpo_cuda_profile (profile_main.cc): the candidate's machine code where it
// is not in its object, and the arguments of a call, tensors with their contents. Written by
// device_evaluator_profile.cc.
#pragma once

#include <cstdint>

namespace kgrpo::evaluator_cuda {

// A header; `parameters` times a ProfileParameter; the machine code; the bytes of every tensor in turn.
struct ProfilePlanHeader {
  uint64_t machine_code_bytes;
  uint64_t parameters;
};

struct ProfileParameter {
  uint64_t tensor_bytes;  // 0: a scalar
  uint64_t scalar;        // its bytes
};

constexpr const char* kProfilePlanFile = "plan";
constexpr const char* kProfileObjectFile = "candidate.so";

}  // namespace kgrpo::evaluator_cuda
