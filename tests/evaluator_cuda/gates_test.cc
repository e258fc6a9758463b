// The judge's side of the gates, with the test in the device's place.
#include "evaluator_cuda/gates.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

namespace kgrpo::evaluator_cuda {
namespace {

// The page as a worker maps it.
class WorkersPage {
 public:
  explicit WorkersPage(const Gates& gates)
      : page_(static_cast<GatePage*>(
            mmap(nullptr, sizeof(GatePage), PROT_READ | PROT_WRITE, MAP_SHARED, gates.descriptor(), 0))) {}
  ~WorkersPage() { munmap(page_, sizeof(GatePage)); }
  WorkersPage(const WorkersPage&) = delete;
  WorkersPage& operator=(const WorkersPage&) = delete;

  uint32_t Open(uint32_t which) { return std::atomic_ref<uint32_t>(page_->open[which].sequence).load(); }
  void Reach(uint32_t which, uint32_t sequence) {
    std::atomic_ref<uint32_t>(page_->reached[which].sequence).store(sequence);
  }

 private:
  GatePage* page_;
};

TEST(GatesTest, OpensTheGatesOfTheLastPlanOnly) {
  Gates gates;
  WorkersPage worker(gates);
  const uint32_t first = gates.Next();
  EXPECT_LT(worker.Open(0), first);
  gates.Open(0);
  EXPECT_EQ(worker.Open(0), first);
  EXPECT_LT(worker.Open(1), first);
  const uint32_t second = gates.Next();
  EXPECT_GT(second, first);
  EXPECT_LT(worker.Open(0), second);
}

TEST(GatesTest, WaitsForTheDevice) {
  Gates gates;
  WorkersPage worker(gates);
  const uint32_t earlier = gates.Next();
  worker.Reach(1, earlier);
  EXPECT_TRUE(gates.WaitReached(1, 0));
  const uint32_t sequence = gates.Next();
  EXPECT_FALSE(gates.WaitReached(1, 1e-3)) << "an earlier plan's gate";
  std::thread device([&] { worker.Reach(1, sequence); });
  EXPECT_TRUE(gates.WaitReached(1, 60));
  device.join();
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
