#include "evaluator_cuda/ncu_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace kgrpo::evaluator_cuda {
namespace {

using Row = std::vector<std::string>;

// Parses the CSV record at `at` and moves `at` behind it. Returns nothing where no record with quotes begins there. A
// field in quotes may hold commas, doubled quotes and ends of lines.
std::optional<Row> ReadRow(std::string_view text, size_t* at) {
  if (*at >= text.size() || text[*at] != '"') return std::nullopt;
  Row row(1);
  size_t i = *at;
  bool quoted = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        row.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        row.back() += c;
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      row.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      row.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  *at = std::min(i + 1, text.size());
  return row;
}

// "1,205.00" is 1205; "n/a", "" and other text are nothing.
std::optional<double> NumberIn(const std::string& text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != ','; });
  if (digits.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

class Table {
 public:
  // Returns true, and keeps the columns, if the row is the header of a table.
  bool Begin(const Row& row) {
    const auto find = [&row](const char* name) {
      return static_cast<size_t>(std::find(row.begin(), row.end(), name) - row.begin());
    };
    const size_t id = find("ID"), kernel = find("Kernel Name");
    if (id == row.size() || kernel == row.size()) return false;
    head_ = row;
    id_ = id;
    kernel_ = kernel;
    name_ = find("Metric Name");
    value_ = find("Metric Value");
    return true;
  }

  void Add(const Row& row, std::vector<ProfiledKernel>* kernels) {
    if (head_.empty() || row.size() <= std::max(id_, kernel_) || row[id_].empty()) return;  // units have no ID
    if (row[id_] != last_id_ || kernels->empty()) {
      kernels->push_back({row[kernel_], {}});
      last_id_ = row[id_];
    }
    std::map<std::string, double>& counts = kernels->back().counts;
    const auto note = [&counts](const std::string& name, const std::string& text) {
      if (const std::optional<double> number = NumberIn(text)) counts.emplace(name, *number);
    };
    if (name_ < head_.size()) {
      if (value_ < row.size() && name_ < row.size()) note(row[name_], row[value_]);
      return;
    }
    for (size_t i = 0; i < std::min(row.size(), head_.size()); ++i) {
      if (head_[i].find("__") != std::string::npos) note(head_[i], row[i]);
    }
  }

 private:
  Row head_;
  size_t id_ = 0, kernel_ = 0, name_ = 0, value_ = 0;
  std::string last_id_;
};

// "x" of "==ERROR== x", or nothing.
std::string After(std::string_view line, std::string_view mark) {
  if (!line.starts_with(mark)) return "";
  line.remove_prefix(mark.size());
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return std::string(line);
}

}  // namespace

NcuReport ParseNcuOutput(const std::string& output) {
  NcuReport report;
  Table table;
  std::string warning;
  for (size_t at = 0; at < output.size();) {
    if (const std::optional<Row> row = ReadRow(output, &at)) {
      if (!table.Begin(*row)) table.Add(*row, &report.kernels);
      continue;
    }
    const size_t end = std::min(output.find('\n', at), output.size());
    const std::string_view line = std::string_view(output).substr(at, end - at);
    at = end + 1;
    if (line.find("ERR_NVGPUCTRPERM") != std::string_view::npos) {
      report.not_permitted = true;
      continue;
    }
    constexpr std::string_view kUnknown = "Failed to find metric ";
    const std::string error = After(line, "==ERROR==");
    if (const size_t found = error.find(kUnknown); found != std::string::npos) {
      report.unknown_metrics.push_back(error.substr(found + kUnknown.size()));
    } else if (report.complaint.empty()) {
      report.complaint = error;
    }
    // The last one: the first is about clocks, always.
    if (const std::string text = After(line, "==WARNING=="); !text.empty()) warning = text;
  }
  if (report.complaint.empty() && report.kernels.empty()) report.complaint = warning;
  return report;
}

}  // namespace kgrpo::evaluator_cuda
