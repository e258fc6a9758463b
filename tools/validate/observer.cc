// An observer takes a whole run: begin, rounds, a step, a checkpoint, the end.
#include <kgrpo/sdk/text.h>

#include <cmath>

#include "validate/calls.h"
#include "validate/made_up.h"

namespace kgrpo::validate {
namespace {

std::string Outcome(kgrpo_error* error) { return error == nullptr ? "" : "refused: " + TakeMessage(error); }

}  // namespace

void CheckObserver(Session& session, const kgrpo_observer_interface& api, kgrpo_observer* observer,
                   const CallContext& context) {
  const std::string directory = context.directory.string();
  const auto check = [&](const char* name, bool there, const std::function<kgrpo_error*()>& call) {
    session.Check(std::string("observer: ") + name, [&] { return there ? Outcome(call()) : "not asked for"; });
  };

  kgrpo_run_info run{};
  run.struct_size = sizeof(run);
  run.name = KGRPO_LITERAL("made_up");
  run.directory = Str(directory);
  run.pipeline = KGRPO_LITERAL("name: made_up\n");
  run.seed = 1;
  run.steps = 2;
  check("begin", api.begin != nullptr, [&] { return api.begin(observer, &run); });

  const kgrpo_evaluation faster = CorrectKernel(5e-4);
  const kgrpo_coder_answer written = AnswerWith(MadeUpFasterKernel()), unclear = AnswerWithout(KGRPO_CODER_UNCLEAR);
  for (const bool kernel : {true, false}) {
    kgrpo_round_event round{};
    round.struct_size = sizeof(round);
    round.step = 1;
    round.trajectory = kernel ? 0 : 1;
    round.rounds = 1;
    round.problem = MadeUpProblem().name;
    round.suggestion = KGRPO_LITERAL("Load four floats at once: \"float4\".\n\xe2\x86\x92 2x");
    round.answer = kernel ? &written : &unclear;
    round.evaluation = kernel ? &faster : nullptr;
    round.reward = kernel ? 1 : -0.5;
    round.returned = round.advantage = kernel ? 1 : std::nan("");  // NaN: a trainer may push no outcome
    check(kernel ? "round" : "round without a kernel", api.round != nullptr,
          [&] { return api.round(observer, &round); });
  }

  const kgrpo_metric metrics[] = {Measured("reward_mean", 0.25), Measured("coder/latency", 2)};
  const kgrpo_metric row[] = {Measured("loss", -0.1), Measured("learning_rate", 1e-5)};
  const kgrpo_metric_row rows[] = {{row, 2}};
  for (uint64_t number = 1; number <= 2; ++number) {
    kgrpo_step_event step{};
    step.struct_size = sizeof(step);
    step.step = number;
    step.trainer = KGRPO_LITERAL("made_up_trainer");
    step.finished_at = 1.7e9;
    step.metrics = metrics;
    step.metric_count = 2;
    step.optimizer_steps = number == 1 ? rows : nullptr;
    step.optimizer_step_count = number == 1 ? 1 : 0;
    check(number == 1 ? "step" : "step without optimiser steps", api.step != nullptr,
          [&] { return api.step(observer, &step); });
  }

  kgrpo_checkpoint_event checkpoint{};
  checkpoint.struct_size = sizeof(checkpoint);
  checkpoint.step = 2;
  checkpoint.directory = Str(directory);
  checkpoint.seconds = 0.5;
  checkpoint.finished_at = 1.7e9;
  check("checkpoint", api.checkpoint != nullptr, [&] { return api.checkpoint(observer, &checkpoint); });
  check("end", api.end != nullptr, [&] { return api.end(observer, KGRPO_LITERAL("finished")); });
}

}  // namespace kgrpo::validate
