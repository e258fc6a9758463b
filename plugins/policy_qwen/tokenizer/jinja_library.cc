// The filters, tests, methods and functions of templates: jinja2's, and Python's of texts and dicts. A name that is in
// none of the lists below is refused.
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "policy_qwen/tokenizer/jinja_value.h"

namespace kgrpo::jinja {
namespace {

// Names with their parameters.
constexpr std::string_view kFilters =
    " abs capitalize count d(default_value boolean) default(default_value boolean) dictsort(case_sensitive by reverse)"
    " first float(default) indent(width first blank) int(default base) items join(d attribute) last length list lower"
    " map(filter first second attribute default) max(case_sensitive attribute) min(case_sensitive attribute)"
    " reject(test argument) rejectattr(attribute test argument) replace(old new count) reverse round(precision method)"
    " safe select(test argument) selectattr(attribute test argument) sort(reverse case_sensitive attribute) string"
    " sum(attribute start) title tojson(ensure_ascii indent separators sort_keys) trim(chars)"
    " unique(case_sensitive attribute) upper ";
constexpr std::string_view kTests =
    " boolean callable defined divisibleby(num) eq(other) equalto(other) even false float ge(other) gt(other) in(seq)"
    " integer iterable le(other) lt(other) mapping ne(other) none number odd sameas(other) sequence string true"
    " undefined ";
constexpr std::string_view kTextMethods =
    " capitalize count(sub) endswith(suffix) find(sub) isalpha isdigit isspace join(iterable) lower lstrip(chars)"
    " removeprefix(prefix) removesuffix(suffix) replace(old new count) rfind(sub) rsplit(sep maxsplit) rstrip(chars)"
    " split(sep maxsplit) splitlines startswith(prefix) strip(chars) title upper ";
constexpr std::string_view kDictMethods = " get(key default) items keys values ";

std::string_view ListOfNames(char kind, const Value& subject) {
  if (kind != '.') return kind == '|' ? kFilters : kTests;
  return subject.text() ? kTextMethods : subject.dict() ? kDictMethods : "";
}

// Where the parameters of `name` begin in a list: at '(' or ' '; npos if it has no such name.
size_t FindName(std::string_view list, std::string_view name) {
  for (size_t at = list.find(name); at != list.npos && !name.empty(); at = list.find(name, at + 1)) {
    const char next = list[at + name.size()];
    if (list[at - 1] == ' ' && (next == ' ' || next == '(') &&
        list.substr(0, at).rfind('(') + 1 <= list.substr(0, at).rfind(')') + 1) {
      return at + name.size();
    }
  }
  return list.npos;
}

Value Or(const Value& value, const Value& otherwise) {
  return value.undefined() ? otherwise : value;
}

std::string Cased(const std::string& text,
                  char how) {  // l, u, c (the first letter), t (each word's, as the filter), T (as the method)
  std::u32string points = CodePoints(text);
  bool start = true;
  for (char32_t& c : points) {
    const auto upper = static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
    const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    const bool next =
        how == 'T' ? upper == lower
                   : how == 't' && (IsSpace(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos);
    c = how == 'u' || (how != 'l' && start) ? upper : lower;
    start = next;
  }
  return FromCodePoints(points);
}

std::string Strip(const std::string& text, const Value& characters, bool left, bool right) {
  const std::u32string points = CodePoints(text);
  const std::u32string set = characters.text() ? CodePoints(characters.str()) : U"";
  const auto strips = [&](char32_t c) { return characters.text() ? set.find(c) != set.npos : IsSpace(c); };
  size_t first = 0, end = points.size();
  while (left && first < end && strips(points[first])) ++first;
  while (right && end > first && strips(points[end - 1])) --end;
  return FromCodePoints(std::u32string_view(points).substr(first, end - first));
}

std::string Replace(Run& run, const std::string& text, const std::string& what, const std::string& by,
                    const Value& count) {
  if (what.empty()) Fail("replace: the text to replace is empty");
  std::string out;
  size_t at = 0;
  int64_t left = count.undefined() || count.none() ? -1 : count.Int();
  for (size_t found; left != 0 && (found = text.find(what, at)) != text.npos; --left, at = found + what.size()) {
    run.Spend(1 + static_cast<int64_t>(by.size()));
    out.append(text, at, found - at).append(by);
  }
  return out.append(text, at);
}

std::vector<std::string> Split(std::string text, const Value& separator, const Value& limit, bool right) {
  std::vector<std::string> parts;
  const bool spaces = separator.undefined() || separator.none();
  const std::string by = spaces ? " " : separator.str();
  if (by.empty() || (spaces && right)) Fail("the separator to split at is empty");
  if (spaces) {
    std::u32string points = CodePoints(Strip(text, Value(), true, limit.undefined()));
    if (points.empty()) return parts;
    // Every run of white space becomes one blank, up to the limit.
    int64_t left = Or(limit, -1).Int();
    for (size_t i = 0; i < points.size() && left != 0; ++i) {
      if (!IsSpace(points[i])) continue;
      const size_t end = static_cast<size_t>(
          std::find_if_not(points.begin() + static_cast<ptrdiff_t>(i), points.end(), IsSpace) - points.begin());
      parts.push_back(FromCodePoints(points.substr(0, i)));
      points.erase(0, end);
      i = static_cast<size_t>(-1), --left;
    }
    if (!points.empty()) parts.push_back(FromCodePoints(points));
    return parts;
  }
  for (int64_t left = Or(limit, -1).Int(); left != 0; --left) {
    const size_t found = right ? text.rfind(by) : text.find(by);
    if (found == text.npos) break;
    parts.push_back(right ? text.substr(found + by.size()) : text.substr(0, found));
    right ? text.resize(found) : (void)text.erase(0, found + by.size());
  }
  parts.push_back(std::move(text));
  if (right) std::reverse(parts.begin(), parts.end());
  return parts;
}

// a.b.c of an item, for the parameter `attribute`; the item itself without one.
Value Member(const Value& item, const Value& attribute) {
  if (attribute.undefined() || attribute.none()) return item;
  if (attribute.integer()) return Item(item, attribute);
  Value value = item;
  for (const std::string& part : Split(attribute.str(), ".", Value(), false)) {
    const bool number = part.find_first_not_of("0123456789") == part.npos;
    value = Item(value, number ? Value(std::strtoll(part.c_str(), nullptr, 10)) : Value(part));
  }
  return value;
}

// What items are compared by: texts without their case, unless case_sensitive is true.
Value Key(const Value& item, const Value& attribute, const Value& case_sensitive) {
  const Value member = Member(item, attribute);
  return member.text() && !Truth(case_sensitive) ? Value(Cased(member.str(), 'l')) : member;
}

Values Sorted(Values items, const Value& reverse, const Value& case_sensitive, const Value& attribute) {
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    const Value x = Key(a, attribute, case_sensitive), y = Key(b, attribute, case_sensitive);
    return Truth(reverse) ? Less(y, x) : Less(x, y);
  });
  return items;
}

Values Unique(Run& run, const Value& value, const Value& case_sensitive, const Value& attribute) {
  Values seen, items;
  for (const Value& item : Elements(value)) {
    const Value key = Key(item, attribute, case_sensitive);
    const int64_t left = run.steps_left;
    run.Charge(key);
    run.Spend((left - run.steps_left) * static_cast<int64_t>(seen.size()));
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& other) { return Equal(key, other); })) continue;
    seen.push_back(key);
    items.push_back(item);
  }
  return items;
}

// The items whose `attribute` passes the test (their truth without one), or the others.
Values Select(Run& run, const Value& value, const Value& attribute, const Value& test, const Value& argument,
              bool keep) {
  Values items;
  for (const Value& item : Truth(value) ? Elements(value) : Values()) {
    Arguments given;
    if (!argument.undefined()) given.list = {argument};
    const Value member = Member(item, attribute);
    if (Truth(test.undefined() ? member : Call(run, 'i', test.str(), member, given)) == keep) items.push_back(item);
  }
  return items;
}

Values Map(Run& run, const Value& value, const Values& a) {
  Values items;
  for (const Value& item : Truth(value) ? Elements(value) : Values()) {
    Arguments given;
    for (size_t i = 1; i < 3 && !a[i].undefined(); ++i) given.list.push_back(a[i]);
    items.push_back(a[0].undefined() ? Or(Member(item, a[3]), a[4]) : Call(run, '|', a[0].str(), item, given));
  }
  return items;
}

std::string Join(Run& run, const Values& items, const std::string& separator, const Value& attribute) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string part = (i == 0 ? "" : separator) + Str(Member(items[i], attribute));
    run.Spend(1 + static_cast<int64_t>(part.size() / 8));
    out += part;
  }
  return out;
}

std::string Blanks(const Value& width, int64_t otherwise) {
  return width.text() ? width.str()
                      : std::string(static_cast<size_t>(std::clamp<int64_t>(Or(width, otherwise).Int(), 0, 1000)), ' ');
}

std::string Indent(Run& run, const std::string& text, const Values& a) {
  std::string out;
  const std::vector<std::string> lines = Split(text, "\n", Value(), false);
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool indented = i == 0 ? Truth(a[1]) : Truth(a[2]) || !lines[i].empty();
    run.Spend(100);
    out += (i == 0 ? "" : "\n") + (indented ? Blanks(a[0], 4) : "") + lines[i];
  }
  return out;
}

std::string ToJson(const Value& value, const Values& a) {
  Style style;
  style.python = false;
  style.ensure_ascii = Truth(a[0]);
  style.sort_keys = Truth(a[3]);
  style.multiline = !a[1].undefined() && !a[1].none();
  if (style.multiline) style.indent = Blanks(a[1], 0), style.item_separator = ",";
  if (a[2].list()) style.item_separator = Item(a[2], 0).str(), style.key_separator = Item(a[2], 1).str();
  return Dump(value.json(), style);
}

// A number as int() or float() reads it; `otherwise` if it is none.
Value Number(const Value& value, bool integer, const Value& otherwise, const Value& base) {
  double number = value.number() ? value.Double() : NAN;
  if (value.integer()) return integer ? Value(value.Int()) : Value(number);
  if (value.text()) {
    const std::string text = Strip(value.str(), Value(), true, true);
    char* end = nullptr;
    errno = 0;
    const int64_t whole =
        std::strtoll(text.c_str(), &end, static_cast<int>(std::clamp<int64_t>(Or(base, 10).Int(), 0, 36)));
    if (integer && !text.empty() && *end == '\0' && errno == 0) return whole;
    number = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return otherwise;
  } else if (!value.real()) {
    return otherwise;
  }
  if (!integer) return number;
  return std::abs(number) < 9e18 ? Value(static_cast<int64_t>(number)) : otherwise;
}

Value Round(const Value& value, const Values& a) {
  if (value.integer() && a[1].undefined()) return value;
  const auto digits = static_cast<int>(std::clamp<int64_t>(Or(a[0], 0).Int(), 0, 300));
  const double scale = std::pow(10, digits), number = value.Double();
  if (Truth(a[1]) && a[1].str() != "common")
    return (a[1].str() == "ceil" ? std::ceil(number * scale) : std::floor(number * scale)) / scale;
  char buffer[700];
  snprintf(buffer, sizeof(buffer), "%.*f", digits, number);
  return std::strtod(buffer, nullptr);
}

Value Sum(const Values& items, const Value& attribute, const Value& start) {
  Value sum = Or(start, 0);
  for (const Value& item : items) {
    const Value part = Member(item, attribute);
    if (!sum.number() || !part.number()) Fail("sum: expected numbers, found " + TypeName(part));
    sum = sum.integer() && part.integer() ? Value(sum.Int() + part.Int()) : Value(sum.Double() + part.Double());
  }
  return sum;
}

Values Pairs(const Value& value) {
  Values pairs;
  if (!value.undefined() && !value.dict()) Fail("Can only get item pairs from a mapping.");
  for (const Value& key : Elements(value)) pairs.push_back(ListOf({key, Item(value, key)}));
  return pairs;
}

bool HasAffix(const std::string& text, const Value& affix, bool start) {
  if (!affix.list()) return start ? text.starts_with(affix.str()) : text.ends_with(affix.str());
  const Values any = Elements(affix);
  return std::any_of(any.begin(), any.end(), [&](const Value& one) { return HasAffix(text, one, start); });
}

bool AllAre(const std::string& text, char kind) {  // d: digits, a: letters, s: white space
  const std::u32string points = CodePoints(text);
  return !points.empty() && std::all_of(points.begin(), points.end(), [&](char32_t c) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return kind == 's'   ? IsSpace(c)
           : kind == 'd' ? category == UTF8PROC_CATEGORY_ND
                         : category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  });
}

Value Filter(Run& run, std::string_view name, const Value& v, const Values& a) {
  if (name == "abs") return v.integer() ? Value(std::abs(v.Int())) : Value(std::abs(v.Double()));
  if (name == "capitalize" || name == "title" || name == "lower" || name == "upper")
    return Cased(Str(v), name == "title" ? 't' : name[0]);
  if (name == "count" || name == "length") return Length(v);
  if (name == "d" || name == "default") return v.undefined() || (Truth(a[1]) && !Truth(v)) ? Or(a[0], "") : v;
  if (name == "dictsort") return ListOf(Sorted(Pairs(v), a[2], a[0], Truth(a[1]) && a[1].str() == "value" ? 1 : 0));
  if (name == "float") return v.real() ? v : Number(v, false, Or(a[0], 0.0), Value());
  if (name == "indent") return Indent(run, Str(v), a);
  if (name == "int") return Number(v, true, Or(a[0], 0), a[1]);
  if (name == "items") return ListOf(Pairs(v));
  if (name == "join") return Join(run, Elements(v), Str(a[0]), a[1]);
  if (name == "list") return ListOf(Elements(v));
  if (name == "map") return ListOf(Map(run, v, a));
  if (name == "reject" || name == "select") return ListOf(Select(run, v, Value(), a[0], a[1], name == "select"));
  if (name == "rejectattr" || name == "selectattr")
    return ListOf(Select(run, v, a[0], a[1], a[2], name == "selectattr"));
  if (name == "replace") return Replace(run, Str(v), Str(a[0]), Str(a[1]), a[2]);
  if (name == "round") return Round(v, a);
  if (name == "sort") return ListOf(Sorted(Elements(v), a[0], a[1], a[2]));
  if (name == "string") return v.text() ? v : Value(Str(v));
  if (name == "sum") return Sum(Elements(v), a[0], a[1]);
  if (name == "tojson") return ToJson(v, a);
  if (name == "trim") return Strip(Str(v), a[0], true, true);
  if (name == "unique") return ListOf(Unique(run, v, a[0], a[1]));
  if (name == "safe") {
    Value made = Str(v);
    made.safe = true;
    return made;
  }
  Values items = Elements(v);
  if (name == "reverse") {
    std::reverse(items.begin(), items.end());
    return v.text() ? Value(Join(run, items, "", Value())) : Value(ListOf(items));
  }
  if (items.empty()) return Value::Undefined("the sequence is empty, so it has no item");
  if (name == "max" || name == "min") items = Sorted(items, name == "max", a[0], a[1]);
  return name == "last" ? items.back() : items.front();  // or first
}

bool Test(std::string_view name, const Value& v, const Value& other) {
  if (name == "boolean" || name == "true" || name == "false")
    return v.boolean() && (name == "boolean" || Truth(v) == (name == "true"));
  if (name == "callable") return v.object != nullptr && v.object->call != nullptr;
  if (name == "defined" || name == "undefined") return v.undefined() == (name == "undefined");
  if (name == "divisibleby") return other.Int() > 0 && v.Int() % other.Int() == 0;
  if (name == "eq" || name == "equalto" || name == "ne") return Equal(v, other) == (name != "ne");
  if (name == "even" || name == "odd") return (v.Int() % 2 == 0) == (name == "even");
  if (name == "float") return v.real();
  if (name == "ge" || name == "lt") return Less(v, other) == (name == "lt");
  if (name == "gt" || name == "le") return Less(other, v) == (name == "gt");
  if (name == "in") return Contains(other, v);
  if (name == "integer") return v.integer() && !v.boolean();
  if (name == "mapping") return v.dict();
  if (name == "none") return v.none();
  if (name == "number") return v.number();
  if (name == "sameas") return v.boolean() == other.boolean() && v.real() == other.real() && Equal(v, other);
  if (name == "string") return v.text();
  return v.text() || v.list() || v.dict() || v.undefined();  // iterable, sequence
}

Value TextMethod(Run& run, std::string_view name, const std::string& v, const Values& a) {
  const bool start = name == "startswith" || name == "removeprefix";
  if (name == "capitalize" || name == "title" || name == "lower" || name == "upper")
    return Cased(v, name == "title" ? 'T' : name[0]);
  if (name == "count") return static_cast<int64_t>(Split(v, a[0], Value(), false).size()) - 1;
  if (name == "endswith" || name == "startswith") return HasAffix(v, a[0], start);
  if (name == "isalpha" || name == "isdigit" || name == "isspace") return AllAre(v, name[2]);
  if (name == "join") return Join(run, Elements(a[0]), v, Value());
  if (name == "lstrip" || name == "rstrip" || name == "strip") return Strip(v, a[0], name[0] != 'r', name[0] != 'l');
  if (name == "replace") return Replace(run, v, a[0].str(), a[1].str(), a[2]);
  if (name == "rsplit" || name == "split") return Split(v, a[0], a[1], name[0] == 'r');
  if (name == "splitlines")
    return Split(Replace(run, v.ends_with('\n') ? v.substr(0, v.size() - 1) : v, "\r\n", "\n", Value()), "\n", Value(),
                 false);
  if (name == "removeprefix" || name == "removesuffix") {
    const size_t size = a[0].str().size();
    return !HasAffix(v, a[0], start) ? v : start ? v.substr(size) : v.substr(0, v.size() - size);
  }
  const size_t at = name == "rfind" ? v.rfind(a[0].str()) : v.find(a[0].str());
  return at == v.npos ? int64_t{-1} : Length(v.substr(0, at));
}

Value DictMethod(std::string_view name, const Value& v, const Values& a) {
  if (name == "get") return Or(Item(v, a[0]), Or(a[1], nullptr));
  if (name == "items") return ListOf(Pairs(v));
  Values parts = Elements(v);
  for (Value& part : parts) part = name == "values" ? Item(v, part) : part;
  return ListOf(parts);
}

}  // namespace

bool IsKnown(char kind, const Value& subject, std::string_view name) {
  return FindName(ListOfNames(kind, subject), name) != std::string_view::npos;
}

Value Call(Run& run, char kind, std::string_view name, const Value& subject, const Arguments& arguments) {
  const std::string_view list = ListOfNames(kind, subject);
  const size_t at = FindName(list, name);
  if (at == list.npos)
    Fail(std::string("the ") + (kind == '|' ? "filter '" : "test '") + std::string(name) + "' is not known here");
  std::string_view names = list[at] == '(' ? list.substr(at + 1, list.find(')', at) - at - 1) : "";
  Values bound = arguments.list;
  std::vector<std::pair<std::string, Value>> named = arguments.named;
  for (size_t i = 0; !names.empty(); ++i) {
    const std::string_view parameter = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), parameter.size() + 1));
    if (bound.size() == i) bound.emplace_back();
    std::erase_if(named, [&](const auto& item) { return item.first == parameter && ((bound[i] = item.second), true); });
    if (names.empty() && bound.size() > i + 1) named.emplace_back("number " + std::to_string(i + 2), Value());
  }
  if (!named.empty() || (list[at] == ' ' && !bound.empty())) {
    Fail(std::string(name) + ": there is no parameter " + (named.empty() ? "" : "'" + named[0].first + "'"));
  }
  bound.resize(5);
  run.Charge(subject);
  for (const Value& argument : bound) run.Charge(argument);
  if (kind == 'i') return Test(name, subject, bound[0]);
  return run.Charge(kind == '|'      ? Filter(run, name, subject, bound)
                    : subject.text() ? TextMethod(run, name, subject.str(), bound)
                                     : DictMethod(name, subject, bound));
}

void AddFunctions(Run& run, std::map<std::string, Value, std::less<>>& names) {
  const auto first = [](const Arguments& given) { return given.list.empty() ? Value() : given.list[0]; };
  names["dict"] = run.Function([first](const Arguments& given) {
    Json made = given.list.empty() ? Json::object() : first(given).json();
    for (const auto& [name, value] : given.named) made[name] = JsonOf(value);
    return Value(std::move(made));
  });
  names["namespace"] = run.Function([&run, first](const Arguments& given) {
    Object& made = run.Make("namespace");
    for (const Value& key : Elements(first(given))) made.members[key.str()] = Item(first(given), key);
    for (const auto& [name, value] : given.named) made.members[name] = value;
    return Value(&made);
  });
  names["raise_exception"] = run.Function([first](const Arguments& given) -> Value { Fail(Str(first(given))); });
  names["strftime_now"] = run.Function([&run, first](const Arguments& given) -> Value {
    char buffer[256];
    std::tm local = {};
    localtime_r(&run.now, &local);
    return std::string(buffer, strftime(buffer, sizeof(buffer), first(given).str().c_str(), &local));
  });
  names["range"] = run.Function([&run](const Arguments& given) {
    const size_t count = given.list.size();
    if (count < 1 || count > 3) Fail("range takes one to three arguments");
    const int64_t start = count > 1 ? given.list[0].Int() : 0, stop = given.list[count > 1 ? 1 : 0].Int();
    const int64_t step = count > 2 ? given.list[2].Int() : 1;
    if (step == 0 || std::abs(stop / step - start / step) > 100000)
      Fail("a range has a step of 0 or more than 100000 items");
    Json items = Json::array();
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) items.push_back(i);
    return run.Charge(std::move(items));
  });
}

}  // namespace kgrpo::jinja
