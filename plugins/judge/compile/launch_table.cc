#include "judge/compile/launch_table.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>
#include <string_view>

#include "judge/problem/dtype.h"

namespace kgrpo::evaluator {
namespace {

constexpr char kPtxFile[] = "kernel.ptx";
constexpr std::string_view kMark = "kgrpo launch:", kBlanks = " \t\r";
constexpr size_t kMostLaunches = 4096;

struct TableItem {
  std::string_view text;
  size_t column = 0;  // from 0
};

TableItem Trimmed(TableItem item) {
  const size_t first = std::min(item.text.find_first_not_of(kBlanks), item.text.size());
  item.text.remove_prefix(first);
  item.text = item.text.substr(0, item.text.find_last_not_of(kBlanks) + 1);
  return {item.text, item.column + first};
}

// Reads one line of the table.
class TableLine {
 public:
  TableLine(const Problem& problem, std::string_view line, int number)
      : problem_(problem), line_(line), number_(number) {}

  TableLaunch Read(size_t at) {
    const size_t begin = std::min(line_.find_first_not_of(kBlanks, at), line_.size());
    launch_.place = Place(begin);
    while ((at = line_.find_first_not_of(kBlanks, at)) != std::string_view::npos) {
      const size_t equals = line_.find('=', at);
      const std::string key(line_.substr(at, line_.find_first_of("= \t\r(", at) - at));
      if (key.empty() || at + key.size() != equals) Fail(at, "expected KEY=VALUE, as in grid=(ceil_div(n, 256))");
      if (!seen_.insert(key).second) Fail(at, key + " is given twice");
      const size_t end = EndOf(equals + 1, kBlanks);
      const TableItem value = {line_.substr(equals + 1, end - equals - 1), equals + 1};
      if (value.text.empty()) Fail(equals, key + " has no value");
      Set(key, at, value);
      at = end;
    }
    for (const char* key : {"entry", "grid", "block", "args"})
      if (!seen_.contains(key)) Fail(begin, std::string("the launch has no ") + key);
    return std::move(launch_);
  }

 private:
  std::string Place(size_t column) const {
    return std::string(kPtxFile) + ":" + std::to_string(number_) + ":" + std::to_string(column + 1);
  }
  [[noreturn]] void Fail(size_t column, const std::string& what) const {
    throw Error(KGRPO_ERROR_INVALID, Place(column) + ": " + what);
  }

  // Where the text from `at` ends: at one of `ends` outside parentheses, or at the line's end.
  size_t EndOf(size_t at, std::string_view ends) const {
    std::vector<size_t> open;
    for (; at < line_.size(); ++at) {
      if (open.empty() && ends.find(line_[at]) != std::string_view::npos) return at;
      if (line_[at] == '(') open.push_back(at);
      if (line_[at] == ')' && open.empty()) Fail(at, "this ) closes nothing");
      if (line_[at] == ')') open.pop_back();
    }
    if (!open.empty()) Fail(open.back(), "this ( is not closed");
    return at;
  }

  // The parts of "(a, b, c)", or the value itself.
  std::vector<TableItem> PartsOf(TableItem value) const {
    const size_t begin = value.column + 1, end = value.column + value.text.size();
    if (value.text[0] != '(' || EndOf(begin, ")") + 1 != end) return {value};
    std::vector<TableItem> parts;
    for (size_t at = begin; at < end;) {
      const size_t stop = EndOf(at, ",)");
      parts.push_back(Trimmed({line_.substr(at, stop - at), at}));
      at = stop + 1;
    }
    if (parts.size() == 1 && parts[0].text.empty()) parts.clear();
    return parts;
  }

  TableValue ValueOf(TableItem item, bool is_argument) const {
    const std::string text(item.text);
    TableValue value = {Expression(), Place(item.column), {}, false};
    std::set<std::string> names;
    try {
      value.expression = Expression::Parse(text);
      names = value.expression.Symbols();
    } catch (const std::invalid_argument& error) {
      Fail(item.column, error.what());
    }
    for (const std::string& name : names) {
      const auto parameter = std::find_if(problem_.parameters.begin(), problem_.parameters.end(),
                                          [&](const Parameter& one) { return one.name == name; });
      if (parameter == problem_.parameters.end() ? problem_.timing.contains(name)
                                                 : !parameter->IsTensor() && !Info(parameter->dtype).is_floating)
        continue;
      if (parameter == problem_.parameters.end())
        Fail(item.column, "'" + name + "' is neither a size nor a parameter of the problem");
      if (!is_argument) Fail(item.column, "'" + name + "' is no size and no integer scalar of the problem");
      if (parameter->IsTensor()) {
        value.has_address = true;
      } else if (text != name) {
        Fail(item.column, "'" + name + "' is " + Info(parameter->dtype).name + ": it can only be passed as it is");
      } else {
        value.scalar = static_cast<size_t>(parameter - problem_.parameters.begin());
      }
    }
    return value;
  }

  void Set(const std::string& key, size_t at, TableItem value) {
    if (key == "entry") {
      launch_.entry = value.text;
    } else if (key == "grid" || key == "block") {
      std::vector<TableValue>& dimensions = key == "grid" ? launch_.grid : launch_.block;
      for (const TableItem& part : PartsOf(value)) dimensions.push_back(ValueOf(part, false));
      if (dimensions.empty() || dimensions.size() > 3) Fail(value.column, key + " has 1 to 3 dimensions");
    } else if (key == "shared") {
      launch_.shared = ValueOf(value, false);
    } else if (key == "args") {
      for (const TableItem& part : PartsOf(value)) launch_.arguments.push_back(ValueOf(part, true));
    } else if (key == "cooperative" || key == "overlaps") {
      if (value.text != "0" && value.text != "1") Fail(value.column, key + " is 0 or 1");
      (key == "cooperative" ? launch_.cooperative : launch_.overlaps) = value.text == "1";
    } else if (key == "at") {
      for (const TableItem& part : PartsOf(value)) {
        const size_t equals = part.text.find('=');
        if (equals == std::string_view::npos) Fail(part.column, "expected NAME=VALUE, as in at=(n=1024)");
        const TableItem name = Trimmed({part.text.substr(0, equals), part.column});
        ValueOf(name, false);
        launch_.only_at.emplace_back(name.text,
                                     ValueOf(Trimmed({part.text.substr(equals + 1), part.column + equals + 1}), false));
      }
    } else {
      Fail(at, "unknown key '" + key + "'; known are entry, grid, block, shared, args, cooperative, overlaps and at");
    }
  }

  const Problem& problem_;
  const std::string_view line_;
  const int number_;
  std::set<std::string> seen_;
  TableLaunch launch_;
};

}  // namespace

bool IsPtx(const std::string& source) {
  size_t at = 0;
  while ((at = source.find_first_not_of(" \t\r\n", at)) != std::string::npos) {
    const bool line = source.compare(at, 2, "//") == 0;
    if (!line && source.compare(at, 2, "/*") != 0) return source.compare(at, 8, ".version") == 0;
    at = line ? source.find('\n', at) : source.find("*/", at + 2);
    if (at == std::string::npos) return false;
    at += line ? 1 : 2;
  }
  return false;
}

const char* OwnFileName(const std::string& source) { return IsPtx(source) ? kPtxFile : "kernel.cu"; }

std::vector<TableLaunch> ReadLaunchTable(const std::string& ptx, const Problem& problem) {
  std::vector<TableLaunch> table;
  int number = 1;
  for (size_t at = 0; at < ptx.size(); ++number) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size());
    const std::string_view line = std::string_view(ptx).substr(at, end - at);
    at = end + 1;
    const TableItem comment = Trimmed({line, 0});
    if (!comment.text.starts_with("//")) continue;
    const TableItem text = Trimmed({comment.text.substr(2), comment.column + 2});
    if (!text.text.starts_with(kMark)) continue;
    table.push_back(TableLine(problem, line, number).Read(text.column + kMark.size()));
    if (table.size() > kMostLaunches)
      throw Error(KGRPO_ERROR_INVALID, table.back().place + ": a table has at most 4096 launches");
  }
  if (table.empty()) {
    throw Error(KGRPO_ERROR_INVALID,
                std::string(kPtxFile) +
                    ":1:1: the PTX has no launch table; add a line such as `// kgrpo launch: entry=NAME "
                    "grid=(ceil_div(n, 256)) block=(256) args=(x, out, n)`");
  }
  return table;
}

}  // namespace kgrpo::evaluator
