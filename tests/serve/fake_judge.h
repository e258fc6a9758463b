// An evaluator in the process, for tests of the service: what it finds is written in the source, and a test can hold it
// up. A source with "wrong" is wrong, one with "hold" is judged when Release was called, one with "break" fails.
#ifndef KGRPO_TESTS_SERVE_FAKE_JUDGE_H
#define KGRPO_TESTS_SERVE_FAKE_JUDGE_H

#include <kgrpo/evaluator.h>

#include <atomic>

namespace kgrpo::test {

extern const kgrpo_evaluator_interface kFakeJudge;

struct JudgeState {
  std::atomic<int> evaluations{0};
  std::atomic<int> baselines{0};
  std::atomic<int> held{0};       // evaluations that wait for `released`
  std::atomic<int> cancelled{0};  // of those, ended by a stop
  std::atomic<bool> released{false};
};
JudgeState& judge();
void ResetJudge();

}  // namespace kgrpo::test
#endif
