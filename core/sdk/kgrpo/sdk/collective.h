// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/collective.h - the other ranks of the run, as C++. A process that is alone is rank 0 of 1, and then every
// function returns at once.
#ifndef KGRPO_SDK_COLLECTIVE_H
#define KGRPO_SDK_COLLECTIVE_H
#include <kgrpo/draft/collective.h>
#include <kgrpo/sdk/error.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace kgrpo {

// An array of one dimension as a tensor, borrowed. Stays where it is: c() points into it.
class ArrayTensor {
 public:
  ArrayTensor(void* data, size_t count, uint8_t dtype_code, uint8_t bits, int32_t device_type = KGRPO_DEVICE_CPU,
              int32_t device = 0)
      : shape_(static_cast<int64_t>(count)) {
    c_.data = data;
    c_.device.type = device_type;
    c_.device.id = device;
    c_.ndim = 1;
    c_.dtype.code = dtype_code;
    c_.dtype.bits = bits;
    c_.dtype.lanes = 1;
    c_.shape = &shape_;
  }
  ArrayTensor(double* values, size_t count) : ArrayTensor(values, count, KGRPO_DTYPE_FLOAT, 64) {}
  ArrayTensor(unsigned char* bytes, size_t count) : ArrayTensor(bytes, count, KGRPO_DTYPE_UINT, 8) {}
  ArrayTensor(const ArrayTensor&) = delete;
  ArrayTensor& operator=(const ArrayTensor&) = delete;

  const kgrpo_tensor* c() const { return &c_; }

 private:
  int64_t shape_;
  kgrpo_tensor c_{};
};

// True if reductions can be begun and waited for later; false for a transport that only blocks.
inline bool ReducesInBackground(const kgrpo_collective_interface& api) {
  return api.begin_reduce_scatter != nullptr && api.finish_reductions != nullptr;
}

// A view of what a kgrpo_host offers; copies refer to the same. Threads and duties: kgrpo/draft/collective.h.
class Collective {
 public:
  Collective() = default;  // alone
  explicit Collective(const kgrpo_host* host)
      : context_(host->context),
        api_(static_cast<const kgrpo_collective_interface*>(
            host->get_interface(host->context, KGRPO_LITERAL(KGRPO_COLLECTIVE_INTERFACE)))) {}

  bool alone() const { return api_ == nullptr; }
  uint32_t rank() const { return alone() ? 0 : api_->info(context_)->rank; }
  uint32_t size() const { return alone() ? 1 : api_->info(context_)->size; }
  // Among the ranks on this machine.
  uint32_t local_rank() const { return alone() ? 0 : api_->info(context_)->local_rank; }
  uint32_t local_size() const { return alone() ? 1 : api_->info(context_)->local_size; }

  // The first element of a rank's slice of `count` elements; the slice ends where the next rank's begins.
  static size_t SliceBegin(size_t count, uint32_t rank, uint32_t size) { return count * rank / size; }

  void AllReduce(const ArrayTensor& values, kgrpo_reduction reduction = KGRPO_REDUCTION_SUM) const {
    if (!alone()) Check(api_->all_reduce(context_, values.c(), reduction));
  }
  void ReduceScatter(const ArrayTensor& values) const {
    if (!alone()) Check(api_->reduce_scatter(context_, values.c()));
  }
  void AllGather(const ArrayTensor& values) const {
    if (!alone()) Check(api_->all_gather(context_, values.c()));
  }
  void Broadcast(const ArrayTensor& values, uint32_t root) const {
    if (!alone()) Check(api_->broadcast(context_, values.c(), root));
  }

  // True if there are other ranks, and reductions with them can be begun and waited for later.
  bool reduces_in_background() const { return !alone() && ReducesInBackground(*api_); }
  void BeginReduceScatter(const ArrayTensor& values, size_t begin, size_t end, void* stream) const {
    Check(api_->begin_reduce_scatter(context_, values.c(), begin, end, stream));
  }
  void FinishReductions() const { Check(api_->finish_reductions(context_)); }

  // Sums an array or a container of double over all ranks.
  template <typename Values>
  void Sum(Values& values) const {
    AllReduce(ArrayTensor(std::data(values), std::size(values)));
  }
  double SumOf(double value) const { return Reduced(value, KGRPO_REDUCTION_SUM); }
  double MinOf(double value) const { return Reduced(value, KGRPO_REDUCTION_MIN); }
  double MaxOf(double value) const { return Reduced(value, KGRPO_REDUCTION_MAX); }

 private:
  double Reduced(double value, kgrpo_reduction reduction) const {
    AllReduce(ArrayTensor(&value, 1), reduction);
    return value;
  }

  void* context_ = nullptr;
  const kgrpo_collective_interface* api_ = nullptr;
};

}  // namespace kgrpo
#endif
