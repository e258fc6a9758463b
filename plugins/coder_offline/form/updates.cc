#include "coder_offline/form/updates.h"

#include <algorithm>

namespace kgrpo::coder_offline {
namespace {

using Kind = Reduction::Kind;

// The kind of a comparison after which a variable is replaced: by a larger or a smaller value.
std::optional<Kind> Compared(const PlainSource& source, Range head, std::string_view name, bool* last) {
  for (size_t i = head.begin + 1; i + 1 < head.end; ++i) {
    if (source.At(i).Is("(")) i = source.Close(i);
    if (!source.At(i).Is("<") && !source.At(i).Is(">")) continue;
    *last = source.At(i + 1).Is("=");
    const size_t right = i + (*last ? 2 : 1);
    const bool on_left = i == head.begin + 1 && source.At(head.begin).Is(name);
    const bool on_right = right + 1 == head.end && source.At(right).Is(name);
    if (on_left == on_right) return std::nullopt;
    return source.At(i).Is("<") == on_left ? Kind::kMax : Kind::kMin;
  }
  return std::nullopt;
}

// `if (x > best) { best = x; place = i; }`
std::optional<Reduction> ReadChoice(const Form& form, const Statement& statement) {
  const PlainSource& source = form.source();
  if (!statement.otherwise.empty() || statement.body.empty() || statement.body.size() > 2) return std::nullopt;
  Reduction reduction;
  bool found = false;
  for (const Statement& set : statement.body) {
    const size_t name = set.tokens.begin;
    if (set.kind != Statement::kExpression || !source.IsName(name) || !source.Follows(name + 1, {"="}))
      return std::nullopt;
    bool last = false;
    if (const auto kind = Compared(source, statement.head, source.At(name).text, &last); kind && !found) {
      found = true;
      reduction.kind = *kind;
      reduction.last = last;
      reduction.name = source.At(name).text;
    } else {
      if (!reduction.place.empty()) return std::nullopt;
      reduction.place = source.At(name).text;
    }
  }
  if (!found) return std::nullopt;
  reduction.updates = {statement.tokens};
  return reduction;
}

size_t Count(const Form& form, Range range, std::string_view name) {
  size_t count = 0;
  for (size_t i = range.begin; i < range.end; ++i) {
    const bool member = i > 0 && (form.source().At(i - 1).Is(".") || form.source().At(i - 1).Is("->"));
    count += form.source().At(i).Is(name) && !member ? 1 : 0;
  }
  return count;
}

void Collect(const Form& form, const std::vector<Statement>& statements, std::vector<Reduction>* found) {
  for (const Statement& statement : statements) {
    Range term;
    auto update = statement.kind == Statement::kIf ? ReadChoice(form, statement) : ReadUpdate(form, statement, &term);
    if (!update) {
      Collect(form, statement.body, found);
      Collect(form, statement.otherwise, found);
      continue;
    }
    const auto same =
        std::find_if(found->begin(), found->end(), [&](const Reduction& r) { return r.name == update->name; });
    if (same == found->end()) {
      found->push_back(*update);
    } else if (same->kind == update->kind && same->place == update->place) {
      same->updates.push_back(statement.tokens);
    } else {
      same->updates.clear();
    }
  }
}

}  // namespace

std::string Reduction::Join(const std::string& a, const std::string& b) const {
  if (kind == kSum) return a + " + " + b;
  if (kind == kProduct) return a + " * " + b;
  return "(" + a + (kind == kMax ? " > " : " < ") + b + " ? " + a + " : " + b + ")";
}

std::optional<Reduction> ReadUpdate(const Form& form, const Statement& statement, Range* term) {
  const PlainSource& source = form.source();
  if (statement.kind != Statement::kExpression) return std::nullopt;
  const size_t i = statement.tokens.begin, end = statement.tokens.end - 1;
  Reduction reduction;
  reduction.updates = {statement.tokens};
  if ((source.Follows(i, {"+", "+"}) && source.IsName(i + 2)) ||
      (source.IsName(i) && source.Follows(i + 1, {"+", "+", ";"}))) {
    reduction.name = source.At(source.IsName(i) ? i : i + 2).text;
    *term = {end, end};
    return reduction;
  }
  if (!source.IsName(i)) return std::nullopt;
  reduction.name = source.At(i).text;
  const auto own = [&](Range range) { return Count(form, range, reduction.name); };
  if (source.Follows(i + 1, {"+", "="}) || source.Follows(i + 1, {"-", "="}) || source.Follows(i + 1, {"*", "="})) {
    *term = {i + 3, end};
    if (own(*term) > 0) return std::nullopt;
    if (source.At(i + 1).Is("*")) reduction.kind = Kind::kProduct;
    return reduction;
  }
  if (!source.Follows(i + 1, {"="}) || source.Follows(i + 1, {"=", "="}) || own({i + 2, end}) == 0) return std::nullopt;
  if (source.At(i + 2).Is(reduction.name) && (source.At(i + 3).Is("+") || source.At(i + 3).Is("*"))) {
    *term = {i + 4, end};
    bool sum = source.At(i + 3).Is("+");
    for (size_t k = i + 4; k < end && !sum; ++k) {
      if (source.At(k).Is("(") || source.At(k).Is("[")) k = source.Close(k);
      if (source.At(k).Is("+") || source.At(k).Is("-")) return std::nullopt;
    }
    if (!sum) reduction.kind = Kind::kProduct;
    return own(*term) == 0 ? std::optional(reduction) : std::nullopt;
  }
  if (source.At(end - 1).Is(reduction.name) && source.At(end - 2).Is("+")) {
    *term = {i + 2, end - 2};
    return own(*term) == 0 ? std::optional(reduction) : std::nullopt;
  }
  if (IsOneOf(source.At(i + 2).text, {"fmaxf", "fmax", "max", "fminf", "fmin", "min"}) && source.At(i + 3).Is("(") &&
      source.Close(i + 3) + 1 == end) {
    const std::vector<Range> arguments = source.Split({i + 4, end - 1});
    if (arguments.size() != 2) return std::nullopt;
    reduction.kind = source.At(i + 2).text.find("max") != std::string_view::npos ? Kind::kMax : Kind::kMin;
    const bool first = source.Text(arguments[0]) == reduction.name;
    *term = arguments[first ? 1 : 0];
    const bool simple = first || source.Text(arguments[1]) == reduction.name;
    return simple && own(*term) == 0 ? std::optional(reduction) : std::nullopt;
  }
  for (size_t k = i + 2; k < end; ++k) {  // v = x > v ? x : v
    if (source.At(k).Is("(")) k = source.Close(k);
    if (!source.At(k).Is("?")) continue;
    Range head{i + 2, k};
    if (source.At(head.begin).Is("(") && source.Close(head.begin) + 1 == head.end) ++head.begin, --head.end;
    bool last = false;
    const auto kind = Compared(source, head, reduction.name, &last);
    const bool kept = source.At(k + 1).Is(reduction.name);  // v where the comparison holds
    if (!kind || own({k + 1, end}) != 1) return std::nullopt;
    reduction.kind = (*kind == Kind::kMax) != kept ? Kind::kMax : Kind::kMin;
    *term = kept ? Range{k + 3, end} : Range{k + 1, end - 2};
    return reduction;
  }
  return std::nullopt;
}

Carried CarriedBy(const Form& form, const Statement& loop) {
  const PlainSource& source = form.source();
  Carried carried;
  std::vector<Reduction> found;
  Collect(form, loop.body, &found);
  for (const std::string& name : form.Assigned(loop.tokens)) {
    if (name == loop.name || form.Declared(name, loop.tokens) || form.IsGlobalArray(name)) continue;
    const auto one = std::find_if(found.begin(), found.end(), [&](const Reduction& r) { return r.name == name; });
    const bool place = std::any_of(found.begin(), found.end(), [&](const Reduction& r) { return r.place == name; });
    size_t covered = 0;
    for (const Reduction& reduction : found) {
      if (reduction.name != name && reduction.place != name) continue;
      for (const Range& update : reduction.updates) covered += Count(form, update, name);
    }
    const bool all = covered == Count(form, loop.tokens, name);
    if (place && all) continue;
    if (one == found.end() || one->updates.empty()) {
      carried.why = "a loop sets " + name + " from its value in the turn before";
      continue;
    }
    one->type = form.TypeOf(name);
    if (all) {
      if (!one->place.empty()) one->place_type = form.TypeOf(one->place);
      carried.reductions.push_back(*one);
      continue;
    }
    // A running total: its one update is a statement of the loop itself, and what follows reads it.
    for (const Statement& statement : loop.body) {
      Range term;
      const auto update = ReadUpdate(form, statement, &term);
      if (!update || update->name != name || update->kind != Kind::kSum || one->updates.size() != 1) continue;
      if (Count(form, {loop.inside.begin, statement.tokens.begin}, name) > 0) continue;
      if (term.begin < term.end && source.Has({statement.tokens.begin, term.begin}, "+") && !carried.running) {
        carried.running = statement.tokens;
        carried.term = term;
      }
    }
    carried.why = "a loop uses the running value of " + name;
  }
  return carried;
}

std::optional<std::string> StepOf(const Form& form, const Statement& loop) {
  const PlainSource& source = form.source();
  const std::string& i = loop.name;
  if (loop.kind != Statement::kFor || i.empty()) return std::nullopt;
  if (!source.At(loop.limit.begin).Is(i) || !source.At(loop.limit.begin + 1).Is("<")) return std::nullopt;
  const std::string step = source.Plain(loop.step);
  if (IsOneOf(step, {i + "++", "++" + i})) return "1";
  if (step.starts_with(i + "+=")) return source.Text({loop.step.begin + 3, loop.step.end});
  if (step.starts_with(i + "=" + i + "+")) return source.Text({loop.step.begin + 4, loop.step.end});
  return std::nullopt;
}

}  // namespace kgrpo::coder_offline
