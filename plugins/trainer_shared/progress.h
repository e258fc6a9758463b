// A stage's progress and its optimiser's, as saved state. Used by the trainers' SaveState and LoadState.
#pragma once

#include "trainer_shared/optimizer.h"
#include "trainer_shared/state_stream.h"

#include <cstdint>

namespace kgrpo::trainer {

struct Progress {
  uint64_t updates = 0;
  uint64_t tokens = 0;  // seen by the trainer, prompts included
};

// `name` says whose state it is, so that another trainer's is refused.
inline void SaveProgress(kgrpo_writer stream, const char* name, const Progress& progress, Optimizer& optimizer) {
  StateWriter writer(stream, name);
  writer.U64(progress.updates);
  writer.U64(progress.tokens);
  optimizer.Save(writer);
  writer.Finish();
}

// Restores the optimiser and returns the progress. If it throws, nothing has changed.
inline Progress LoadProgress(kgrpo_reader stream, const char* name, Optimizer& optimizer) {
  StateReader reader(stream, name);
  Progress progress;
  progress.updates = reader.U64();
  progress.tokens = reader.U64();
  const auto loaded = optimizer.Load(reader);
  reader.Finish();
  optimizer.Commit(loaded);
  return progress;
}

}  // namespace kgrpo::trainer
