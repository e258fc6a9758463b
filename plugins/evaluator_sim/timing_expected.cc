#include "evaluator_sim/timing_expected.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "judge/problem/dtype.h"

namespace kgrpo::evaluator_sim {

using evaluator::Parameter;
using evaluator::Trouble;

namespace {

// One output's header in the file: the error bound and the size of the elements, which follow.
struct Record {
  double relative, absolute, low_sums;
  uint64_t bytes;
};

// Rounds up to a multiple of eight, so that records are aligned.
uint64_t Padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// The dtype of an output's expected values in the file: half the bytes of a double or less. Rounded to 16 bits, as the
// kernel's own results are, they would be off by as much as these.
evaluator::DType KeptType(const Parameter& parameter) {
  const evaluator::DTypeInfo& info = evaluator::Info(parameter.dtype);
  return info.is_floating && info.size < sizeof(float) ? evaluator::DType::kFloat32 : parameter.dtype;
}

uint64_t BytesOf(const Parameter& parameter, const evaluator::Bindings& size) {
  return static_cast<uint64_t>(parameter.Elements(size)) * evaluator::Info(KeptType(parameter)).size;
}

void WriteElements(const Parameter& parameter, const evaluator::Expected& expected,
                   const evaluator::KeptFiles::Append& append) {
  constexpr size_t kElements = 65536;  // written at a time
  const evaluator::DType kept = KeptType(parameter);
  const size_t size = evaluator::Info(kept).size;
  const bool floating = evaluator::Info(kept).is_floating;
  const size_t elements = floating ? expected.reals.size() : expected.wholes.size();
  std::vector<uint8_t> bytes;
  for (size_t first = 0; first < elements; first += kElements) {
    const size_t count = std::min(kElements, elements - first);
    bytes.resize(count * size);
    for (size_t i = 0; i < count; ++i) {
      if (floating) {
        evaluator::StoreDouble(kept, expected.reals[first + i], bytes.data() + i * size);
      } else {
        evaluator::StoreInteger(kept, expected.wholes[first + i], bytes.data() + i * size);
      }
    }
    append(bytes.data(), bytes.size());
  }
  bytes.assign(Padded(elements * size) - elements * size, 0);
  append(bytes.data(), bytes.size());
}

}  // namespace

Trouble NeverWritten(const Parameter& parameter, uint64_t missing, uint64_t elements) {
  return {"wrong", std::to_string(missing) + " of " + std::to_string(elements) + " elements of " + parameter.name +
                       " were never written."};
}

void TimingExpected::Write(const evaluator::Problem& problem, const std::vector<evaluator::Expected>& expected,
                           const std::vector<evaluator::ErrorBound>& bounds,
                           const evaluator::KeptFiles::Append& append) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    const Record record = {bounds[i].relative, bounds[i].absolute, bounds[i].low_sums,
                           BytesOf(parameter, problem.timing)};
    append(&record, sizeof record);
    WriteElements(parameter, expected[i], append);
  }
}

bool TimingExpected::IsExact() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Parameter& parameter = problem_.parameters[i];
    if (parameter.IsWritten() && evaluator::Info(parameter.dtype).is_floating && outputs_[i].bound.absolute == 0)
      return true;
  }
  return false;
}

std::shared_ptr<const TimingExpected> TimingExpected::Read(const evaluator::Problem& problem,
                                                           std::shared_ptr<const evaluator::MappedFile> file) {
  if (file == nullptr) return nullptr;
  const std::shared_ptr<TimingExpected> read(new TimingExpected(problem, std::move(file)));
  read->outputs_.resize(problem.parameters.size());
  uint64_t at = evaluator::KeptFiles::kHeaderBytes;
  for (size_t i = 0; i < read->outputs_.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    Record record;
    if (at + sizeof record > read->file_->bytes()) return nullptr;
    std::memcpy(&record, read->file_->data() + at, sizeof record);
    at += sizeof record;
    if (record.bytes != BytesOf(parameter, problem.timing) || at + Padded(record.bytes) > read->file_->bytes())
      return nullptr;
    read->outputs_[i] = {{record.relative, record.absolute, record.low_sums}, at, record.bytes};
    at += Padded(record.bytes);
  }
  return at == read->file_->bytes() ? read : nullptr;
}

// Compares elements of one output with the expected ones.
class TimingExpected::Tally {
 public:
  Tally(const Parameter& parameter, const evaluator::Rows& rows, evaluator::ErrorBound bound, const uint8_t* got,
        const uint8_t* expected)
      : parameter_(parameter),
        size_(evaluator::Info(parameter.dtype).size),
        kept_(KeptType(parameter)),
        kept_size_(evaluator::Info(kept_).size),
        // Without gaps all is one row.
        row_(static_cast<uint64_t>(rows.HasGaps() ? rows.elements : rows.count * rows.elements)),
        pitch_(static_cast<uint64_t>(rows.HasGaps() ? rows.pitch : rows.count * rows.elements)),
        bound_(bound),
        got_(got),
        expected_(expected) {}

  // Elements [begin, end) of the memory.
  void Add(uint64_t begin, uint64_t end) {
    while (begin < end) {
      const uint64_t row = begin / pitch_, column = begin % pitch_, stop = std::min(end, (row + 1) * pitch_);
      const uint64_t inside = std::min(stop - row * pitch_, row_);
      if (column < inside) AddRow(begin, row * row_ + column, inside - column);
      in_gap = in_gap || (stop > begin && stop - row * pitch_ > row_);
      begin = stop;
    }
  }

  uint64_t compared = 0, wrong = 0, worst = 0;  // worst: an index without gaps
  double largest = 0;                           // error, in units of the error bound
  double worst_got = 0, worst_wanted = 0;
  bool in_gap = false;

 private:
  void AddRow(uint64_t element, uint64_t dense, uint64_t count) {
    compared += count;
    const bool single = parameter_.dtype == evaluator::DType::kFloat32;
    for (uint64_t i = 0; i < count; ++i) {
      const uint8_t *got = got_ + (element + i) * size_, *wanted = expected_ + (dense + i) * kept_size_;
      if (single) {  // by far the most common, and nearly always correct
        float g = 0, w = 0;
        std::memcpy(&g, got, sizeof g);
        std::memcpy(&w, wanted, sizeof w);
        const double magnitude = std::fabs(static_cast<double>(w));
        if (magnitude <= std::numeric_limits<float>::max() &&
            std::fabs(static_cast<double>(g) - w) <=
                std::min(largest, 1.0) * (bound_.absolute + bound_.relative * magnitude))
          continue;
      }
      const double error = evaluator::ElementError(parameter_, got, wanted, kept_, bound_);
      if (error > 1) ++wrong;
      if (error > largest) {
        largest = error;
        worst = dense + i;
        worst_got = evaluator::LoadDouble(parameter_.dtype, got);
        worst_wanted = evaluator::LoadDouble(kept_, wanted);
      }
    }
  }

  const Parameter& parameter_;
  const uint64_t size_;
  const evaluator::DType kept_;
  const uint64_t kept_size_, row_, pitch_;
  const evaluator::ErrorBound bound_;
  const uint8_t* const got_;
  const uint8_t* const expected_;
};

Trouble TimingExpected::Compare(size_t index, const simt::Allocation& memory, int before, bool all,
                                evaluator::WorstErrors* worst) const {
  const Parameter& parameter = problem_.parameters[index];
  const evaluator::Rows rows = parameter.RowsAt(problem_.timing);
  const auto size = static_cast<uint64_t>(evaluator::Info(parameter.dtype).size);
  const auto elements = static_cast<uint64_t>(rows.count * rows.elements);
  const auto* got = reinterpret_cast<const uint8_t*>(memory.data());
  Tally tally(parameter, rows, outputs_[index].bound, got, file_->data() + outputs_[index].begin);
  const bool inout = before >= 0;
  if (inout) {
    const evaluator::MappedFile old(before, memory.bytes());
    for (uint64_t element = 0; element < memory.bytes() / size; ++element) {
      const bool changed = std::memcmp(got + element * size, old.data() + element * size, size) != 0;
      const bool gap = static_cast<int64_t>(element) % rows.pitch >= rows.elements;
      if (changed || (all && !gap)) tally.Add(element, element + 1);
    }
  } else {
    for (uint64_t begin = memory.NextWritten(0), end = 0; begin < memory.bytes(); begin = memory.NextWritten(end)) {
      end = memory.NextUnwritten(begin);
      tally.Add((begin + size - 1) / size, end / size);
    }
  }
  const auto name = [&](uint64_t dense) {
    return evaluator::ElementName(parameter, parameter.ShapeAt(problem_.timing), static_cast<int64_t>(dense));
  };
  if (tally.in_gap) return {"out_of_bounds", "It writes between the rows of " + parameter.name + "."};
  // The tolerated number of differing elements shrinks with the share that was compared.
  const int64_t differing = problem_.tolerance.Differing(static_cast<int64_t>(tally.compared));
  if (tally.wrong > static_cast<uint64_t>(differing)) {
    const bool floating = evaluator::Info(parameter.dtype).is_floating;
    return {"wrong",
            std::to_string(tally.wrong) + " of " + std::to_string(tally.compared) + " elements of " + parameter.name +
                (all ? "" : " that some of the blocks wrote") + " are wrong; " +
                evaluator::WorstText(parameter, name(tally.worst), tally.worst_got, tally.worst_wanted, tally.largest,
                                     outputs_[index].bound, differing) +
                ".",
            floating ? evaluator::WrongOutput{parameter.name, tally.largest} : evaluator::WrongOutput()};
  }
  if (worst != nullptr) worst->Add(index, tally.largest);
  if (all && tally.compared < elements) return NeverWritten(parameter, elements - tally.compared, elements);
  return {};
}

}  // namespace kgrpo::evaluator_sim
