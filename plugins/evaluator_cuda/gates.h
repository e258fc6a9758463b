// The evaluator's side of the gates at which a worker's device waits (worker/protocol.h, OpenPage). Used by Worker.
#pragma once

#include <cstdint>

#include "evaluator_cuda/worker/protocol.h"
#include "process/subprocess.h"  // Descriptor

namespace kgrpo::evaluator_cuda {

class Gates {
 public:
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where there is no memory to share.
  Gates();
  ~Gates();
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  // True if only this object can write the word that opens the gates. False where the system cannot seal memory (Linux
  // before 5.1): then there must be no gates.
  bool sealed() const { return sealed_; }
  // For the worker: of an OpenPage and of a ReachedPage.
  int open_descriptor() const { return open_memory_.get(); }
  int reached_descriptor() const { return reached_memory_.get(); }
  uint32_t Next() { return ++sequence_; }  // the number of the next plan with gates
  void Open(uint32_t which);               // for the last plan
  // Spins until the device stands at the gate; returns false if it does not get there within `seconds`. The worker's
  // process can forge this signal.
  bool WaitReached(uint32_t which, double seconds) const;

 private:
  process::Descriptor open_memory_, reached_memory_;
  OpenPage* open_ = nullptr;
  const ReachedPage* reached_ = nullptr;
  bool sealed_ = false;
  uint32_t sequence_ = 0;
};

}  // namespace kgrpo::evaluator_cuda
