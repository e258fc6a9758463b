// The fields of rounds and trajectories (store/records.h) as columns of run.sqlite. Used by store/database.cc.
#ifndef KGRPO_STORE_FIELDS_H
#define KGRPO_STORE_FIELDS_H

#include <kgrpo/support/sqlite.h>
#include "store/json.h"
#include "store/records.h"

#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// Forms of SQLite's values: CREATE TABLE, SELECT and the numbers of columns follow from them.
struct Column {
  std::string name;
  const char* type;
  bool nullable;         // a field of a group that may be absent
  bool is_source;        // a hash in `sources`
  std::string fallback;  // SQL of the value in a record that lacks the column
};

// Collects the columns of the fields that it visits.
class ColumnList {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    columns_.push_back({name, TypeOf<T>(), nullable_, false, FallbackOf(value)});
  }
  void operator()(KernelText field, const std::string& text) {
    columns_.push_back({field.name, "TEXT", nullable_, true, FallbackOf(text)});
  }
  void operator()(Digits field, uint64_t value) {
    columns_.push_back({field.name, "TEXT", nullable_, false, FallbackOf(std::to_string(value))});
  }
  template <typename T, typename Fields>
  void Group(const std::optional<T>&, const Fields& fields) {
    nullable_ = true;
    const T empty{};
    fields(empty);
    nullable_ = false;
  }

  const std::vector<Column>& columns() const { return columns_; }

  // "a, b, (SELECT text FROM sources WHERE hash = c)": what FieldReader reads.
  std::string Selected() const;
  // "a INTEGER NOT NULL DEFAULT 0, b REAL": what FieldWriter writes.
  std::string Declared() const;
  std::string Names() const;  // "a, b, c"

 private:
  template <typename T>
  static constexpr const char* TypeOf() {
    if constexpr (std::integral<T> || std::same_as<T, kgrpo_coder_outcome>) return "INTEGER";
    if constexpr (std::floating_point<T>) return "REAL";
    if constexpr (std::same_as<T, std::vector<int32_t>> || std::same_as<T, std::vector<float>>) return "BLOB";
    return "TEXT";
  }

  template <typename T>
  std::string FallbackOf(const T& value) const {
    if (nullable_) return "NULL";  // the group is absent
    if constexpr (std::integral<T> || std::same_as<T, kgrpo_coder_outcome>)
      return std::to_string(static_cast<int64_t>(value));
    else if constexpr (std::floating_point<T>)
      return std::to_string(value);
    else if constexpr (std::same_as<T, std::vector<int32_t>> || std::same_as<T, std::vector<float>>)
      return "x''";
    else
      return "'" + TextOf(value) + "'";
  }
  static std::string TextOf(const std::string& text) { return text; }
  static std::string TextOf(const std::vector<ChatMessage>& messages) { return MessagesToJson(messages); }
  static std::string TextOf(const std::vector<Metric>& metrics) { return MetricsToJson(metrics); }
  static std::string TextOf(const std::vector<Remark>& remarks) { return RemarksToJson(remarks); }
  static std::string TextOf(RoundPart part) { return RoundPartName(part); }

  std::vector<Column> columns_;
  bool nullable_ = false;
};

const ColumnList& RoundColumns();
const ColumnList& TrajectoryColumns();

// Binds the visited fields to a statement, in order. `source` stores a kernel's text and returns its hash.
class FieldWriter {
 public:
  FieldWriter(Statement& row, std::function<std::string(const std::string&)> source)
      : row_(row), source_(std::move(source)) {}

  template <typename T>
  void operator()(const char*, const T& value) {
    if (absent_) {
      row_ << nullptr;
    } else {
      Bind(value);
    }
  }
  void operator()(KernelText field, const std::string& text) { (*this)(field.name, absent_ ? text : source_(text)); }
  void operator()(Digits field, uint64_t value) { (*this)(field.name, std::to_string(value)); }
  template <typename T, typename Fields>
  void Group(const std::optional<T>& group, const Fields& fields) {
    absent_ = !group;
    const T empty{};
    fields(group ? *group : empty);
    absent_ = false;
  }

 private:
  template <typename T>
  void Bind(const T& value) {
    row_ << value;
  }
  void Bind(const std::vector<int32_t>& ids) { row_.Blob(std::span(ids)); }
  void Bind(const std::vector<float>& values) { row_.Blob(std::span(values)); }
  void Bind(const std::vector<ChatMessage>& messages) { row_ << MessagesToJson(messages); }
  void Bind(const std::vector<Metric>& metrics) { row_ << MetricsToJson(metrics); }
  void Bind(const std::vector<Remark>& remarks) { row_ << RemarksToJson(remarks); }
  void Bind(RoundPart part) { row_ << RoundPartName(part); }
  void Bind(kgrpo_coder_outcome outcome) { row_ << static_cast<int>(outcome); }

  Statement& row_;
  std::function<std::string(const std::string&)> source_;
  bool absent_ = false;
};

// Reads the visited fields from a row of ColumnList::Selected(), from its column `first` on.
class FieldReader {
 public:
  FieldReader(const Statement& row, int first) : row_(row), next_(first) {}

  template <typename T>
  void operator()(const char*, T& value) {
    // NULL is a number that is not finite, or a field of a group that an earlier record lacks.
    if (!Skips() && (std::same_as<T, double> || !row_.IsNull(next_))) Take(value);
    ++next_;
  }
  void operator()(KernelText, std::string& text) {
    if (!Skips()) text = row_.Text(next_);
    ++next_;
  }
  void operator()(Digits, uint64_t& value) {
    if (!Skips()) value = std::stoull(row_.Text(next_));
    ++next_;
  }
  template <typename T, typename Fields>
  void Group(std::optional<T>& group, const Fields& fields) {
    // A member that is not a number is NULL too, so the group is absent only if all of its columns are NULL.
    const int first = next_;
    T read{};
    looks_ = true;
    any_ = false;
    fields(read);
    looks_ = false;
    if (!any_) return;
    next_ = first;
    fields(read);
    group = std::move(read);
  }

 private:
  // True while a group's columns are only looked at.
  bool Skips() {
    any_ = any_ || !row_.IsNull(next_);
    return looks_;
  }

  template <std::integral T>
  void Take(T& value) {
    value = static_cast<T>(row_.Integer(next_));
  }
  void Take(double& value) { value = row_.IsNull(next_) ? std::numeric_limits<double>::quiet_NaN() : row_.Real(next_); }
  void Take(std::string& text) { text = row_.Text(next_); }
  template <typename T>
  void TakeValues(std::vector<T>& values) {
    const std::span<const T> read = row_.Values<T>(next_);
    values.assign(read.begin(), read.end());
  }
  void Take(std::vector<int32_t>& ids) { TakeValues(ids); }
  void Take(std::vector<float>& values) { TakeValues(values); }
  void Take(std::vector<ChatMessage>& messages) { messages = MessagesFromJson(row_.Text(next_)); }
  void Take(std::vector<Metric>& metrics) { metrics = MetricsFromJson(row_.Text(next_)); }
  void Take(std::vector<Remark>& remarks) { remarks = RemarksFromJson(row_.Text(next_)); }
  void Take(RoundPart& part) { part = RoundPartOf(row_.Text(next_)); }
  void Take(kgrpo_coder_outcome& outcome) { outcome = static_cast<kgrpo_coder_outcome>(row_.Integer(next_)); }

  const Statement& row_;
  int next_;
  bool looks_ = false, any_ = false;  // any_: a column of the group is not NULL
};

}  // namespace kgrpo
#endif
