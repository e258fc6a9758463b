// An evaluator in the process, for tests of the service. The source decides the result: with "wrong" it is wrong, with
// "hold" it is judged once Release is called, with "break" the evaluation fails.
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
  std::atomic<int> cancelled{0};  // held evaluations that a stop ended
  std::atomic<bool> released{false};
};
JudgeState& judge();
void ResetJudge();

}  // namespace kgrpo::test
#endif
