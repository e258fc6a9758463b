// A batch of the generation queue can take in requests that arrive while it is under way.
#include <kgrpo/sdk/generation_queue.h>
#include "test.h"

namespace kgrpo {
namespace {

TEST(GenerationQueue, ABatchTakesInWhatArrives) {
  std::atomic<bool> first_is_under_way = false;
  std::atomic<int> done = 0, batches = 0;
  kgrpo_sampling sampling = {};
  sampling.struct_size = sizeof sampling;
  const int32_t prompt = 1;
  kgrpo_generate_request request = {};
  request.struct_size = sizeof request;
  request.prompt_ids = &prompt;
  request.prompt_size = 1;
  request.sampling = &sampling;
  request.done = {&done, [](void* context, const kgrpo_completion* completion, kgrpo_error* error) {
                    EXPECT_NE(completion, nullptr);
                    EXPECT_EQ(error, nullptr);
                    ++*static_cast<std::atomic<int>*>(context);
                  }};
  const kgrpo_generate_request* const one[] = {&request};
  GenerationQueue* queue_of_batch = nullptr;
  GenerationQueue queue([&](std::vector<PendingCompletion>& batch) {
    ++batches;
    first_is_under_way = true;
    while (batch.size() < 3) {
      queue_of_batch->TakeWaiting(batch);
      std::this_thread::yield();
    }
    for (PendingCompletion& pending : batch) pending.Finish({});
  });
  queue_of_batch = &queue;
  queue.Submit(one, 1);
  while (!first_is_under_way) std::this_thread::yield();
  queue.Submit(one, 1);
  queue.Submit(one, 1);
  while (done < 3) std::this_thread::yield();
  EXPECT_EQ(batches, 1);
}

}  // namespace
}  // namespace kgrpo
