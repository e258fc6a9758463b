// The evaluator's side of the gates; the test plays the worker and the device.
#include "evaluator_cuda/gates.h"

#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace kgrpo::evaluator_cuda {
namespace {

// The pages as a worker maps them.
class WorkersPages {
 public:
  explicit WorkersPages(const Gates& gates)
      : open_(mmap(nullptr, sizeof(OpenPage), PROT_READ, MAP_SHARED, gates.open_descriptor(), 0)),
        reached_(
            mmap(nullptr, sizeof(ReachedPage), PROT_READ | PROT_WRITE, MAP_SHARED, gates.reached_descriptor(), 0)) {}
  ~WorkersPages() {
    munmap(open_, sizeof(OpenPage));
    munmap(reached_, sizeof(ReachedPage));
  }
  WorkersPages(const WorkersPages&) = delete;
  WorkersPages& operator=(const WorkersPages&) = delete;

  void* open() const { return open_; }
  uint32_t Open(uint32_t which) const {
    return *static_cast<const volatile uint32_t*>(&static_cast<const OpenPage*>(open_)->open[which].sequence);
  }
  void Reach(uint32_t which, uint32_t sequence) {
    std::atomic_ref<uint32_t>(static_cast<ReachedPage*>(reached_)->reached[which].sequence).store(sequence);
  }

 private:
  void* open_;
  void* reached_;
};

TEST(GatesTest, OpensTheGatesOfTheLastPlanOnly) {
  Gates gates;
  const WorkersPages worker(gates);
  const uint32_t first = gates.Next();
  EXPECT_LT(worker.Open(0), first);
  gates.Open(0);
  EXPECT_EQ(worker.Open(0), first);
  EXPECT_LT(worker.Open(1), first);
  const uint32_t second = gates.Next();
  EXPECT_GT(second, first);
  EXPECT_LT(worker.Open(0), second);
}

// Whatever a worker's process tries with the memory that it was given: the evaluator alone opens its gates, before and
// after the others have it.
TEST(GatesTest, NobodyElseOpensThem) {
  Gates gates;
  if (!gates.sealed()) GTEST_SKIP() << "this system cannot seal memory against later writers";
  const WorkersPages worker(gates);
  const int memory = gates.open_descriptor();
  const uint32_t sequence = gates.Next();
  EXPECT_NE(mprotect(worker.open(), sizeof(OpenPage), PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(mmap(nullptr, sizeof(OpenPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0), MAP_FAILED);
  EXPECT_EQ(pwrite(memory, &sequence, sizeof sequence, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(memory, 0), 0);
  EXPECT_NE(fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, sizeof(OpenPage)), 0);
  EXPECT_NE(madvise(worker.open(), sizeof(OpenPage), MADV_REMOVE), 0);
  EXPECT_NE(fcntl(memory, F_ADD_SEALS, 0), 0) << "the seals themselves are sealed";
  const int again = open(("/proc/self/fd/" + std::to_string(memory)).c_str(), O_RDWR | O_CLOEXEC);
  if (again >= 0) {  // it is the same memory, and so are its seals
    EXPECT_EQ(pwrite(again, &sequence, sizeof sequence, 0), -1);
    EXPECT_EQ(mmap(nullptr, sizeof(OpenPage), PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
    close(again);
  }
  const int itself = open("/proc/self/mem", O_RDWR | O_CLOEXEC);  // writes where a process may only read
  ASSERT_GE(itself, 0);
  EXPECT_EQ(pwrite(itself, &sequence, sizeof sequence, static_cast<off_t>(reinterpret_cast<uintptr_t>(worker.open()))),
            -1);
  close(itself);
  EXPECT_LT(worker.Open(0), sequence);
  EXPECT_LT(worker.Open(1), sequence);
  gates.Open(1);
  EXPECT_EQ(worker.Open(1), sequence) << "the evaluator still can";
}

TEST(GatesTest, TheEvaluatorCannotBeMadeToReadWhereNothingIs) {
  const Gates gates;
  if (!gates.sealed()) GTEST_SKIP() << "this system cannot seal memory against later writers";
  EXPECT_NE(ftruncate(gates.reached_descriptor(), 0), 0);
}

TEST(GatesTest, WaitsForTheDevice) {
  Gates gates;
  WorkersPages worker(gates);
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
