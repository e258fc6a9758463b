// The element types of problems: their names, C types and sizes, and the conversions between a tensor's bytes and the
// float64 / int64 values that oracles work with. Used by the problem parser, input generation and comparison.
#pragma once

#include <cstddef>  // size_t
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo::evaluator {

enum class DType {
  kFloat32,
  kFloat64,
  kFloat16,
  kBfloat16,
  kInt32,
  kInt64,
  kUint8,
  kUint32,
  kInt8,
  kBool,
  kInt16,
  kUint16
};

struct DTypeInfo {
  DType dtype;
  const char* name;    // in problem.yaml: "float32"
  const char* c_type;  // in the launch signature: "float", "__half"
  size_t size;         // bytes an element
  bool is_floating;
  double unit_roundoff;    // 2^-p of the format with p significand bits; 0 for integers
  double lowest, highest;  // finite range
  int digits;              // of the significand, p; 0 for integers
  int least_exponent;      // the smallest normal number is 2^least_exponent

  // The distance between two subnormal numbers; 0 for integers.
  double SmallestSubnormal() const;
};

const DTypeInfo& Info(DType dtype);

// The dtype of that name, or nothing.
std::optional<DType> DTypeFromName(const std::string& name);

// All names, in order of the enum.
std::vector<std::string> DTypeNames();

// Rounds to nearest even into the format and writes its bytes at `element` (Info(dtype).size of them).
// Values beyond the range become infinities (floating) or saturate (integer). `value` may be any double.
void StoreDouble(DType dtype, double value, void* element);

// Writes an integer exactly for integer types, rounded for floating ones.
void StoreInteger(DType dtype, int64_t value, void* element);

// The element as a double: exact for all floating types and for integers up to 2^53.
double LoadDouble(DType dtype, const void* element);

// The element of an integer dtype, exactly.
int64_t LoadInteger(DType dtype, const void* element);

}  // namespace kgrpo::evaluator
