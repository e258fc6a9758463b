// thread_ranks.h - ranks of one run as threads of one process: kgrpo.draft.collective/1 over a FakeHost each. Sums are
// taken in the order of the ranks. A reduction copies the values when it begins and overwrites their memory with
// garbage until it is finished, so that an element written after it was reported final, or read too early, changes the
// result.
#ifndef KGRPO_TESTS_TRAINER_THREAD_RANKS_H
#define KGRPO_TESTS_TRAINER_THREAD_RANKS_H
#include <kgrpo/sdk/collective.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fake_host.h"

namespace kgrpo::testing {

class ThreadRanks {
 public:
  // The reductions that each rank began and finished, in order: "begin 5 to 11 of 121", "finish". A test may add lines.
  std::vector<std::vector<std::string>> logs;

  explicit ThreadRanks(uint32_t size) : logs(size), barrier_(size), tensors_(size), begun_(size) {
    for (uint32_t rank = 0; rank < size; ++rank) infos_.push_back({sizeof(kgrpo_rank_info), rank, size, rank, size});
  }

  // Makes `host` the host of `rank`. Call before a trainer is created with it. A single rank gets no collective.
  // `blocking`: with the interface of a transport that only blocks.
  void Join(FakeHost& host, uint32_t rank, bool blocking = false) {
    if (infos_.size() == 1) return;
    host.collective = blocking ? &kBlocking : &kInterface;
    host.ranks = this;
    host.rank = rank;
  }

  // Runs work(rank) on a thread for each rank, and waits for all.
  void Run(const std::function<void(uint32_t rank)>& work) const {
    std::vector<std::jthread> threads;
    for (uint32_t rank = 0; rank < infos_.size(); ++rank) threads.emplace_back(work, rank);
  }

 private:
  static FakeHost& Host(void* context) { return *static_cast<FakeHost*>(context); }
  static ThreadRanks& Of(void* context) { return *static_cast<ThreadRanks*>(Host(context).ranks); }

  // Calls `combine` on rank 0's thread while the other ranks wait, so that it may access all their tensors.
  template <typename Combine>
  static kgrpo_error* Together(void* context, const kgrpo_tensor* values, Combine combine) {
    ThreadRanks& self = Of(context);
    self.tensors_[Host(context).rank] = *values;
    self.barrier_.arrive_and_wait();
    if (Host(context).rank == 0) combine(self.tensors_);
    self.barrier_.arrive_and_wait();
    return nullptr;
  }

  template <typename T>
  static void Reduce(std::vector<kgrpo_tensor>& tensors, uint32_t reduction) {
    for (int64_t i = 0; i < tensors[0].shape[0]; ++i) {
      T all = static_cast<T*>(tensors[0].data)[i];
      for (size_t rank = 1; rank < tensors.size(); ++rank) {
        const T one = static_cast<T*>(tensors[rank].data)[i];
        all = reduction == KGRPO_REDUCTION_MIN   ? std::min(all, one)
              : reduction == KGRPO_REDUCTION_MAX ? std::max(all, one)
                                                 : all + one;
      }
      for (kgrpo_tensor& tensor : tensors) static_cast<T*>(tensor.data)[i] = all;
    }
  }

  static const kgrpo_rank_info* Info(void* context) { return &Of(context).infos_[Host(context).rank]; }
  static kgrpo_error* AllReduce(void* context, const kgrpo_tensor* values, uint32_t reduction) {
    return Together(context, values, [&](std::vector<kgrpo_tensor>& tensors) {
      tensors[0].dtype.bits == 64 ? Reduce<double>(tensors, reduction) : Reduce<float>(tensors, reduction);
    });
  }
  // Overwrites everything but the caller's slice, since its content is undefined.
  static kgrpo_error* ReduceScatter(void* context, const kgrpo_tensor* values) {
    return Together(context, values, [&](std::vector<kgrpo_tensor>& tensors) {
      Reduce<float>(tensors, KGRPO_REDUCTION_SUM);
      const auto count = static_cast<size_t>(tensors[0].shape[0]);
      for (uint32_t rank = 0; rank < tensors.size(); ++rank) {
        float* data = static_cast<float*>(tensors[rank].data);
        const auto size = static_cast<uint32_t>(tensors.size());
        std::fill(data, data + Collective::SliceBegin(count, rank, size), 1e30F);
        std::fill(data + Collective::SliceBegin(count, rank + 1, size), data + count, 1e30F);
      }
    });
  }
  static kgrpo_error* AllGather(void* context, const kgrpo_tensor* values) {
    return Together(context, values, [&](std::vector<kgrpo_tensor>& tensors) {
      const auto count = static_cast<size_t>(tensors[0].shape[0]);
      const size_t bytes = tensors[0].dtype.bits / 8;
      const auto size = static_cast<uint32_t>(tensors.size());
      for (uint32_t from = 0; from < size; ++from) {
        const size_t begin = Collective::SliceBegin(count, from, size) * bytes;
        const size_t end = Collective::SliceBegin(count, from + 1, size) * bytes;
        for (kgrpo_tensor& to : tensors)
          std::memmove(static_cast<char*>(to.data) + begin, static_cast<char*>(tensors[from].data) + begin,
                       end - begin);
      }
    });
  }
  static kgrpo_error* Broadcast(void* context, const kgrpo_tensor* values, uint32_t root) {
    return Together(context, values, [&](std::vector<kgrpo_tensor>& tensors) {
      const size_t bytes = static_cast<size_t>(tensors[0].shape[0]) * tensors[0].dtype.bits / 8;
      for (kgrpo_tensor& to : tensors) std::memmove(to.data, tensors[root].data, bytes);
    });
  }

  struct Begun {
    float* data;  // of the whole tensor
    size_t count, begin, end;
    std::vector<float> values;
  };
  static kgrpo_error* Begin(void* context, const kgrpo_tensor* values, size_t begin, size_t end, void*) {
    ThreadRanks& self = Of(context);
    auto* const data = static_cast<float*>(values->data);
    const auto count = static_cast<size_t>(values->shape[0]);
    self.logs[Host(context).rank].push_back("begin " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                                            std::to_string(count));
    self.begun_[Host(context).rank].push_back({data, count, begin, end, {data + begin, data + end}});
    std::fill(data + begin, data + end, 2e30F);
    return nullptr;
  }
  static kgrpo_error* Finish(void* context) {
    ThreadRanks& self = Of(context);
    const uint32_t rank = Host(context).rank, size = static_cast<uint32_t>(self.infos_.size());
    self.logs[rank].emplace_back("finish");
    self.barrier_.arrive_and_wait();
    bool same = true;  // the calls of all ranks agree
    for (const auto& other : self.begun_) {
      same = same && other.size() == self.begun_[0].size();
      for (size_t i = 0; same && i < other.size(); ++i)
        same = other[i].count == self.begun_[0][i].count && other[i].begin == self.begun_[0][i].begin &&
               other[i].end == self.begun_[0][i].end;
    }
    for (size_t i = 0; same && i < self.begun_[rank].size(); ++i) {
      const Begun& own = self.begun_[rank][i];
      for (size_t at = own.begin; at < own.end; ++at) {
        float sum = self.begun_[0][i].values[at - own.begin];
        for (uint32_t other = 1; other < size; ++other) sum += self.begun_[other][i].values[at - own.begin];
        const bool mine = at >= Collective::SliceBegin(own.count, rank, size) &&
                          at < Collective::SliceBegin(own.count, rank + 1, size);
        own.data[at] = mine ? sum : 1e30F;
      }
    }
    self.barrier_.arrive_and_wait();
    self.begun_[rank].clear();
    return same ? nullptr : MakeError(KGRPO_ERROR_INTERNAL, "the ranks have begun different reductions");
  }

  static constexpr kgrpo_collective_interface kInterface = {
      sizeof(kgrpo_collective_interface), Info, AllReduce, ReduceScatter, AllGather, Broadcast, Begin, Finish};
  static constexpr kgrpo_collective_interface kBlocking = {
      KGRPO_COLLECTIVE_INTERFACE_SIZE_1, Info, AllReduce, ReduceScatter, AllGather, Broadcast, nullptr, nullptr};

  std::barrier<> barrier_;
  std::vector<kgrpo_rank_info> infos_;
  std::vector<kgrpo_tensor> tensors_;
  std::vector<std::vector<Begun>> begun_;  // by rank
};

}  // namespace kgrpo::testing
#endif
