// Finds how a loop changes the variables that it carries from one turn to the next: sums, products, largest and
// smallest values, the place of one of these, and running totals. Used where a loop's turns are shared among threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coder_offline/form/form.h"

namespace kgrpo::coder_offline {

struct Reduction {
  enum Kind { kSum, kProduct, kMax, kMin } kind = kSum;
  std::string name, type;
  std::string place, place_type;  // the variable that is set to where the largest value is; empty without one
  bool last = false;              // of equal values the last one counts
  std::vector<Range> updates;     // the statements that change it

  std::string Identity() const { return kind == kProduct ? "1" : "0"; }
  bool Repeats() const { return kind == kMax || kind == kMin; }  // the same value may count twice
  std::string Join(const std::string& a, const std::string& b) const;
};

struct Carried {
  std::vector<Reduction> reductions;
  // A sum whose value is used in each turn, after its one update: the update's statement, and what is added.
  std::optional<Range> running, term;
  std::string why;  // it carries a variable in another way; empty if the rest is complete
};

Carried CarriedBy(const Form& form, const Statement& loop);

// The update of a variable by this statement alone: `sum += x`. *term: what is joined.
std::optional<Reduction> ReadUpdate(const Form& form, const Statement& statement, Range* term);

// A loop's first value, and the amount by which it steps; nullopt for other loops than `for (i = a; i < b; i += c)`.
std::optional<std::string> StepOf(const Form& form, const Statement& loop);

}  // namespace kgrpo::coder_offline
