#include "evaluator_sim/timing_expected.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "evaluator_shared/dtype.h"

namespace kgrpo::evaluator_sim {

using evaluator::Parameter;
using evaluator::Trouble;

namespace {

// Twice what is allowed at correctness sizes, as on a GPU: inputs at the timing size are not drawn for it.
constexpr double kSlack = 2;

// An unnamed file on disk where the file system has such, since its pages can be given up; else in memory.
evaluator::Descriptor UnnamedFile(const std::string& directory) {
  evaluator::Descriptor file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() < 0) file = evaluator::Descriptor(memfd_create("kgrpo timing outputs", MFD_CLOEXEC));
  if (file.get() < 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("no file for expected outputs: ") + std::strerror(errno));
  return file;
}

// In the output's dtype: half the bytes of a double, for one more rounding.
evaluator::Descriptor Store(const Parameter& parameter, const evaluator::Expected& expected,
                            const std::string& directory) {
  constexpr size_t kElements = 65536;  // at once
  const size_t size = evaluator::Info(parameter.dtype).size;
  const bool floating = evaluator::Info(parameter.dtype).is_floating;
  const size_t elements = floating ? expected.reals.size() : expected.wholes.size();
  evaluator::Descriptor file = UnnamedFile(directory);
  std::vector<uint8_t> bytes;
  for (size_t first = 0; first < elements; first += kElements) {
    const size_t count = std::min(kElements, elements - first);
    bytes.resize(count * size);
    for (size_t i = 0; i < count; ++i) {
      if (floating) {
        evaluator::StoreDouble(parameter.dtype, expected.reals[first + i], bytes.data() + i * size);
      } else {
        evaluator::StoreInteger(parameter.dtype, expected.wholes[first + i], bytes.data() + i * size);
      }
    }
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t written = write(file.get(), bytes.data() + at, bytes.size() - at);
      if (written <= 0)
        throw Error(KGRPO_ERROR_UNAVAILABLE, directory + ": no room for expected outputs: " + std::strerror(errno));
      at += static_cast<size_t>(written);
    }
  }
  return file;
}

}  // namespace

MappedFile::MappedFile(int file, uint64_t bytes) : bytes_(bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("a file cannot be mapped: ") + std::strerror(errno));
  data_ = static_cast<const uint8_t*>(data);
}

MappedFile::~MappedFile() {
  munmap(const_cast<uint8_t*>(data_), bytes_);
}

TimingExpected::TimingExpected(const evaluator::Problem& problem, const std::vector<evaluator::Expected>& expected,
                               const std::string& directory)
    : problem_(problem), files_(expected.size()), bounds_(expected.size()) {
  const double accumulations = problem.accumulations.Evaluate(problem.timing);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    bounds_[i] = evaluator::BoundFor(problem, parameter, accumulations, expected[i]);
    bounds_[i].relative *= kSlack;
    bounds_[i].absolute *= kSlack;
    files_[i] = Store(parameter, expected[i], directory);
  }
}

Trouble TimingExpected::Compare(size_t index, const simt::Allocation& memory, int before, bool all) const {
  const Parameter& parameter = problem_.parameters[index];
  const evaluator::Rows rows = parameter.RowsAt(problem_.timing);
  const auto size = static_cast<uint64_t>(evaluator::Info(parameter.dtype).size);
  const auto row_elements = static_cast<uint64_t>(rows.elements), pitch = static_cast<uint64_t>(rows.pitch);
  const MappedFile expected(files_[index].get(), static_cast<uint64_t>(rows.count) * row_elements * size);
  std::unique_ptr<MappedFile> old;
  if (before >= 0) old = std::make_unique<MappedFile>(before, memory.bytes());
  const auto* got = reinterpret_cast<const uint8_t*>(memory.data());

  uint64_t compared = 0, wrong = 0, unwritten = 0, worst = 0, first_unwritten = 0;
  double largest = 0;
  for (uint64_t at = 0; at < memory.bytes();) {
    if (!all) {
      at = memory.NextWritten(at) / size * size;
      if (at >= memory.bytes()) break;
    }
    const uint64_t element = at / size, column = element % pitch;
    const uint8_t* here = got + at;
    const bool changed = old == nullptr ? memory.Initialised(at, size) : std::memcmp(here, old->data() + at, size) != 0;
    at += size;
    if (column >= row_elements) {
      if (old == nullptr ? memory.NextWritten(at - size) < at : changed)
        return {"out_of_bounds", "It writes between the rows of " + parameter.name + "."};
      continue;
    }
    if (!all && !changed) continue;
    const uint64_t dense = element / pitch * row_elements + column;
    ++compared;
    if (all && old == nullptr && !changed) {
      if (unwritten++ == 0) first_unwritten = dense;
      continue;
    }
    const double error = evaluator::ElementError(parameter, here, expected.data() + dense * size, bounds_[index]);
    if (error > 1) ++wrong;
    if (error > largest) largest = error, worst = dense;
  }
  if (wrong + unwritten == 0) return {};
  const auto name = [&](uint64_t dense) {
    return evaluator::ElementName(parameter, parameter.ShapeAt(problem_.timing), static_cast<int64_t>(dense));
  };
  if (unwritten > 0) {
    return {"wrong", std::to_string(unwritten) + " of " + std::to_string(compared) + " elements of " + parameter.name +
                         " were never written, the first is " + name(first_unwritten) + "."};
  }
  return {"wrong", std::to_string(wrong) + " of " + std::to_string(compared) + " elements of " + parameter.name +
                       (all ? "" : " that some of the blocks wrote") + " are wrong; the worst is " + name(worst) + "."};
}

}  // namespace kgrpo::evaluator_sim
