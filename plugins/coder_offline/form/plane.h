// The points of a kernel as a plane of rows and columns, with what numbers planes: from two axes of the grid, or from
// one index that the kernel divides (row = i / n, column = i % n). Used by rewrites that give a block a part of a
// plane.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coder_offline/form/form.h"

namespace kgrpo::coder_offline {

struct Plane {
  std::string row, column, plane;              // the kernel's names; plane may be empty
  std::string rows, columns;                   // their limits, in the kernel's names
  std::string planes;                          // of a divided index; else empty
  std::string index, index_type, index_value;  // the divided index, and its value from the others; else empty
  std::vector<Statement> declarations;         // before the first other statement, without those of the dimensions
  std::vector<Statement> rest;
  std::set<std::string> names;  // of the dimensions
};

// Columns are what the kernel's stores are neighbours along. Sets *why where the kernel has no plane.
std::optional<Plane> ReadPlane(const Form& form, std::string* why);

// The declarations of what numbers planes; the grid of a launch with blocks of these many rows and columns, or nullopt
// where a limit is not known in the launch.
std::string PlaneDeclarations(const Form& form, const Plane& plane);
std::optional<std::string> PlaneGrid(const Form& form, const Plane& plane, const PlainLaunch& launch, int rows,
                                     int columns);

}  // namespace kgrpo::coder_offline
