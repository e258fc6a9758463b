// Checks that work grows with its input and not with its square, by processor time: other processes on the machine do
// not lengthen it, as they do wall-clock time.
#ifndef KGRPO_TESTS_PROCESSOR_TIME_H
#define KGRPO_TESTS_PROCESSOR_TIME_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <functional>
#include <string>

namespace kgrpo::test {

// Of the calling thread.
inline double ProcessorSeconds(const std::function<void()>& work) {
  timespec begin{}, end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  work();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return static_cast<double>(end.tv_sec - begin.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
}

// `small` and `large` do the same with inputs of one and of four times a size. Quadratic work takes 16 times as long.
inline void ExpectLinear(const std::function<void()>& small, const std::function<void()>& large,
                         const std::string& what) {
  constexpr double kMostTimes = 9, kStart = 0.02;  // seconds: noise of short work
  double least = ProcessorSeconds(small);
  for (int run = 0; run < 2; ++run) least = std::min(least, ProcessorSeconds(small));
  EXPECT_LT(ProcessorSeconds(large), kMostTimes * least + kStart) << what;
}

}  // namespace kgrpo::test

#endif
