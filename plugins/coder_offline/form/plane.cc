#include "coder_offline/form/plane.h"

namespace kgrpo::coder_offline {
namespace {

std::string Bare(std::string text) {
  while (text.size() > 2 && text.front() == '(' && text.back() == ')' && text.find('(', 1) == std::string::npos)
    text = text.substr(1, text.size() - 2);
  return text;
}

// Reads row = i / n, column = i % n, or with planes: row = i / n % m, plane = i / (n * m).
bool ReadDivided(const Form& form, const Dimension& dimension, Plane* plane) {
  const std::string& i = dimension.name;
  std::string columns, rows;
  for (const Statement& statement : plane->declarations) {
    const std::string value = Bare(form.source().Plain(statement.value));
    if (value.starts_with(i + "%") && value.find_first_of("+-*/(") == std::string::npos) {
      plane->column = statement.name;
      columns = value.substr(i.size() + 1);
    }
  }
  if (columns.empty()) return false;
  for (const Statement& statement : plane->declarations) {
    const std::string value = Bare(form.source().Plain(statement.value));
    if (value == i + "/" + columns) {
      plane->row = statement.name;
    } else if (value.starts_with("(" + i + "/" + columns + ")%") || value.starts_with(i + "/" + columns + "%")) {
      plane->row = statement.name;
      rows = value.substr(value.find('%') + 1);
    }
  }
  if (plane->row.empty() || dimension.limit.empty()) return false;
  plane->columns = columns;
  plane->index = i;
  plane->index_type = dimension.type;
  const std::string in_plane = plane->row + " * " + columns + " + " + plane->column;
  if (rows.empty()) {
    plane->rows = "(" + dimension.limit + ") / " + columns;
    plane->index_value = in_plane;
    return true;
  }
  for (const Statement& statement : plane->declarations) {
    const std::string value = form.source().Plain(statement.value);
    for (const std::string& product : {columns + "*" + rows, rows + "*" + columns}) {
      if (value == i + "/(" + product + ")" || value == i + "/" + columns + "/" + rows) plane->plane = statement.name;
    }
  }
  if (plane->plane.empty()) plane->plane = form.source().Fresh("plane");
  plane->rows = rows;
  plane->planes = "(" + dimension.limit + ") / (" + columns + " * " + rows + ")";
  plane->index_value =
      "(" + plane->plane + " * " + rows + " + " + plane->row + ") * " + columns + " + " + plane->column;
  return true;
}

}  // namespace

std::optional<Plane> ReadPlane(const Form& form, std::string* why) {
  Plane plane;
  plane.declarations = form.before();
  bool declares = true;
  for (const Statement& statement : form.work()) {
    declares = declares && statement.kind == Statement::kDeclaration;
    (declares ? plane.declarations : plane.rest).push_back(statement);
  }
  const Dimension *x = form.OnAxis('x'), *y = form.OnAxis('y');
  *why = form.kernel().name + " has no rows and columns that are known here";
  if (x == nullptr || !x->whole || x->limit.empty()) return std::nullopt;
  if (y != nullptr && y->whole) {
    if (y->limit.empty()) return std::nullopt;
    bool swapped = false;
    for (const Access& access : form.Accesses(form.kernel().body)) {
      if (access.stored) swapped = form.StrideOf(access.index, y->name) == Stride::kUnit;
    }
    plane.row = swapped ? x->name : y->name;
    plane.column = swapped ? y->name : x->name;
    plane.rows = swapped ? x->limit : y->limit;
    plane.columns = swapped ? y->limit : x->limit;
  } else if (y != nullptr || !ReadDivided(form, *x, &plane)) {
    return std::nullopt;
  }
  plane.names = {plane.row, plane.column};
  if (!plane.plane.empty()) plane.names.insert(plane.plane);
  if (const Dimension* z = form.OnAxis('z')) {
    if (z->whole || !plane.index.empty()) return std::nullopt;
    plane.names.insert(z->name);
  }
  why->clear();
  return plane;
}

std::string PlaneDeclarations(const Form& form, const Plane& plane) {
  if (const Dimension* z = form.OnAxis('z')) return form.source().Text(z->declaration) + "\n";
  return plane.planes.empty() ? "" : "const int " + plane.plane + " = blockIdx.z;\n";
}

std::optional<std::string> PlaneGrid(const Form& form, const Plane& plane, const PlainLaunch& launch, int rows,
                                     int columns) {
  const auto wide = form.InLaunch(launch, plane.columns), high = form.InLaunch(launch, plane.rows);
  if (!wide || !high) return std::nullopt;
  const auto parts = [](const std::string& limit, int size) {
    return "((" + limit + ") + " + std::to_string(size - 1) + ") / " + std::to_string(size);
  };
  std::string grid = "dim3(" + parts(*wide, columns) + ", " + parts(*high, rows);
  if (!plane.planes.empty()) {
    const auto deep = form.InLaunch(launch, plane.planes);
    if (!deep) return std::nullopt;
    grid += ", " + *deep;
  } else if (const Dimension* z = form.OnAxis('z')) {
    grid += ", " + form.ExtentIn(launch, *z);
  }
  return grid + ")";
}

}  // namespace kgrpo::coder_offline
