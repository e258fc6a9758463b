// Right are two different columns of each row that no other column exceeds, with their values, in any order.
std::string check(const double* x, const double* values, const int64_t* columns, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = x + r * cols;
    const int64_t a = columns[2 * r], b = columns[2 * r + 1];
    const std::string where = "row " + std::to_string(r) + ": ";
    if (a < 0 || a >= cols || b < 0 || b >= cols || a == b) return where + "no two columns";
    if (values[2 * r] != row[a] || values[2 * r + 1] != row[b]) return where + "values are not those of the columns";
    for (int64_t c = 0; c < cols; ++c) {
      if (c != a && c != b && row[c] > std::min(row[a], row[b]))
        return where + "column " + std::to_string(c) + " is larger";
    }
  }
  return "";
}
