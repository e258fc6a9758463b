#include "evaluator_cuda/roofline.h"

#include <algorithm>
#include <sstream>

#include "judge/problem/dtype.h"
#include "judge/verdict/comparison.h"  // BoundFor

namespace kgrpo::evaluator_cuda {

using evaluator::DType;
using evaluator::Parameter;
using evaluator::Problem;

namespace {

// A relative error below this needs double precision: float32 arithmetic leaves an error a thousand times as large.
constexpr double kDoublePrecision = 0x1p-34;
// One above this may be met with operands of eight bits (e4m3 rounds by 2^-4, and errors of many terms average out).
constexpr double kEightBits = 0x1p-6;
// Rates of other tensor core instructions, as multiples of mma.sync. Hopper: wgmma, 989 TFLOP/s in the data sheet of
// the H100, of which mma.sync gets some 62%. Later data centre parts: tcgen05, not measured by us; 2250 TFLOP/s in the
// data sheet of the B200. Before Hopper mma.sync is all there is; its measurement may be some percent low.
constexpr double kHopperTensor = 1.75, kLaterTensor = 6, kEarlierTensor = 1.15;
// Eight-bit operands are twice as fast as those of sixteen bits. Structured sparsity, which doubles it once more, does
// not count: a problem's `needs` already leave out elements that are zero by its rules.
constexpr double kEightBitFactor = 2;
// fp64 on tensor cores is twice as fast as without (67 against 34 TFLOP/s, H100 data sheet), and double precision from
// eight-bit products may come to about as much again.
constexpr double kDoubleFactor = 4;

// The relative error that the strictest floating output is allowed at the timing size; 0 where none is floating.
double StrictestError(const Problem& problem) {
  const double accumulations = problem.accumulations.Evaluate(problem.timing);
  double strictest = 0;
  for (const Parameter& parameter : problem.parameters) {
    if (!parameter.IsWritten() || !evaluator::Info(parameter.dtype).is_floating) continue;
    const double error = evaluator::BoundFor(problem, parameter, accumulations, {}).relative;
    strictest = strictest == 0 ? error : std::min(strictest, error);
  }
  return strictest;
}

bool HasTensorOf(const Problem& problem, DType dtype) {
  return std::any_of(problem.parameters.begin(), problem.parameters.end(),
                     [dtype](const Parameter& parameter) { return parameter.IsTensor() && parameter.dtype == dtype; });
}

double FastestRate(const Problem& problem, const Ceilings& ceilings, int compute_capability) {
  const double error = StrictestError(problem);
  if (error > 0 && error < kDoublePrecision) return kDoubleFactor * ceilings.fp64_operations_per_second;
  const double unmeasured = compute_capability >= 100  ? kLaterTensor
                            : compute_capability >= 90 ? kHopperTensor
                                                       : kEarlierTensor;
  const bool eight_bits =
      error == 0 || error > kEightBits || HasTensorOf(problem, DType::kUint8) || HasTensorOf(problem, DType::kInt8);
  const double tensor = ceilings.tensor_operations_per_second * unmeasured * (eight_bits ? kEightBitFactor : 1);
  return std::max(tensor, kEarlierTensor * ceilings.fp32_operations_per_second);
}

}  // namespace

Roofline RooflineOf(const Problem& problem, const Ceilings& ceilings, int compute_capability) {
  Roofline roofline;
  roofline.bytes = problem.needed_bytes.Evaluate(problem.timing);
  roofline.operations = problem.needed_flops.Evaluate(problem.timing);
  roofline.bandwidth = ceilings.read_bytes_per_second;
  if (HasTensorOf(problem, DType::kFloat64)) {
    roofline.unit = "fp64";
    roofline.rate = ceilings.fp64_operations_per_second;
  } else if (!HasTensorOf(problem, DType::kFloat32) &&
             (HasTensorOf(problem, DType::kFloat16) || HasTensorOf(problem, DType::kBfloat16))) {
    roofline.unit = "tensor core";
    roofline.rate = ceilings.tensor_operations_per_second;
  } else {
    roofline.unit = "fp32";
    roofline.rate = ceilings.fp32_operations_per_second;
  }
  const double memory = roofline.bytes / roofline.bandwidth, arithmetic = roofline.operations / roofline.rate;
  roofline.memory_binds = memory >= arithmetic;
  roofline.seconds = std::max(memory, arithmetic);
  roofline.least_seconds = std::max(memory, roofline.operations / FastestRate(problem, ceilings, compute_capability));
  return roofline;
}

std::string RooflineText(const Roofline& roofline, double seconds) {
  std::ostringstream memory, arithmetic, text;
  memory.precision(3);
  arithmetic.precision(3);
  const double bytes = roofline.bytes / seconds, operations = roofline.operations / seconds;
  memory << "moves " << bytes * 1e-9 << " GB/s of the traffic that is needed, " << 100 * bytes / roofline.bandwidth
         << "% of what the device reaches";
  arithmetic << "does " << operations * 1e-12 << " TFLOP/s, " << 100 * operations / roofline.rate << "% of its "
             << roofline.unit << " rate";
  if (roofline.memory_binds) {
    text << "Memory bandwidth binds: it " << memory.str() << "; it " << arithmetic.str() << ".";
  } else {
    text << "Arithmetic binds: it " << arithmetic.str() << "; it " << memory.str() << ".";
  }
  return text.str();
}

}  // namespace kgrpo::evaluator_cuda
