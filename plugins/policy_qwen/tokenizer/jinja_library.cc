// The filters, tests, methods and functions of templates: jinja2's, and Python's of texts and dicts. A name that is in
// none of the lists below is refused.
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "policy_qwen/tokenizer/jinja_value.h"

namespace kgrpo::jinja {
namespace {

using Texts = std::vector<std::string>;

// Names with their parameters.
constexpr std::string_view kFilters =
    " abs capitalize count d(default_value boolean) default(default_value boolean) dictsort(case_sensitive by reverse)"
    " first float(default) indent(width first blank) int(default) items join(d attribute) last length list lower"
    " map(filter first second attribute default) reject(test argument) rejectattr(attribute test argument)"
    " replace(old new count) reverse safe select(test argument) selectattr(attribute test argument)"
    " sort(reverse case_sensitive attribute) string title tojson(ensure_ascii indent separators sort_keys) trim(chars)"
    " unique(case_sensitive attribute) upper ";
constexpr std::string_view kTests =
    " boolean callable defined divisibleby(num) eq(other) equalto(other) even false float ge(other) gt(other) in(seq)"
    " integer iterable le(other) lt(other) mapping ne(other) none number odd sameas(other) sequence string true "
    "undefined ";
constexpr std::string_view kTextMethods =
    " capitalize count(sub) endswith(suffix) find(sub) join(iterable) lower lstrip(chars) removeprefix(prefix)"
    " removesuffix(suffix) replace(old new count) rfind(sub) rsplit(sep maxsplit) rstrip(chars) split(sep maxsplit)"
    " splitlines startswith(prefix) strip(chars) title upper ";
constexpr std::string_view kDictMethods = " get(key default) items keys values ";

std::string_view ListOfNames(char kind, const Value& subject) {
  if (kind != '.') return kind == '|' ? kFilters : kTests;
  return subject.text() ? kTextMethods : subject.dict() ? kDictMethods : "";
}

// The place after a name in its list, at '(' or ' '; npos if it is not there.
size_t FindName(std::string_view list, const std::string& name) {
  for (const char after : {' ', '('}) {
    const size_t at = list.find(" " + name + after);
    const std::string_view before = list.substr(0, at);
    if (at != list.npos && before.rfind('(') + 1 <= before.rfind(')') + 1) return at + 1 + name.size();
  }
  return list.npos;
}

Value Or(const Value& value, const Value& otherwise) { return value.undefined() ? otherwise : value; }

// l(ower), u(pper), c(apitalize), t(itle: the filter) or m (title: the method).
std::string Cased(const std::string& text, char how) {
  std::u32string points = CodePoints(text);
  bool start = how != 'l';
  for (char32_t& point : points) {
    const int32_t upper = utf8proc_toupper(static_cast<int32_t>(point));
    const int32_t lower = utf8proc_tolower(static_cast<int32_t>(point));
    const bool ends_word = IsSpace(point) || std::u32string_view(U"-({[<").find(point) != std::u32string_view::npos;
    point = static_cast<char32_t>(start ? upper : lower);
    start = how == 'u' || (how == 'm' && upper == lower) || (how == 't' && ends_word);
  }
  return FromCodePoints(points);
}

std::string StripText(const std::string& text, const Value& characters, bool left, bool right) {
  const std::u32string points = CodePoints(text), set = characters.text() ? CodePoints(characters.str()) : U"";
  const auto strips = [&](char32_t c) { return characters.text() ? set.find(c) != set.npos : IsSpace(c); };
  size_t first = 0, end = points.size();
  while (left && first < end && strips(points[first])) ++first;
  while (right && end > first && strips(points[end - 1])) --end;
  return FromCodePoints(std::u32string_view(points).substr(first, end - first));
}

std::string ReplaceText(Run& run, const std::string& text, const std::string& what, const std::string& by,
                        const Value& count) {
  if (what.empty()) Fail("replace: the text to replace is empty");
  std::string out;
  size_t at = 0;
  int64_t left = Or(count, -1).whole();
  for (size_t found; left != 0 && (found = text.find(what, at)) != text.npos; --left, at = found + what.size()) {
    run.Spend(1 + by.size());
    out.append(text, at, found - at).append(by);
  }
  return out.append(text, at);
}

Texts Split(std::string_view text, const std::string& separator, const Value& limit = Value(), bool right = false) {
  Texts parts;
  if (separator.empty()) Fail("the separator to split at is empty");
  for (int64_t left = Or(limit, -1).whole(); left != 0; --left) {
    const size_t found = right ? text.rfind(separator) : text.find(separator);
    if (found == text.npos) break;
    const size_t after = found + separator.size();
    parts.emplace_back(right ? text.substr(after) : text.substr(0, found));
    text = right ? text.substr(0, found) : text.substr(after);
  }
  parts.emplace_back(text);
  if (right) std::reverse(parts.begin(), parts.end());
  return parts;
}

// At each run of white space.
Texts SplitAtSpace(const std::string& text, const Value& limit) {
  Texts parts;
  const std::u32string points = CodePoints(text);
  int64_t left = Or(limit, -1).whole();
  for (auto at = points.begin();; --left) {
    at = std::find_if_not(at, points.end(), IsSpace);
    if (at == points.end()) return parts;
    const auto end = left == 0 ? points.end() : std::find_if(at, points.end(), IsSpace);
    parts.push_back(FromCodePoints({at, end}));
    at = end;
  }
}

// At the ends of lines that Python knows.
Texts Lines(const std::string& text) {
  static constexpr std::u32string_view kEnds = U"\n\r\v\f\x1C\x1D\x1E\x85\u2028\u2029";
  Texts lines;
  const std::u32string points = CodePoints(text);
  for (size_t at = 0; at < points.size();) {
    const size_t end = std::min(points.find_first_of(kEnds, at), points.size());
    lines.push_back(FromCodePoints(std::u32string_view(points).substr(at, end - at)));
    at = end + (points.substr(end, 2) == U"\r\n" ? 2 : 1);
  }
  return lines;
}

// a.b.c of an item, for the parameter `attribute`; the item itself without one.
Value Member(const Value& item, const Value& attribute) {
  Value value = item;
  if (attribute.integer()) return Item(item, attribute);
  for (const std::string& part : attribute.undefined() ? Texts() : Split(attribute.str(), ".")) {
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

Values Sorted(Run& run, const Values& items, bool down, const Value& case_sensitive, const Value& attribute) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) keyed.emplace_back(Key(item, attribute, case_sensitive), item);
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    run.Touch(a.first, true);
    return Truth(down ? Operate("<", b.first, a.first) : Operate("<", a.first, b.first));
  });
  Values sorted;
  for (const auto& [key, item] : keyed) sorted.push_back(item);
  return sorted;
}

// The items whose `attribute` passes the test (their truth without one), or the others; what a filter makes of each.
Values Select(Run& run, const Value& value, const Value& attribute, const Value& test, const Value& argument,
              bool keep) {
  Values items = Truth(value) ? run.ElementsOf(value) : Values();
  std::erase_if(items, [&](const Value& item) {
    const Value member = Member(item, attribute);
    const Arguments given{argument.undefined() ? Values() : Values{argument}, {}};
    return Truth(test.undefined() ? member : Call(run, 'i', test.str(), member, given)) != keep;
  });
  return items;
}

Values Map(Run& run, const Value& value, const Values& a) {
  Values items = Truth(value) ? run.ElementsOf(value) : Values();
  const Arguments given{a[1].undefined() ? Values() : a[2].undefined() ? Values{a[1]} : Values{a[1], a[2]}, {}};
  for (Value& item : items)
    item = a[0].undefined() ? Or(Member(item, a[3]), a[4]) : Call(run, '|', a[0].str(), item, given);
  return items;
}

std::string Join(Run& run, const Values& items, const std::string& separator, const Value& attribute) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string part = (i == 0 ? "" : separator) + Str(Member(items[i], attribute));
    run.Spend(1 + part.size() / 8);
    out += part;
  }
  return out;
}

std::string Blanks(const Value& width, int64_t otherwise) {
  return width.text()
             ? width.str()
             : std::string(static_cast<size_t>(std::clamp<int64_t>(Or(width, otherwise).whole(), 0, 100)), ' ');
}

std::string Indent(Run& run, const std::string& text, const Values& a) {
  std::string out;
  const std::string blanks = Blanks(a[0], 4);
  bool first = true;
  for (const std::string& line : Lines(text + "\n")) {
    const bool indented = first ? Truth(a[1]) : Truth(a[2]) || !line.empty();
    run.Spend(1 + blanks.size() / 8);
    out += (first ? "" : "\n") + (indented ? blanks : "") + line;
    first = false;
  }
  return out;
}

// A number as int() or float() reads it; `otherwise` if it is none.
Value Number(const Value& value, bool integer, const Value& otherwise) {
  if (value.undefined()) value.json();
  if (value.number() && (integer ? value.integer() : value.real())) return integer ? Value(value.whole()) : value;
  char* end = nullptr;
  std::string text = value.text() ? StripText(value.str(), Value(), true, true) : "";
  const auto is_digit = [&](size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  for (size_t i = 1; i + 1 < text.size(); ++i) {  // 1_000
    if (text[i] == '_' && is_digit(i - 1) && is_digit(i + 1)) text.erase(i, 1);
  }
  const double number = value.number() ? value.real_value() : std::strtod(text.c_str(), &end);
  const bool good = value.number() || (!text.empty() && *end == '\0' && text.find_first_of("xX(") == text.npos);
  if (!good || (integer && !std::isfinite(number))) return otherwise;
  if (integer && std::abs(number) > 9e15) Fail("an integer is too large");
  return integer ? Value(static_cast<int64_t>(number)) : Value(number);
}

Values Pairs(const Value& value) {
  if (!value.undefined() && !value.dict()) Fail("Can only get item pairs from a mapping.");
  Values pairs = Elements(value);
  for (Value& key : pairs) key = ListOf({key, Item(value, key)});
  return pairs;
}

bool HasAffix(const std::string& text, const Value& affix, bool start) {
  if (!affix.list()) return start ? text.starts_with(affix.str()) : text.ends_with(affix.str());
  const Values any = Elements(affix);
  return std::any_of(any.begin(), any.end(), [&](const Value& one) { return HasAffix(text, one, start); });
}

Value Filter(Run& run, const std::string& name, const Value& v, const Values& a) {
  const auto is_absent = [](const Value& argument) { return argument.undefined() && argument.what.empty(); };
  if (name == "abs") return v.real() ? Value(std::abs(v.real_value())) : Value(std::abs(v.whole()));
  if (name == "capitalize" || name == "title" || name == "lower" || name == "upper") return Cased(Str(v), name[0]);
  if (name == "count" || name == "length") return Length(v);
  if (name[0] == 'd' && name != "dictsort")
    return v.undefined() || (Truth(a[1]) && !Truth(v)) ? is_absent(a[0]) ? "" : a[0] : v;
  if (name == "dictsort")
    return ListOf(Sorted(run, Pairs(v), Truth(a[2]), a[0], Truth(a[1]) && a[1].str() == "value" ? 1 : 0));
  if (name == "float" || name == "int")
    return Number(v, name == "int", Or(a[0], name == "int" ? Value(0) : Value(0.0)));
  if (name == "indent") return Indent(run, Str(v), a);
  if (name == "items") return ListOf(Pairs(v));
  if (name == "join") return Join(run, run.ElementsOf(v), Str(a[0]), a[1]);
  if (name == "list") return ListOf(run.ElementsOf(v));
  if (name == "map") return ListOf(Map(run, v, a));
  if (name == "reject" || name == "select") return ListOf(Select(run, v, Value(), a[0], a[1], name == "select"));
  if (name == "rejectattr" || name == "selectattr") return ListOf(Select(run, v, a[0], a[1], a[2], name[0] == 's'));
  if (name == "replace") return ReplaceText(run, Str(v), Str(a[0]), Str(a[1]), a[2]);
  if (name == "safe" || name == "string") {
    Value text = v.text() ? v : Value(Str(v));
    text.safe = text.safe || name == "safe";
    return text;
  }
  if (name == "sort") return ListOf(Sorted(run, run.ElementsOf(v), Truth(a[0]), a[1], a[2]));
  if (name == "trim") return StripText(Str(v), a[0], true, true);
  if (name == "tojson") {
    DumpStyle style = {.python = false, .ascii = Truth(a[0]), .sorted = Truth(a[3])};
    if (!a[1].undefined() && !a[1].none()) style.indent = Blanks(a[1], 0), style.comma = ",";
    if (a[2].list()) style.comma = Item(a[2], 0).str(), style.colon = Item(a[2], 1).str();
    return Dump(v.json(), style);
  }
  if ((name == "first" || name == "last") && v.list() && !v.data->empty()) return Item(v, name == "first" ? 0 : -1);
  Values items = run.ElementsOf(v);
  if (name == "unique") {
    Values seen;
    for (const Value& item : items) {
      run.Spend(1 + seen.size() * seen.size());
      const auto is_same = [&](const Value& other) {
        return Truth(Operate("==", Key(item, a[1], a[0]), Key(other, a[1], a[0])));
      };
      if (std::ranges::none_of(seen, is_same)) seen.push_back(item);
    }
    return ListOf(seen);
  }
  if (name == "reverse") {
    std::reverse(items.begin(), items.end());
    return v.text() ? Value(Join(run, items, "", Value())) : Value(ListOf(items));
  }
  if (items.empty()) return Undefined("the sequence is empty, so it has no item");
  return name == "last" ? items.back() : items.front();  // or first
}

bool Test(const std::string& name, const Value& v, const Value& other) {
  const auto is = [&](const char* op) { return Truth(Operate(op, v, other)); };
  if (name == "boolean" || name == "true" || name == "false")
    return v.boolean() && (name == "boolean" || Truth(v) == (name == "true"));
  if (name == "callable") return v.object != nullptr && v.object->call != nullptr;
  if (name == "defined" || name == "undefined") return v.undefined() == (name == "undefined");
  if (name == "divisibleby") return !is("%");
  if (name == "eq" || name == "equalto" || name == "ne") return is(name == "ne" ? "!=" : "==");
  if (name == "even" || name == "odd") return (v.whole() % 2 == 0) == (name == "even");
  if (name == "float" || name == "integer") return name == "float" ? v.real() : v.integer() && !v.boolean();
  if (name == "ge" || name == "gt") return is(name == "ge" ? ">=" : ">");
  if (name == "le" || name == "lt") return is(name == "le" ? "<=" : "<");
  if (name == "in") return is("in");
  if (name == "sameas") return TypeName(v) == TypeName(other) && is("==");
  if (name == "mapping" || name == "none") return name == "none" ? v.none() : v.dict();
  if (name == "number" || name == "string") return name == "number" ? v.number() : v.text();
  return v.text() || v.list() || v.dict() || v.undefined();  // iterable, sequence
}

Value TextMethod(Run& run, const std::string& name, const std::string& v, const Values& a) {
  const bool start = name == "startswith" || name == "removeprefix";
  if (name == "capitalize" || name == "lower" || name == "upper") return Cased(v, name[0]);
  if (name == "title") return Cased(v, 'm');
  if (name == "count") return Split(v, a[0].str()).size() - 1;
  if (name == "endswith" || name == "startswith") return HasAffix(v, a[0], start);
  if (name == "join") return Join(run, run.ElementsOf(a[0]), v, Value());
  if (name == "lstrip" || name == "rstrip" || name == "strip")
    return StripText(v, a[0], name[0] != 'r', name[0] != 'l');
  if (name == "replace") return ReplaceText(run, v, a[0].str(), a[1].str(), a[2]);
  if (name == "split" && (a[0].undefined() || a[0].none())) return SplitAtSpace(v, a[1]);
  if (name == "rsplit" || name == "split") return Split(v, a[0].str(), a[1], name[0] == 'r');
  if (name == "splitlines") return Lines(v);
  if (name == "find" || name == "rfind") {
    const size_t at = name == "find" ? v.find(a[0].str()) : v.rfind(a[0].str());
    return at == v.npos ? Value(-1) : Value(Length(v.substr(0, at)));
  }
  const size_t size = HasAffix(v, a[0], start) ? a[0].str().size() : 0;  // removeprefix, removesuffix
  return start ? v.substr(size) : v.substr(0, v.size() - size);
}

}  // namespace

bool IsKnown(char kind, const Value& subject, std::string_view name) {
  return FindName(ListOfNames(kind, subject), std::string(name)) != std::string_view::npos;
}

Value Call(Run& run, char kind, const std::string& name, const Value& subject, const Arguments& arguments) {
  const std::string_view list = ListOfNames(kind, subject);
  const size_t at = FindName(list, name);
  if (at == list.npos) Fail(std::string(kind == '|' ? "the filter '" : "the test '") + name + "' is not known here");
  Values bound = arguments.list;
  Texts parameters;
  if (list[at] == '(') parameters = Split(list.substr(at + 1, list.find(')', at) - at - 1), " ");
  for (const auto& [parameter, value] : arguments.named) {
    const size_t i =
        static_cast<size_t>(std::find(parameters.begin(), parameters.end(), parameter) - parameters.begin());
    if (bound.size() <= i) bound.resize(i + 1);
    bound[i] = value;
  }
  if (bound.size() > parameters.size()) Fail(name + ": there is no parameter for one of the arguments");
  bound.resize(5);
  run.Touch(subject.list() || subject.dict() ? Value() : subject);
  for (const Value& argument : bound) run.Touch(argument, kind == 'i');
  if (kind == 'i') return Test(name, subject, bound[0]);
  if (kind == '|') return run.Charge(Filter(run, name, subject, bound));
  if (subject.text()) return run.Charge(TextMethod(run, name, subject.str(), bound));
  if (name == "get") return Or(Item(subject, bound[0]), Or(bound[1], nullptr));
  Values parts = name == "items" ? Pairs(subject) : Elements(subject);
  for (Value& part : parts) part = name == "values" ? Item(subject, part) : part;
  return run.Charge(ListOf(parts));
}

void AddFunctions(Run& run, std::map<std::string, Value, std::less<>>& names) {
  const auto add = [&](const char* name, std::function<Value(const Arguments&)> call) {
    names[name] = &run.Make({"function", {}, std::move(call)});
  };
  const auto first = [](const Arguments& given) { return given.list.empty() ? Value() : given.list[0]; };
  const auto members = [first](const Arguments& given) {
    Object made{"namespace"};
    for (const Value& key : Elements(first(given))) made.members[key.str()] = Item(first(given), key);
    for (const auto& [name, value] : given.named) made.members[name] = value;
    return made;
  };
  add("namespace", [&run, members](const Arguments& given) { return Value(&run.Make(members(given))); });
  add("dict", [&run, members](const Arguments& given) { return Value(JsonOf(&run.Make(members(given)))); });
  add("raise_exception", [first](const Arguments& given) -> Value { Fail(Str(first(given))); });
  add("strftime_now", [&run, first](const Arguments& given) -> Value {
    char text[256];
    std::tm local = {};
    return std::string(text, strftime(text, sizeof(text), first(given).str().c_str(), localtime_r(&run.now, &local)));
  });
  add("range", [&run](const Arguments& given) {
    const size_t count = given.list.size();
    if (count < 1 || count > 3) Fail("range takes one to three arguments");
    const int64_t step = count > 2 ? given.list[2].whole() : 1, stop = given.list[count > 1 ? 1 : 0].whole();
    Json items = Json::array();
    for (int64_t i = count > 1 ? given.list[0].whole() : 0; step > 0 ? i < stop : i > stop; i += step) {
      if (step == 0 || items.size() == 100000) Fail("a range has a step of 0 or more than 100000 items");
      items.push_back(i);
    }
    return run.Charge(std::move(items));
  });
}

}  // namespace kgrpo::jinja
