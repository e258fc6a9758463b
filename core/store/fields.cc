#include "store/fields.h"

namespace kgrpo {

std::string ColumnList::Selected() const {
  std::string list;
  for (const Column& column : columns_) {
    list += list.empty() ? "" : ", ";
    list += column.is_source ? "(SELECT text FROM sources WHERE hash = " + column.name + ")" : column.name;
  }
  return list;
}

std::string ColumnList::Declared() const {
  std::string list;
  for (const Column& column : columns_) {
    list += list.empty() ? "" : ", ";
    list += column.name + " " + column.type + (column.nullable ? "" : " NOT NULL DEFAULT " + column.fallback);
  }
  return list;
}

std::string ColumnList::Names() const {
  std::string list;
  for (const Column& column : columns_) list += (list.empty() ? "" : ", ") + column.name;
  return list;
}

const ColumnList& RoundColumns() {
  static const ColumnList columns = [] {
    ColumnList list;
    const RoundRecord round;
    VisitFields(round, list);
    return list;
  }();
  return columns;
}

const ColumnList& TrajectoryColumns() {
  static const ColumnList columns = [] {
    ColumnList list;
    const TrajectoryRecord trajectory;
    VisitTrajectoryFields(trajectory, list);
    return list;
  }();
  return columns;
}

}  // namespace kgrpo
