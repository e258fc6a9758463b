#include "trainer_shared/adamw.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace kgrpo::trainer {
namespace {

constexpr size_t kCopyBytes = 1 << 24;  // bytes copied through the host at once when state is saved or loaded

std::unique_ptr<TensorMath> MathFor(const ParameterSet& set, CudaTensorMathFactory cuda) {
  if (!set.on_cuda) return MakeCpuTensorMath();
  if (cuda == nullptr) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "the policy is on a GPU, and this trainer was built without CUDA");
  }
  return cuda(set.device);
}

[[noreturn]] void RefuseState(const std::string& problem) {
  throw Error(KGRPO_ERROR_INVALID, "the saved trainer state cannot be used: " + problem);
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string TypeText(ValueType type) { return type == ValueType::kFloat32 ? "float32" : "bfloat16"; }

void* ValueAt(const ParameterSpan& span, size_t element) {
  return static_cast<char*>(span.value) + element * SizeOf(span.value_type);
}

// Calls piece(offset in bytes, size) for consecutive pieces of an array of `bytes`.
void InPieces(size_t bytes, const std::function<void(size_t, size_t)>& piece) {
  for (size_t offset = 0; offset < bytes; offset += kCopyBytes) piece(offset, std::min(kCopyBytes, bytes - offset));
}

}  // namespace

struct AdamW::Loaded {
  uint64_t steps = 0;
  std::vector<Moments> moments;
};

AdamW::AdamW(ParameterSet parameters, const AdamWOptions& options, CudaTensorMathFactory cuda, const Collective& ranks)
    : set_(std::move(parameters)), options_(options), ranks_(ranks), math_(MathFor(set_, cuda)) {
  for (const ParameterSpan& span : set_.spans) ranks_.Broadcast(Values(span), 0);
}

AdamW::Slice AdamW::SliceOf(const ParameterSpan& span, uint32_t rank) const {
  return {Collective::SliceBegin(span.count, rank, ranks_.size()),
          Collective::SliceBegin(span.count, rank + 1, ranks_.size())};
}

ArrayTensor AdamW::Values(const ParameterSpan& span) const {
  const bool narrow = span.value_type == ValueType::kBfloat16;
  return {span.value,
          span.count,
          static_cast<uint8_t>(narrow ? KGRPO_DTYPE_BFLOAT : KGRPO_DTYPE_FLOAT),
          static_cast<uint8_t>(narrow ? 16 : 32),
          set_.on_cuda ? KGRPO_DEVICE_CUDA : KGRPO_DEVICE_CPU,
          set_.device};
}

AdamW::Moments AdamW::MakeMoments(const ParameterSpan& span) {
  Moments made;
  const size_t count = SliceOf(span).count();
  made.first = math_->Allocate(count);
  made.second = math_->Allocate(count);
  if (span.value_type == ValueType::kBfloat16) made.master = math_->Allocate(count);
  return made;
}

void AdamW::EnsureMoments() {
  if (!moments_.empty()) return;
  std::vector<Moments> made;
  for (const ParameterSpan& span : set_.spans) {
    made.push_back(MakeMoments(span));
    const Slice slice = SliceOf(span);
    if (made.back().master != nullptr)
      math_->Widen(ValueAt(span, slice.begin), made.back().master->data(), slice.count());
  }
  moments_ = std::move(made);
}

double AdamW::GradientNorm() {
  double sum = 0;
  for (const ParameterSpan& span : set_.spans) {
    const Slice slice = SliceOf(span);
    sum += math_->SumOfSquares(span.gradient + slice.begin, slice.count());
  }
  return std::sqrt(ranks_.SumOf(sum));
}

void AdamW::Step(double learning_rate, double gradient_scale) {
  EnsureMoments();
  ++steps_;
  for (size_t i = 0; i < set_.spans.size(); ++i) {
    const ParameterSpan& span = set_.spans[i];
    AdamWTensor tensor;
    const Slice slice = SliceOf(span);
    tensor.value = ValueAt(span, slice.begin);
    tensor.value_type = span.value_type;
    tensor.master = moments_[i].master == nullptr ? nullptr : moments_[i].master->data();
    tensor.gradient = span.gradient + slice.begin;
    tensor.first_moment = moments_[i].first->data();
    tensor.second_moment = moments_[i].second->data();
    tensor.count = slice.count();
    AdamWScalars scalars;
    scalars.learning_rate = learning_rate;
    scalars.beta1 = options_.beta1;
    scalars.beta2 = options_.beta2;
    scalars.epsilon = options_.epsilon;
    scalars.weight_decay = span.decay ? options_.weight_decay : 0.0;
    scalars.step = steps_;
    scalars.gradient_scale = gradient_scale;
    math_->AdamWStep(tensor, scalars);
  }
  if (ranks_.alone()) return;
  math_->Wait();
  for (const ParameterSpan& span : set_.spans) ranks_.AllGather(Values(span));
}

// Writes the parameter's part of an array that is divided among the ranks: the owner of each piece broadcasts it.
void AdamW::SaveArray(StateWriter& writer, const Parameter& parameter, DeviceArray& array) {
  const ParameterSpan& span = set_.spans[parameter.span];
  const size_t end = parameter.offset + parameter.count;
  std::vector<unsigned char> buffer;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Slice slice = SliceOf(span, rank);
    const size_t first = std::max(parameter.offset, slice.begin), last = std::min(end, slice.end);
    if (first >= last) continue;
    InPieces((last - first) * sizeof(float), [&](size_t offset, size_t size) {
      buffer.resize(size);
      if (rank == ranks_.rank())
        math_->CopyToHost(buffer.data(), reinterpret_cast<char*>(array.data() + (first - slice.begin)) + offset, size);
      ranks_.Broadcast(ArrayTensor(buffer.data(), buffer.size()), rank);
      writer.Bytes(buffer.data(), size);
    });
  }
}

// Every rank reads the whole array and keeps its own slice.
void AdamW::LoadArray(StateReader& reader, const Parameter& parameter, DeviceArray& array) {
  const Slice slice = SliceOf(set_.spans[parameter.span]);
  std::vector<float> buffer;
  InPieces(parameter.count * sizeof(float), [&](size_t offset, size_t size) {
    buffer.resize(size / sizeof(float));
    reader.Bytes(buffer.data(), size);
    const size_t begin = parameter.offset + offset / sizeof(float), end = begin + buffer.size();
    const size_t first = std::max(begin, slice.begin), last = std::min(end, slice.end);
    if (first >= last) return;
    math_->CopyFromHost(array.data() + (first - slice.begin), buffer.data() + (first - begin),
                        (last - first) * sizeof(float));
  });
}

uint64_t AdamW::Fingerprint(const Parameter& parameter) {
  const size_t bytes = parameter.count * SizeOf(parameter.value_type);
  std::vector<char> buffer(std::min(kCopyBytes, bytes));
  Checksum checksum;
  InPieces(bytes, [&](size_t offset, size_t size) {
    math_->CopyToHost(buffer.data(), static_cast<const char*>(parameter.value) + offset, size);
    checksum.Add(buffer.data(), size);
  });
  return checksum.value();
}

// Fields: steps, whether there are moments, number of parameters; for each its name, type, shape and fingerprint; then,
// if there are moments, for each the first moment, the second, and the master of a bfloat16 value.
void AdamW::Save(StateWriter& writer) {
  writer.U64(steps_);
  writer.U64(moments_.empty() ? 0 : 1);
  writer.U64(set_.parameters.size());
  for (const Parameter& parameter : set_.parameters) {
    writer.Text(parameter.name);
    writer.U64(static_cast<uint64_t>(parameter.value_type));
    writer.U64(parameter.shape.size());
    for (int64_t extent : parameter.shape) writer.U64(static_cast<uint64_t>(extent));
    writer.U64(Fingerprint(parameter));
  }
  if (moments_.empty()) return;
  for (const Parameter& parameter : set_.parameters) {
    const Moments& moments = moments_[parameter.span];
    for (DeviceArray* array : {moments.first.get(), moments.second.get(), moments.master.get()}) {
      if (array != nullptr) SaveArray(writer, parameter, *array);
    }
  }
}

std::shared_ptr<AdamW::Loaded> AdamW::Load(StateReader& reader) {
  auto loaded = std::make_shared<Loaded>();
  loaded->steps = reader.U64();
  const bool has_moments = reader.U64() != 0;
  const uint64_t count = reader.U64();
  if (count != set_.parameters.size()) {
    RefuseState("it is of a model with " + std::to_string(count) + " parameter tensors, this one has " +
                std::to_string(set_.parameters.size()));
  }
  for (const Parameter& parameter : set_.parameters) {
    const std::string name = reader.Text();
    const auto type = static_cast<ValueType>(reader.U64());
    std::vector<int64_t> shape(std::min<uint64_t>(reader.U64(), 16));
    for (int64_t& extent : shape) extent = static_cast<int64_t>(reader.U64());
    if (name != parameter.name || type != parameter.value_type || shape != parameter.shape) {
      RefuseState("it is of another model: it has " + name + " " + TypeText(type) + ShapeText(shape) +
                  " where this one has " + parameter.name + " " + TypeText(parameter.value_type) +
                  ShapeText(parameter.shape));
    }
    if (reader.U64() != Fingerprint(parameter)) {
      RefuseState("parameter " + name +
                  " has other values than when it was saved; load the policy of the same checkpoint");
    }
  }
  if (!has_moments) return loaded;
  for (const ParameterSpan& span : set_.spans) loaded->moments.push_back(MakeMoments(span));
  for (const Parameter& parameter : set_.parameters) {
    const Moments& moments = loaded->moments[parameter.span];
    for (DeviceArray* array : {moments.first.get(), moments.second.get(), moments.master.get()}) {
      if (array != nullptr) LoadArray(reader, parameter, *array);
    }
  }
  return loaded;
}

void AdamW::Commit(const std::shared_ptr<Loaded>& loaded) {
  steps_ = loaded->steps;
  moments_ = std::move(loaded->moments);
}

}  // namespace kgrpo::trainer
