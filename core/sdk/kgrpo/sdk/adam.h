// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/adam.h - Adam (Kingma and Ba 2015) on the parameters of a policy that trains in float32 on the CPU.
#ifndef KGRPO_SDK_ADAM_H
#define KGRPO_SDK_ADAM_H
#include <kgrpo/sdk/policy_client.h>
#include <kgrpo/sdk/trainer.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kgrpo {

// One thread. The caller holds the policy's device (DeviceLock) during Step.
class Adam {
 public:
  // `parameters`: from PolicyClient::TrainableFloats.
  explicit Adam(std::vector<FloatParameter> parameters) : parameters_(std::move(parameters)) {
    size_t count = 0;
    for (const FloatParameter& parameter : parameters_) count += parameter.size;
    moments_.assign(2 * count, 0);
  }

  // The L2 norm of all gradients. If it is not finite, do not call Step.
  double GradientNorm() const {
    double squares = 0;
    for (const FloatParameter& parameter : parameters_) {
      for (size_t i = 0; i < parameter.size; ++i)
        squares += static_cast<double>(parameter.gradients[i]) * parameter.gradients[i];
    }
    return std::sqrt(squares);
  }

  // Moves the values against their gradients.
  void Step(double learning_rate) {
    constexpr double kFirst = 0.9, kSecond = 0.999, kEpsilon = 1e-8;
    const auto step = static_cast<double>(++steps_);
    const double unbiased = std::sqrt(1 - std::pow(kSecond, step));
    const double rate = learning_rate * unbiased / (1 - std::pow(kFirst, step));
    double* moment = moments_.data();
    for (const FloatParameter& parameter : parameters_) {
      for (size_t i = 0; i < parameter.size; ++i, moment += 2) {
        const double gradient = parameter.gradients[i];
        moment[0] = kFirst * moment[0] + (1 - kFirst) * gradient;
        moment[1] = kSecond * moment[1] + (1 - kSecond) * gradient * gradient;
        parameter.values[i] -= static_cast<float>(rate * moment[0] / (std::sqrt(moment[1]) + kEpsilon * unbiased));
      }
    }
  }

  // For a trainer's save_state and load_state.
  void Save(kgrpo_writer writer) const {
    SaveNumbers(writer, std::vector<uint64_t>{steps_});
    SaveNumbers(writer, moments_);
  }
  void Load(kgrpo_reader reader) {
    std::vector<uint64_t> steps(1);
    LoadNumbers(reader, &steps);
    LoadNumbers(reader, &moments_);
    steps_ = steps[0];
  }

 private:
  std::vector<FloatParameter> parameters_;
  std::vector<double> moments_;  // first and second moment of each number, interleaved
  uint64_t steps_ = 0;
};

}  // namespace kgrpo
#endif
