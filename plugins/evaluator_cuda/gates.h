// The judge's side of the gates at which a worker's device waits (worker/protocol.h, GatePage). Used by Worker.
#ifndef KGRPO_EVALUATOR_CUDA_GATES_H
#define KGRPO_EVALUATOR_CUDA_GATES_H

#include <cstdint>

#include "evaluator_cuda/worker/protocol.h"
#include "evaluator_shared/subprocess.h"  // Descriptor

namespace kgrpo::evaluator_cuda {

class Gates {
 public:
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where there is no memory to share.
  Gates();
  ~Gates();
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  int descriptor() const { return memory_.get(); }  // for the worker
  uint32_t Next() { return ++sequence_; }           // the number of the next plan with gates
  void Open(uint32_t which);                        // for the last plan
  // Waits, awake, until the device stands at the gate; false where it does not get there in so many seconds.
  bool WaitReached(uint32_t which, double seconds) const;

 private:
  evaluator::Descriptor memory_;
  GatePage* page_ = nullptr;
  uint32_t sequence_ = 0;
};

}  // namespace kgrpo::evaluator_cuda

#endif
